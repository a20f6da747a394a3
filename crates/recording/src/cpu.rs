//! CPUs by their Linux number, and lists of them in the kernel's notation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A logical CPU, by its Linux number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cpu(pub u32);

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Cpu {
    /// The last CPU that lists and recordings may have; Linux itself stops at 8,192.
    pub(crate) const LAST: Self = Self(65_535);
}

/// Parses a CPU list in the kernel's notation: `1,3-5`. The result is sorted and has no duplicates.
///
/// # Errors
/// A text for the user that names the invalid part.
pub fn parse_cpu_list(text: &str) -> Result<Vec<Cpu>, String> {
    let number =
        |part: &str| {
            part.trim().parse::<u32>().ok().filter(|&n| n <= Cpu::LAST.0).ok_or_else(|| {
                format!("`{part}` in the CPU list `{text}` is not a CPU number (write `1,3-5`)")
            })
        };
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("the range `{part}` in the CPU list `{text}` runs backwards"));
        }
        cpus.extend((first..=last).map(Cpu));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Formats a sorted CPU list in the kernel's notation: `1,3-5`.
pub fn format_cpu_list(cpus: &[Cpu]) -> String {
    cpus.chunk_by(|a, b| a.0 + 1 == b.0)
        .map(|run| match run {
            [only] => only.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_is_no_list() {
        for bad in ["", "a", "1,", "5-3", "-1", "99999999999", "1-99999999"] {
            assert!(parse_cpu_list(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn lists_survive_the_round_trip(set in proptest::collection::btree_set(0u32..300, 1..40)) {
            let cpus: Vec<Cpu> = set.into_iter().map(Cpu).collect();
            prop_assert_eq!(parse_cpu_list(&format_cpu_list(&cpus)).unwrap(), cpus);
        }
    }
}
