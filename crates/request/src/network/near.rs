//! Networks among near ranks: `--within`.

use std::str::FromStr;

use quell_analysis::bench::loggp::preset::check_levels;
use quell_sim::loggops::Level;

use super::{NetText, Preset};
use crate::size::whole;

/// The value of `--within`: a number of near ranks, and the network among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearText {
    ranks: u32,
    net: NetText,
}

impl FromStr for NearText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').map(|(ranks, net)| (whole(ranks), net));
        let Some((Some(ranks), net)) = parts else {
            return Err(format!(
                "`{text}` is not a number of ranks and their network (write `64=node.toml`)"
            ));
        };
        let ranks = u32::try_from(ranks).map_err(|_| format!("{ranks} ranks are too many"))?;
        match net.parse()? {
            NetText::Help => Err("`help` is no network (`--net help` lists the presets)".into()),
            net => Ok(Self { ranks, net }),
        }
    }
}

/// The networks among near ranks, the nearest first. Parameters that are not given are those of a preset.
///
/// # Errors
/// Why a file cannot be read, or why the levels are none.
pub(super) fn levels(near: &[NearText], others: &Preset) -> Result<Vec<Level>, String> {
    let level = |NearText { ranks, net }: &NearText| {
        let named = net.named(others)?;
        Ok(Level { ranks: *ranks, network: named.network, ranges: named.ranges })
    };
    let mut levels = near.iter().map(level).collect::<Result<Vec<_>, String>>()?;
    levels.sort_by_key(|level| level.ranks);
    check_levels(&levels)?;
    Ok(levels)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::network::{DEFAULT, NetArgs, from_args};

    #[test]
    fn near_ranks_have_networks_of_their_own() {
        let near = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<NearText>>();
        let args = |texts: &[&str]| NetArgs { within: near(texts), ..NetArgs::default() };
        let named = from_args(&args(&["64=hdr", "32=L=80,o=40"]), DEFAULT).unwrap();
        let found: Vec<_> = named.levels.iter().map(|level| (level.ranks, level.network.latency)).collect();
        assert_eq!((found, named.preset.clone()), (vec![(32, 80), (64, 1700)], Some(DEFAULT.name.into())));
        assert_eq!(named.levels[0].network.eager_limit, (DEFAULT.net)().eager_limit);
        let latency = |a, b| named.between(a, b, 8).latency;
        assert_eq!([latency(0, 31), latency(31, 32), latency(63, 64)], [80, 1700, (DEFAULT.net)().latency]);
        assert_eq!((named.least_overhead(), named.with_eager_limit(9).between(0, 1, 8).eager_limit), (0, 9));
        for (texts, reason) in [
            (&["64=hdr", "48=hdr"][..], "not made of whole groups of 48"),
            (&["64=hdr", "64=edr"], "not made of whole groups of 64"),
            (&["1=hdr"], "needs 2 or more ranks"),
            (&["64=nowhere.toml"], "nowhere.toml"),
        ] {
            let refused = from_args(&args(texts), DEFAULT).unwrap_err().0;
            assert!(refused.starts_with("--within: ") && refused.contains(reason), "{refused}");
        }
        for bad in ["", "64", "=hdr", "x=hdr", "64=", "64=help", "5000000000=hdr"] {
            assert!(bad.parse::<NearText>().is_err(), "{bad}");
        }
    }
}
