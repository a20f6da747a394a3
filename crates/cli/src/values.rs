//! Values of options, for clap to parse.

pub mod replay;

use std::str::FromStr;

use quell_node::probe::Threshold;
use quell_recording::{Cpu, parse_cpu_list};

/// A sorted list of at least one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<Cpu>);

impl FromStr for CpuList {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse_cpu_list(text).map(Self)
    }
}

/// Small whole numbers, in order: a list, or a range with both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountList(pub Vec<u64>);

/// Largest number in such a list.
const LARGEST_COUNT: u64 = 1024;

impl FromStr for CountList {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| {
            let number = word.trim().parse::<u64>().ok().filter(|number| *number <= LARGEST_COUNT);
            number.ok_or_else(|| {
                format!("`{word}` is not a number from 0 to {LARGEST_COUNT}, as in `0..8` or `0,1,2`")
            })
        };
        let mut counts: Vec<u64> = match text.split_once("..") {
            Some((first, last)) => (number(first)?..=number(last)?).collect(),
            None => text.split(',').map(number).collect::<Result<_, _>>()?,
        };
        counts.sort_unstable();
        counts.dedup();
        if counts.is_empty() {
            Err(format!("`{text}` is empty: write the smaller number first"))
        } else {
            Ok(Self(counts))
        }
    }
}

/// A threshold as given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdText(pub Threshold);

impl FromStr for ThresholdText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(factor) = text.strip_suffix('x') else {
            return text
                .parse()
                .map(|time| Self(Threshold::Absolute(time)))
                .map_err(|e: quell_recording::NanosError| e.to_string());
        };
        let factor: f64 = factor.parse().map_err(|_| format!("`{text}` is not a multiple (write `10x`)"))?;
        if (1.0..=1e9).contains(&factor) {
            Ok(Self(Threshold::TimesMinimum(factor)))
        } else {
            Err(format!("`{text}` is out of range: a multiple is between 1x and 1000000000x"))
        }
    }
}

#[cfg(test)]
mod tests {
    use quell_recording::Nanos;

    use super::*;

    #[test]
    fn thresholds_are_times_or_multiples() {
        assert_eq!("10x".parse::<ThresholdText>().unwrap().0, Threshold::TimesMinimum(10.0));
        assert_eq!("1us".parse::<ThresholdText>().unwrap().0, Threshold::Absolute(Nanos::from_nanos(1000)));
        for bad in ["", "x", "NaNx", "0x", "-3x", "infx", "10"] {
            assert!(bad.parse::<ThresholdText>().is_err(), "{bad}");
        }
    }
}
