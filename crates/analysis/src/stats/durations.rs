//! Exact order statistics of durations, for the per-CPU table and the comparison.

use quell_recording::Trace;
use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::Serialize;

use super::order::nearest_rank;

/// Durations in nanoseconds, in ascending order.
///
/// # Quantiles
/// They are those of [`nearest_rank`], so a quantile is always a duration that happened. The interpolating types would invent
/// durations: between a 3 us interrupt and a 2 ms daemon there may be none that ever struck the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations(Vec<u64>);

impl Durations {
    /// Sorts `durations_ns`.
    pub fn new(mut durations_ns: Vec<u64>) -> Self {
        durations_ns.sort_unstable();
        Self(durations_ns)
    }

    /// The durations of the noise in all of `traces`, without quell's own detours.
    pub fn from_noise<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Self {
        Self::new(
            traces.into_iter().flat_map(Trace::noise).map(|detour| detour.duration.as_nanos()).collect(),
        )
    }

    /// All durations in ascending order, in nanoseconds.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// Number of durations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no durations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The quantile at `p` of 0 to 1, in nanoseconds; `None` for an empty sample. A `p` outside of its range selects
    /// the nearer end.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        nearest_rank(&self.0, p)
    }

    /// The sum, in nanoseconds; saturates.
    pub fn total(&self) -> u64 {
        u64::try_from(self.sum()).unwrap_or(u64::MAX)
    }

    /// The arithmetic mean, in nanoseconds; `None` for an empty sample.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.sum() as f64 / self.0.len() as f64)
    }

    /// The figures of the per-CPU table; all zero for an empty sample, as its `count` shows.
    pub fn summary(&self) -> Summary {
        let at = |p| self.quantile(p).unwrap_or(0);
        Summary {
            count: self.0.len() as u64,
            min_ns: at(0.0),
            mean_ns: self.mean().unwrap_or(0.0),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            max_ns: at(1.0),
            total_ns: self.total(),
        }
    }

    fn sum(&self) -> u128 {
        self.0.iter().map(|&ns| u128::from(ns)).sum()
    }
}

/// Order statistics of the durations of one sample. Quantiles are nearest-rank: always a duration that happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Summary {
    /// Number of detours; if it is zero, all other figures are zero.
    #[column(title = "detours")]
    pub count: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// The arithmetic mean, in nanoseconds.
    pub mean_ns: f64,
    /// The median, in nanoseconds.
    #[column(title = "p50", zero)]
    pub p50_ns: u64,
    /// The duration that 90 % do not exceed, in nanoseconds.
    pub p90_ns: u64,
    /// The duration that 99 % do not exceed, in nanoseconds.
    #[column(title = "p99", zero)]
    pub p99_ns: u64,
    /// The duration that 99.9 % do not exceed, in nanoseconds.
    pub p99_9_ns: u64,
    /// The longest, in nanoseconds.
    #[column(title = "max", zero)]
    pub max_ns: u64,
    /// Sum of the durations, in nanoseconds; saturates.
    pub total_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_sample_has_no_quantiles() {
        let none = Durations::default();
        assert_eq!((none.quantile(0.5), none.mean(), none.summary().count), (None, None, 0));
    }

    #[test]
    fn ranks_are_not_moved_by_rounding() {
        let hundred = Durations::new((1..=100).collect());
        for percent in 1..=100 {
            assert_eq!(hundred.quantile(percent as f64 / 100.0), Some(percent));
        }
        assert_eq!(hundred.quantile(f64::NAN), Some(1));
    }

    #[test]
    fn sums_saturate() {
        let huge = Durations::new(vec![u64::MAX; 3]).summary();
        assert_eq!((huge.total_ns, huge.p50_ns), (u64::MAX, u64::MAX));
        assert!((huge.mean_ns / u64::MAX as f64 - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn quantiles_agree_with_their_definition(values in prop::collection::vec(any::<u64>(), 1..200), per_mille in 0u64..=1000) {
            let sample = Durations::new(values.clone());
            let covers = |x: u64| values.iter().filter(|&&v| v <= x).count() as u64 * 1000 >= per_mille * values.len() as u64;
            let naive = values.iter().copied().filter(|&x| covers(x)).min();
            prop_assert_eq!(sample.quantile(per_mille as f64 / 1000.0), naive);
        }

        #[test]
        fn figures_are_ordered(values in prop::collection::vec(any::<u64>(), 1..200)) {
            let s = Durations::new(values).summary();
            prop_assert!(s.min_ns <= s.p50_ns && s.p50_ns <= s.p90_ns && s.p90_ns <= s.p99_ns);
            prop_assert!(s.p99_ns <= s.p99_9_ns && s.p99_9_ns <= s.max_ns && s.max_ns <= s.total_ns);
            prop_assert!(s.mean_ns >= s.min_ns as f64 * 0.999_999 && s.mean_ns <= s.max_ns as f64 * 1.000_001);
        }
    }
}
