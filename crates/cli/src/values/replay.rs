//! Values of the options of `quell replay`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use quell_recording::Nanos;

/// Environment variable that gives the command the scale of its noise, so that a program that can scale its work by the same factor does,
/// as `quell bench` does.
pub const SCALE: &str = "QUELL_REPLAY_SCALE";

/// The largest factor: with it, a millisecond becomes a minute.
const LARGEST_SCALE: f64 = 60_000.0;

/// The factor by which noise is scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleText {
    /// This factor.
    By(f64),
    /// The smallest whole factor that reaches the requested coverage.
    Auto,
}

impl FromStr for ScaleText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let factor = text.trim_end_matches('x').parse::<f64>();
        let usable = |factor: &f64| (1.0 / LARGEST_SCALE..=LARGEST_SCALE).contains(factor);
        let factor = factor.ok().filter(usable);
        factor
            .map(Self::By)
            .ok_or_else(|| format!("give a factor such as 3 or 0.1, up to {LARGEST_SCALE}, or auto"))
    }
}

impl fmt::Display for ScaleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(factor) => write!(f, "{factor}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// The length of the blocks of an interleaved run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockText {
    /// About this long.
    Time(Nanos),
    /// This number of phases.
    Phases(NonZeroU64),
}

impl FromStr for BlockText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let phases = text.parse::<NonZeroU64>().ok().map(Self::Phases);
        let time = || text.parse::<Nanos>().ok().filter(|time| *time > Nanos::ZERO).map(Self::Time);
        phases.or_else(time).ok_or_else(|| "give a time such as 100ms, or a number of phases".to_owned())
    }
}

/// A fraction above 0 and up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let value = match (text.split_once('/'), text.strip_suffix('%')) {
            (Some((part, whole)), _) => number(part).zip(number(whole)).map(|(part, whole)| part / whole),
            (None, Some(percent)) => number(percent).map(|percent| percent / 100.0),
            (None, None) => number(text),
        };
        let value = value.filter(|value| *value > 0.0 && *value <= 1.0);
        value.map(Self).ok_or_else(|| "give a share above 0 and up to 1, such as 1/3 or 33%".to_owned())
    }
}

/// A fraction in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
        let value = value.filter(|value| *value > 0.0 && *value <= 100.0);
        value.map(Self).ok_or_else(|| "give a percentage above 0 and up to 100, such as 77%".to_owned())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_fractions_percentages_or_numbers() {
        let share = |text: &str| text.parse::<Share>().ok().map(|share| share.0);
        assert_eq!(share("1/4"), Some(0.25));
        assert_eq!(share("25%"), Some(0.25));
        assert_eq!(share("0.25"), Some(0.25));
        for bad in ["0", "4/3", "1/0", "-1", "NaN", "x", "", "1/", "101%"] {
            assert_eq!(share(bad), None, "{bad}");
        }
    }

    #[test]
    fn blocks_are_times_or_numbers_of_phases() {
        assert_eq!("100ms".parse(), Ok(BlockText::Time(Nanos::from_nanos(100_000_000))));
        assert_eq!("64".parse(), Ok(BlockText::Phases(NonZeroU64::new(64).unwrap_or(NonZeroU64::MIN))));
        for bad in ["0", "0s", "-3", "", "x", "1.5"] {
            assert!(bad.parse::<BlockText>().is_err(), "{bad}");
        }
    }

    #[test]
    fn scales_are_factors_or_auto() {
        assert_eq!("3x".parse(), Ok(ScaleText::By(3.0)));
        assert_eq!("0.1".parse(), Ok(ScaleText::By(0.1)));
        assert_eq!("auto".parse(), Ok(ScaleText::Auto));
        for bad in ["0", "-3", "NaN", "inf", "1e9", "", "x"] {
            assert!(bad.parse::<ScaleText>().is_err(), "{bad}");
        }
        assert!("0%".parse::<Percent>().is_err() && "77".parse::<Percent>() == Ok(Percent(77.0)));
    }
}
