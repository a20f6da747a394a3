//! Networks as people write them: a preset's name, or LogGOPS parameters.

use std::str::FromStr;

use quell_recording::Nanos;
use quell_sim::loggops::{Net, PerByte};

use super::size::whole;
use crate::args::NetArgs;

/// A network that somebody published.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// What to type.
    pub name: &'static str,
    /// The network.
    pub net: fn() -> Net,
    /// Where the numbers are from.
    pub source: &'static str,
}

/// All presets. To add one, give the place where its six numbers stand; numbers that nobody published are no preset.
pub const PRESETS: [Preset; 2] = [
    Preset {
        name: "loggopsim",
        net: Net::default,
        source: "LogGOPSim's own defaults (options -L -o -g -G -O -S of commit 76451de); what is used if nothing is said",
    },
    Preset {
        name: "atlahs",
        net: || Net {
            latency: 3700,
            overhead: 200,
            gap: 5,
            gap_per_byte: PerByte::from_femtoseconds(40_000),
            overhead_per_byte: PerByte::default(),
            eager_limit: 0,
        },
        source: "the command line of ATLAHS's NCCL demo, links of 200 Gb/s (spcl/atlahs, demo/ai_nccl/README.md)",
    },
];

/// What `--net` was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetText {
    /// The presets are asked for.
    Help,
    /// A network, and the preset's name if it is one.
    Net(Net, Option<&'static str>),
}

impl FromStr for NetText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "help" {
            return Ok(Self::Help);
        }
        if let Some(preset) = PRESETS.iter().find(|preset| preset.name == text) {
            return Ok(Self::Net((preset.net)(), Some(preset.name)));
        }
        let mut net = Net::default();
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
            set(&mut net, letter, value)?;
        }
        Ok(Self::Net(net, None))
    }
}

fn set(net: &mut Net, letter: &str, value: &str) -> Result<(), String> {
    let of = |reason: String| format!("{letter}: {reason}");
    let time = || value.parse::<TimeText>().map(|time| time.0).map_err(of);
    let rate = || value.parse::<PerByteText>().map(|rate| rate.0).map_err(of);
    match letter {
        "L" => net.latency = time()?,
        "o" => net.overhead = time()?,
        "g" => net.gap = time()?,
        "G" => net.gap_per_byte = rate()?,
        "O" => net.overhead_per_byte = rate()?,
        "S" => {
            let bytes = whole(value).ok_or_else(|| of(format!("`{value}` is not a number of bytes")));
            net.eager_limit = bytes?;
        }
        _ => return Err(format!("`{letter}` is no parameter of LogGOPS: these are L, o, g, G, O and S")),
    }
    Ok(())
}

/// A time; a bare number is in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeText(pub u64);

impl FromStr for TimeText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let time = whole(text).or_else(|| text.parse::<Nanos>().ok().map(Nanos::as_nanos));
        match time {
            // Times of a run end at 146 years.
            Some(ns) if ns <= 1 << 62 => Ok(Self(ns)),
            Some(_) => Err(format!("`{text}` is longer than 146 years")),
            None => Err(format!("`{text}` is not a time (write `2500` for ns, or `2.5us`)")),
        }
    }
}

/// Time for a byte, in ns.
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

/// The network that was asked for, and its preset's name.
pub fn of(args: &NetArgs) -> (Net, Option<&'static str>) {
    let (mut net, mut name) = match args.net {
        Some(NetText::Net(net, name)) => (net, name),
        Some(NetText::Help) | None => (Net::default(), Some(PRESETS[0].name)),
    };
    let before = net;
    let time = |given: Option<TimeText>, else_: u64| given.map_or(else_, |time| time.0);
    let rate = |given: Option<PerByteText>, else_: PerByte| given.map_or(else_, |rate| rate.0);
    net.latency = time(args.latency, net.latency);
    net.overhead = time(args.overhead, net.overhead);
    net.gap = time(args.gap, net.gap);
    net.gap_per_byte = rate(args.gap_per_byte, net.gap_per_byte);
    net.overhead_per_byte = rate(args.overhead_per_byte, net.overhead_per_byte);
    net.eager_limit = args.eager_limit.map_or(net.eager_limit, |size| size.0);
    if net != before {
        name = None;
    }
    (net, name)
}

/// The network in LogGOPSim's words.
pub fn text(net: &Net) -> String {
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

/// The presets, for `--net help`.
pub fn help() -> String {
    let line = |preset: &Preset| {
        format!("{:10} {}\n{:10} {}\n", preset.name, text(&(preset.net)()), "", preset.source)
    };
    let presets: String = PRESETS.iter().map(line).collect();
    format!(
        "{presets}\nTimes are in ns, S in bytes. Your own: --net L=2500,o=1500,g=1000,G=0.04,O=0,S=65535; netgauge's `-x loggp` measures them\n(it prints microseconds).\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_presets_or_parameters() {
        assert_eq!("loggopsim".parse(), Ok(NetText::Net(Net::default(), Some("loggopsim"))));
        let Ok(NetText::Net(net, None)) = "L=1us,o=20,G=0.04,S=4Ki".parse() else { panic!("not a network") };
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
        let (net, name) = of(&args);
        assert_eq!((net.latency, net.overhead, name), (3700, 7, None));
        assert_eq!(of(&NetArgs::default()), (Net::default(), Some("loggopsim")));
    }
}
