//! Time as integer nanoseconds, with a readable notation.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A length of time, or a point in time relative to a stated zero, in nanoseconds.
///
/// 2⁶⁴ ns are 584 years; arithmetic saturates rather than wraps, so a hostile file cannot turn a huge time
/// into a small one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(u64);

/// Formats a time in ns for reading: below 10 ns with one decimal, `-` for values that are not a time.
pub fn format_ns(ns: f64) -> String {
    if ns > 0.0 && ns < 10.0 {
        return format!("{ns:.1}ns");
    }
    Nanos::from_nanos_f64(ns).map_or_else(|| "-".into(), |time| time.to_string())
}

impl Nanos {
    /// A length of zero, or the zero of a timeline.
    pub const ZERO: Self = Self(0);
    /// The longest time that can be represented.
    pub const MAX: Self = Self(u64::MAX);

    /// From a count of nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// From a count of seconds; saturates.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// From a real number of nanoseconds, rounded to the nearest; `None` for NaN, negative or too large values.
    pub fn from_nanos_f64(ns: f64) -> Option<Self> {
        // 2^64 as f64 is exact, and every smaller f64 fits.
        (0.0..18_446_744_073_709_551_616.0).contains(&ns).then(|| Self(ns.round() as u64))
    }

    /// The count of nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds as a real number, for rates and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self + other`, or `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// `self - other`, or zero if `other` is later.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(t: Nanos) -> Self {
        Self::from_nanos(t.0)
    }
}

/// Four significant digits in a suitable unit: `250ns`, `14us`, `1.04ms`, `10s`. Whole values stay exact.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0..1_000 => (1.0, "ns"),
            // A value that would be rounded to 1000 uses the next unit.
            1_000..999_950 => (1e3, "us"),
            999_950..999_950_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let value = self.0 as f64 / divisor;
        let decimals = if value >= 1000.0 { 0 } else { 3 - value.max(1.0).log10().floor() as usize };
        let text = format!("{value:.decimals$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        f.pad(&format!("{text}{unit}"))
    }
}

/// Why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a time: {reason} (write `10s`, `1ms`, `14us`, `250ns`)")]
pub struct NanosError {
    text: String,
    reason: &'static str,
}

impl FromStr for Nanos {
    type Err = NanosError;

    fn from_str(text: &str) -> Result<Self, NanosError> {
        let fail = |reason| NanosError { text: text.to_owned(), reason };
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .ok_or_else(|| fail(if trimmed.is_empty() { "it is empty" } else { "the unit is missing" }))?;
        let (number, unit) = trimmed.split_at(split);
        let factor: u64 = match unit.trim() {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(fail("the unit is not one of ns, us, ms, s, min, h")),
        };
        if number.is_empty() {
            return Err(fail("the number is missing"));
        }
        // Whole numbers stay exact; only fractions go through floating point.
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(Nanos).ok_or_else(|| fail("it is too long"));
        }
        let value: f64 = number.parse().map_err(|_| fail("the number cannot be read"))?;
        Nanos::from_nanos_f64(value * factor as f64).ok_or_else(|| fail("it is too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ns) in
            [("10s", 10_000_000_000), ("1ms", 1_000_000), ("14us", 14_000), ("250ns", 250), ("1.5us", 1_500)]
        {
            assert_eq!(text.parse::<Nanos>().unwrap().as_nanos(), ns);
        }
        for bad in ["", "10", "ns", "-1s", "1e3s", "1.2.3s", "99999999999999999999s", "9999999999h", "NaNs"] {
            assert!(bad.parse::<Nanos>().is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_four_digits_at_most() {
        for (ns, text) in
            [(0, "0ns"), (999, "999ns"), (1_040_000, "1.04ms"), (123_456, "123.5us"), (999_999, "1ms")]
        {
            assert_eq!(Nanos::from_nanos(ns).to_string(), text);
        }
        assert_eq!(Nanos::from_secs(3600).to_string(), "3600s");
    }

    #[test]
    fn short_times_have_a_decimal() {
        for (ns, text) in
            [(0.0, "0ns"), (0.25, "0.2ns"), (9.75, "9.8ns"), (10.0, "10ns"), (-1.0, "-"), (f64::NAN, "-")]
        {
            assert_eq!(format_ns(ns), text);
        }
    }

    proptest! {
        #[test]
        fn whole_units_survive_the_round_trip(n in 0u64..1000, unit in 0usize..4) {
            let t = Nanos(n * [1, 1_000, 1_000_000, 1_000_000_000][unit]);
            prop_assert_eq!(t.to_string().parse::<Nanos>().unwrap(), t);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Nanos>();
        }
    }
}
