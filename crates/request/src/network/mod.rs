//! Networks as arguments: the name of a preset, a file of measured parameters, or LogGOPS parameters.

mod args;
mod near;
mod presets;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use quell_analysis::bench::loggp::preset::Preset as Measured;
use quell_analysis::track::GivenLimit;
use quell_recording::{Nanos, whole_file};
use quell_sim::loggops::{NamedNetwork, Network, PerByte, SizeRange};

pub use args::NetArgs;
pub use near::NearText;
pub use presets::{DEFAULT, LOGGOPSIM, PRESETS, Preset};

use crate::Usage;
use crate::size::whole;

/// Some parameters of a network; those that are not given are those of another network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    latency: Option<TimeText>,
    overhead: Option<TimeText>,
    gap: Option<TimeText>,
    gap_per_byte: Option<PerByteText>,
    overhead_per_byte: Option<PerByteText>,
    eager_limit: Option<u64>,
}

impl Parameters {
    /// Sets the parameter of a letter.
    fn set(&mut self, letter: &str, value: &str) -> Result<(), String> {
        let of = |reason: String| format!("{letter}: {reason}");
        let time = || value.parse::<TimeText>().map(Some).map_err(of);
        let rate = || value.parse::<PerByteText>().map(Some).map_err(of);
        match letter {
            "L" => self.latency = time()?,
            "o" => self.overhead = time()?,
            "g" => self.gap = time()?,
            "G" => self.gap_per_byte = rate()?,
            "O" => self.overhead_per_byte = rate()?,
            "S" => {
                let bytes = whole(value).ok_or_else(|| of(format!("`{value}` is not a number of bytes")))?;
                self.eager_limit = Some(bytes);
            }
            _ => return Err(format!("`{letter}` is no parameter of LogGOPS: these are L, o, g, G, O and S")),
        }
        Ok(())
    }

    /// These parameters, and those of another network.
    fn over(self, other: Network) -> Network {
        let rate = |given: Option<PerByteText>, else_: PerByte| given.map_or(else_, |rate| rate.0);
        let time = |given: Option<TimeText>, else_: u64| given.map_or(else_, |time| time.0);
        Network {
            latency: time(self.latency, other.latency),
            overhead: time(self.overhead, other.overhead),
            gap: time(self.gap, other.gap),
            gap_per_byte: rate(self.gap_per_byte, other.gap_per_byte),
            overhead_per_byte: rate(self.overhead_per_byte, other.overhead_per_byte),
            eager_limit: self.eager_limit.unwrap_or(other.eager_limit),
        }
    }
}

/// The value of `--net`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetText {
    /// Print the presets.
    Help,
    /// A preset.
    Preset(NamedNetwork),
    /// Parameters.
    Parameters(Parameters),
    /// A file of measured parameters, which is read when the network is needed.
    File {
        /// Path of the file.
        path: PathBuf,
        /// The size, in bytes, whose parameters hold for all messages, if given.
        bytes: Option<u64>,
    },
}

impl NetText {
    /// The network; what the text does not give is as in a preset.
    fn named(&self, others: &Preset) -> Result<NamedNetwork, String> {
        Ok(match self {
            Self::Help => others.named(),
            Self::Preset(named) => named.clone(),
            Self::Parameters(given) => given.over((others.net)()).into(),
            Self::File { path, bytes } => from_file(path, *bytes)?,
        })
    }
}

impl FromStr for NetText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "help" {
            return Ok(Self::Help);
        }
        if let Some(preset) = PRESETS.iter().find(|preset| preset.name == text) {
            return Ok(Self::Preset(preset.named()));
        }
        if let Some(file) = file(text)? {
            return Ok(file);
        }
        let mut given = Parameters::default();
        let mut seen = String::new();
        for part in text.split(',') {
            let Some((letter, value)) = part.split_once('=') else {
                return Err(format!(
                    "there is no preset `{part}` (`--net help` lists them), and it is no parameter such as L=2500"
                ));
            };
            let (letter, value) = (letter.trim(), value.trim());
            if seen.contains(letter) {
                return Err(format!("{letter} is given twice"));
            }
            seen.push_str(letter);
            given.set(letter, value)?;
        }
        Ok(Self::Parameters(given))
    }
}

/// Maximum size of a file of parameters, in bytes.
const MOST_FILE_BYTES: u64 = 1 << 20;

/// Parses `FILE.toml`, or `FILE.toml@SIZE` for messages of a size. `None` if the text is neither.
fn file(text: &str) -> Result<Option<NetText>, String> {
    let (path, bytes) = match text.rsplit_once('@') {
        Some((path, size)) if path.ends_with(".toml") => {
            let bytes =
                whole(size).ok_or_else(|| format!("`{size}` is not a size (write `FILE.toml@4Ki`)"))?;
            (path, Some(bytes))
        }
        _ if text.ends_with(".toml") => (text, None),
        _ => return Ok(None),
    };
    Ok(Some(NetText::File { path: path.into(), bytes }))
}

/// Reads a file of measured parameters.
///
/// # Errors
/// Why it cannot be read, or holds no network.
pub fn read(path: &Path) -> Result<Measured, String> {
    let content = whole_file::read_text(path, MOST_FILE_BYTES).map_err(|error| error.to_string())?;
    Measured::from_toml(&content).map_err(|reason| format!("{}: {reason}", path.display()))
}

/// Checks that the network can be loaded, if it is in a file.
///
/// # Errors
/// Why it cannot be loaded.
pub fn check(net: &NetText) -> Result<(), String> {
    match net {
        NetText::File { path, .. } => read(path).map(drop),
        NetText::Help | NetText::Preset(_) | NetText::Parameters(_) => Ok(()),
    }
}

/// A time; a bare number is in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeText(pub u64);

impl FromStr for TimeText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let time = whole(text).or_else(|| text.parse::<Nanos>().ok().map(Nanos::as_nanos));
        match time {
            // A simulated run ends at 2^62 ns, 146 years.
            Some(ns) if ns <= 1 << 62 => Ok(Self(ns)),
            Some(_) => Err(format!("`{text}` is longer than 146 years")),
            None => Err(format!("`{text}` is not a time (write `2500` for ns, or `2.5us`)")),
        }
    }
}

/// Time per byte, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerByteText(pub PerByte);

impl FromStr for PerByteText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let exact = fraction.trim_end_matches('0');
        if exact.len() > 6 {
            return Err(format!("`{text}` is finer than a femtosecond, six places behind the point"));
        }
        let parts = number(if whole.is_empty() && !exact.is_empty() { "0" } else { whole })
            .zip(number(&format!("{exact:0<6}")));
        let Some((Ok(nanos), Ok(femtoseconds))) = parts else {
            return Err(format!(
                "`{text}` is not a time for a byte in ns (write `6`, or `0.04` for 200 Gb/s)"
            ));
        };
        let rate = nanos.checked_mul(1_000_000).and_then(|fs| fs.checked_add(femtoseconds));
        rate.map(|fs| Self(PerByte::from_femtoseconds(fs)))
            .ok_or_else(|| format!("`{text}` ns for a byte are too many"))
    }
}

/// The file of the network on which a schedule was traced: `run.net.toml` for `run.goal`.
pub fn traced_with(schedule: &Path) -> PathBuf {
    schedule.with_extension("net.toml")
}

/// The requested network; what was not requested is as in a preset.
///
/// # Errors
/// [`Usage`] for a file that cannot be read, or holds no network.
pub fn from_args(args: &NetArgs, others: &Preset) -> Result<NamedNetwork, Usage> {
    or_file(args, None, others)
}

/// The requested network for a schedule. What was not requested is as in that file, if there is one.
///
/// # Errors
/// [`Usage`] for a file that cannot be read, or holds no network.
pub fn for_schedule(args: &NetArgs, schedule: &Path) -> Result<NamedNetwork, Usage> {
    let file = traced_with(schedule);
    or_file(args, file.exists().then_some(&file), DEFAULT)
}

/// The requested network; the one of a file if no network was requested, or else a preset.
fn or_file(args: &NetArgs, file: Option<&PathBuf>, others: &Preset) -> Result<NamedNetwork, Usage> {
    let mut named = match (&args.net, file) {
        (Some(NetText::Help) | None, Some(path)) => from_file(path, None).map_err(Usage)?,
        (None, None) => others.named(),
        (Some(net), _) => net.named(others).map_err(|reason| Usage(format!("--net: {reason}")))?,
    };
    let (before, given) = (named.clone(), args.parameters());
    named.network = given.over(named.network);
    named.ranges.iter_mut().for_each(|range| range.network = given.over(range.network));
    if named != before {
        named.preset = None;
    }
    if !args.within.is_empty() {
        let levels = near::levels(&args.within, others);
        named.levels = levels.map_err(|reason| Usage(format!("--within: {reason}")))?;
    }
    Ok(named)
}

/// The network of a file; of its parameters for a size, if one is given.
fn from_file(path: &Path, bytes: Option<u64>) -> Result<NamedNetwork, String> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    Ok(from_preset(&name, &read(path)?, bytes))
}

/// The eager limit, in bytes, of a file of measured parameters; `None` if there is no such file.
///
/// # Errors
/// [`Usage`] for a file that cannot be read, or holds no network.
pub fn measured_limit(path: &Path) -> Result<Option<u64>, Usage> {
    let read = || read(path).map(|preset| preset.net.eager_limit).map_err(Usage);
    path.exists().then(read).transpose()
}

/// The eager limit, if it was given or is in a file.
///
/// # Errors
/// [`Usage`] for a file that cannot be read, or holds no network.
pub fn eager_limit(args: &NetArgs) -> Result<Option<GivenLimit>, Usage> {
    let is_given = match &args.net {
        _ if args.eager_limit.is_some() => true,
        Some(NetText::Preset(_) | NetText::File { .. }) => true,
        Some(NetText::Parameters(given)) => given.eager_limit.is_some(),
        Some(NetText::Help) | None => false,
    };
    if !is_given {
        return Ok(None);
    }
    let measured = args.eager_limit.is_none() && matches!(args.net, Some(NetText::File { .. }));
    Ok(Some(GivenLimit { bytes: from_args(args, DEFAULT)?.network.eager_limit, measured }))
}

/// The network of a file: with a size its parameters for that size, otherwise those for each size.
fn from_preset(name: &str, preset: &Measured, bytes: Option<u64>) -> NamedNetwork {
    let Measured { net: network, mut ranges, mut levels, .. } = preset.clone();
    let Some(bytes) = bytes else {
        return NamedNetwork { preset: Some(name.to_owned()), network, ranges, levels };
    };
    for level in &mut levels {
        let range = SizeRange::find(&level.ranges, bytes).map(|range| range.network);
        level.network = range.unwrap_or(level.network);
        level.ranges.clear();
    }
    ranges.retain(|range| (range.from_bytes..=range.to_bytes).contains(&bytes.max(1)));
    match ranges.first() {
        Some(SizeRange { from_bytes, to_bytes, network }) => {
            let preset = Some(format!("{name}, {from_bytes} to {to_bytes} bytes"));
            NamedNetwork { preset, network: *network, ranges: Vec::new(), levels }
        }
        None => NamedNetwork { preset: Some(name.to_owned()), network, ranges: Vec::new(), levels },
    }
}

/// The network in LogGOPSim's notation.
pub fn text(net: &Network) -> String {
    format!(
        "L={} o={} g={} G={} O={} S={}",
        net.latency,
        net.overhead,
        net.gap,
        net.gap_per_byte.as_nanos(),
        net.overhead_per_byte.as_nanos(),
        net.eager_limit
    )
}

/// Refuses `--net help` where a network is required: the list of presets is for people.
///
/// # Errors
/// [`Usage`], with the list of presets.
pub fn refuse_help(args: &NetArgs) -> Result<(), Usage> {
    match args.net {
        Some(NetText::Help) => Err(Usage(format!("`help` is no network; these are known:\n{}", help()))),
        _ => Ok(()),
    }
}

/// The list of presets that `--net help` prints.
pub fn help() -> String {
    let line = |preset: &Preset| {
        format!("{:10} {}\n{:10} {}\n", preset.name, text(&(preset.net)()), "", preset.source)
    };
    let presets: String = PRESETS.iter().map(line).collect();
    format!(
        "{presets}\nTimes are in ns, S in bytes. Your own: --net FILE.toml, or --net L=2500,o=1500,g=1000,G=0.04,O=0,S=65535; netgauge's `-x loggp` measures them\n(it prints microseconds).\n"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn network(args: &NetArgs) -> (Network, Option<String>) {
        let named = from_args(args, LOGGOPSIM).unwrap();
        (named.network, named.preset)
    }

    #[test]
    fn networks_are_presets_or_parameters() {
        assert_eq!("loggopsim".parse(), Ok(NetText::Preset(LOGGOPSIM.named())));
        let Ok(NetText::Parameters(given)) = "L=1us,o=20,G=0.04,S=4Ki".parse() else {
            panic!("not a network")
        };
        let net = given.over(Network::default());
        assert_eq!((net.latency, net.overhead, net.gap, net.eager_limit), (1000, 20, 1000, 4096));
        assert_eq!(net.gap_per_byte, PerByte::from_femtoseconds(40_000));
        for bad in [
            "",
            "L",
            "L=",
            "L=1,L=2",
            "x=1",
            "G=NaN",
            "G=-1",
            "G=1e3",
            "L=-1",
            "G=.",
            "G=0.0000001",
            "nowhere",
        ] {
            assert!(bad.parse::<NetText>().is_err(), "{bad}");
        }
    }

    #[test]
    fn bytes_take_decimal_fractions_of_a_nanosecond() {
        for (text, fs) in
            [("6", 6_000_000), ("0.04", 40_000), (".5", 500_000), ("1.0000000", 1_000_000), ("3.", 3_000_000)]
        {
            assert_eq!(text.parse(), Ok(PerByteText(PerByte::from_femtoseconds(fs))), "{text}");
        }
    }

    #[test]
    fn single_options_go_before_the_preset() {
        let args = NetArgs { net: "atlahs".parse().ok(), overhead: Some(TimeText(7)), ..NetArgs::default() };
        let (net, name) = network(&args);
        assert_eq!((net.latency, net.overhead, name), (3700, 7, None));
        assert_eq!(network(&NetArgs::default()), (Network::default(), Some("loggopsim".into())));
    }

    #[test]
    fn files_have_parameters_for_sizes() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("net.toml");
        let all = "L_ns = 1\no_ns = 2\ng_ns = 3\nG_ns_per_byte = 0.5\nO_ns_per_byte = 0\n";
        fs_err::write(
            &path,
            format!(
                "{all}S_bytes = 4\n[[range]]\nfrom_bytes = 1\nto_bytes = 64\n{}",
                all.replace("L_ns = 1", "L_ns = 7")
            ),
        )?;
        let parse = |text: String| text.parse::<NetText>();
        let args = |net: NetText| NetArgs { net: Some(net), ..NetArgs::default() };
        let file = args(parse(path.display().to_string())?);
        let named = from_args(&file, DEFAULT).unwrap();
        assert_eq!([0, 8, 64, 65].map(|bytes| named.between(0, 1, bytes).latency), [7, 7, 7, 1]);
        let sized = args(parse(format!("{}@64", path.display()))?);
        assert_eq!(network(&sized).1, Some("net.toml, 1 to 64 bytes".into()));
        assert_eq!(from_args(&sized, DEFAULT).unwrap().between(0, 1, 65).latency, 7);
        let slow = NetArgs { latency: Some(TimeText(9)), ..file };
        assert_eq!(
            [8, 65].map(|bytes| from_args(&slow, DEFAULT).unwrap().between(0, 1, bytes).latency),
            [9, 9]
        );
        assert!(parse(format!("{}@much", path.display())).is_err_and(|reason| reason.contains("not a size")));
        let refused = |net: NetText| from_args(&args(net), DEFAULT).unwrap_err().0;
        assert!(refused(parse("nowhere/net.toml".into())?).contains("nowhere/net.toml"));
        fs_err::write(&path, "L_ns = 1")?;
        assert!(refused(parse(path.display().to_string())?).contains("o_ns"));
        Ok(())
    }
}
