//! Spread of times, and confidence in their mean.

use quell_recording::columns::{Columns, describe};
use quell_sim::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{ascending, mean, nearest_rank, variance};

/// Figures of a sample of times, in nanoseconds; all zero if it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Spread {
    /// Number of times.
    pub count: u64,
    /// The shortest.
    #[column(title = "min")]
    pub min_ns: u64,
    /// The median of the shortest tenth.
    #[column(title = "quiet")]
    pub quiet_ns: u64,
    /// The median.
    #[column(title = "p50")]
    pub p50_ns: u64,
    /// The arithmetic mean.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// 99 of 100 are at most this.
    #[column(title = "p99")]
    pub p99_ns: u64,
    /// 999 of 1,000 are at most this.
    #[column(title = "p99.9")]
    pub p99_9_ns: u64,
    /// The longest.
    #[column(title = "max")]
    pub max_ns: u64,
    /// Standard deviation of the sample.
    pub sigma_ns: f64,
}

impl Spread {
    /// Computes the figures; the times may have any order.
    pub fn from_times(mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        let at = |p: f64| nearest_rank(&times, p).unwrap_or(0);
        let reals = times.iter().map(|&t| t as f64);
        let mean = mean(reals.clone()).unwrap_or(0.0);
        Self {
            count: times.len() as u64,
            min_ns: at(0.0),
            quiet_ns: at(0.05),
            p50_ns: at(0.5),
            mean_ns: mean,
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            max_ns: at(1.0),
            sigma_ns: variance(reals, mean).unwrap_or(0.0).sqrt(),
        }
    }
}

/// Minimum number of values for an interval.
const FEWEST: usize = 8;
const BLOCKS: usize = 50;
const REPLICATES: u64 = 400;

/// The mean of a series in order of time, with its 95 % interval. Noise is correlated in time, so whole blocks of the series are resampled
/// (Carlstein, "The Use of Subseries Values for Estimating the Variance of a General Statistic from a Stationary Sequence", Ann.
/// Statist. 14, 1986).
pub fn mean_with_interval(series: &[f64], seed: u64) -> (f64, Option<[f64; 2]>) {
    let mean = mean(series.iter().copied()).unwrap_or(0.0);
    if series.len() < FEWEST {
        return (mean, None);
    }
    let length = series.len().div_ceil(BLOCKS);
    let blocks: Vec<(f64, usize)> =
        series.chunks(length).map(|block| (block.iter().sum::<f64>(), block.len())).collect();
    let means = ascending((0..REPLICATES).map(|number| {
        let draws = Draws::new(seed, &[0x6d65_616e, number]);
        let (sum, count) = (0..blocks.len() as u64).fold((0.0, 0), |(sum, count), index| {
            let (block, length) = blocks[draws.below(index, blocks.len() as u64) as usize];
            (sum + block, count + length)
        });
        sum / count.max(1) as f64
    }));
    let ends = nearest_rank(&means, 0.025).zip(nearest_rank(&means, 0.975));
    (mean, ends.map(<[f64; 2]>::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_of_times_that_happened() {
        let spread = Spread::from_times((1..=100).rev().collect());
        assert_eq!((spread.min_ns, spread.quiet_ns, spread.p50_ns, spread.max_ns), (1, 5, 50, 100));
        assert!((spread.mean_ns - 50.5).abs() < 1e-9 && (spread.sigma_ns - 29.011).abs() < 1e-3);
        assert_eq!(Spread::from_times(Vec::new()), Spread::default());
        assert_eq!(Spread::from_times(vec![7]).sigma_ns, 0.0);
    }

    #[test]
    fn the_interval_holds_the_mean_and_narrows_with_length() {
        let series = |n: u64| (0..n).map(|i| (i * i % 97) as f64).collect::<Vec<_>>();
        let width = |n: u64| {
            let (mean, interval) = mean_with_interval(&series(n), 1);
            let [low, high] = interval.unwrap_or_default();
            assert!(low <= mean && mean <= high, "{low} {mean} {high}");
            high - low
        };
        assert!(width(50_000) < width(200) / 2.0);
        assert_eq!(mean_with_interval(&[1.0, 3.0], 1), (2.0, None));
    }
}
