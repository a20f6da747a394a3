//! Results of emulated phases, compared with their prediction.
//!
//! The program, MaxQT and its slowdown are those of De, Kothari & Mann, "A Trace-driven Emulation Framework to Predict
//! Scalability of Large Clusters in Presence of OS Jitter" (IEEE Cluster 2008), §III-A and eq. 3: 100 × (AvgMaxQT with
//! noise − AvgMaxQT without) / AvgMaxQT without. Only compute times count, as for the emulation without barriers of §VI.

mod document;

pub use document::{Emulation, Machine, OwnNoise, Point, SCHEMA};

use crate::predict::half_width_of_mean;
use crate::stats::{ascending, mean, type7_nearest};

/// Maximum number of batches for an interval …
const MOST_BATCHES: usize = 20;
/// … and minimum.
const FEWEST_BATCHES: usize = 8;

/// Measured phases of one scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// MaxQT of each phase in order, in nanoseconds.
    pub max_ns: Vec<f64>,
    /// The prediction of the progress clock for each, from the exact places of its ranks, in nanoseconds.
    pub in_place_ns: Vec<f64>,
    /// Quanta without noise that ran in between, in nanoseconds.
    pub references_ns: Vec<f64>,
    /// Total duration, in nanoseconds.
    pub wall_ns: u64,
    /// The effect of this machine's own noise during the emulation.
    pub own: OwnNoise,
}

/// The point of one scale; `None` if no phase ran. `predicted` is the predicted slowdown of the same phases, in percent.
///
/// # Confidence
/// The 95 % interval is that of a mean of batches: consecutive phases depend on each other, so the phases are cut into up
/// to twenty batches of equal length, whose means vary like independent values (Student's distribution). It covers other phases
/// of the same trace, but not another trace.
pub fn point(ranks: u64, quantum_ns: u64, measured: &Measured, predicted: Option<f64>) -> Option<Point> {
    let phases = measured.max_ns.len();
    let mean_max_ns = mean(measured.max_ns.iter().copied())?;
    let references = ascending(measured.references_ns.iter().copied());
    let base = mean_of_the_largest(&references, ranks)?;
    let percent = |ns: f64| 100.0 * (ns - base) / base;
    let slowdown = percent(mean_max_ns);
    let half = half_width_of_mean(&batches(&measured.max_ns)).map(|half| 100.0 * half / base);
    let difference = |predicted: Option<f64>| {
        predicted
            .filter(|predicted| *predicted > 0.0)
            .map(|predicted| 100.0 * (slowdown - predicted) / predicted)
    };
    let in_place = mean(measured.in_place_ns.iter().copied());
    let in_place = in_place.map(|mean| 100.0 * (mean - quantum_ns as f64) / quantum_ns as f64);
    let (p50, p99_9) = (type7_nearest(&references, 0.5)?, type7_nearest(&references, 0.999)?);
    Some(Point {
        ranks,
        phases: phases as u64,
        mean_max_qt_ns: mean_max_ns,
        longest_max_qt_ns: measured.max_ns.iter().copied().fold(0.0, f64::max),
        base_ns: base,
        references: references.len() as u64,
        reference_p50_ns: p50,
        reference_spread_ns: p99_9 - p50,
        slowdown_percent: slowdown,
        ci95_percent: half.map(|half| [slowdown - half, slowdown + half]),
        predicted_percent: predicted,
        difference_percent: difference(predicted),
        in_place_percent: in_place,
        difference_in_place_percent: difference(in_place),
        wall_ns: measured.wall_ns,
        own: measured.own,
    })
}

/// The mean of the largest of `count` draws from these ascending values. This is AvgMaxQT of ranks without noise.
///
/// The largest of N draws is at most the i-th of n values with probability (i/n)^N.
fn mean_of_the_largest(ascending: &[f64], count: u64) -> Option<f64> {
    let n = ascending.len() as f64;
    let below = |i: usize| (i as f64 / n).powf(count as f64);
    (!ascending.is_empty())
        .then(|| ascending.iter().enumerate().map(|(i, value)| value * (below(i + 1) - below(i))).sum())
}

/// The means of batches of equal length; values that do not fill the last batch are omitted.
fn batches(values: &[f64]) -> Vec<f64> {
    let count = (values.len() / 2).min(MOST_BATCHES);
    if count < FEWEST_BATCHES {
        return Vec::new();
    }
    values
        .chunks_exact(values.len() / count)
        .take(count)
        .filter_map(|batch| mean(batch.iter().copied()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_is_that_of_the_slowest_above_the_slowest_without_noise() {
        let measured = Measured {
            max_ns: (0..40).map(|i| 1_100.0 + f64::from(i % 2) * 20.0).collect(),
            in_place_ns: vec![1_100.0; 40],
            references_ns: vec![1_000.0; 100],
            ..Measured::default()
        };
        let point = point(16, 1_000, &measured, Some(10.0)).unwrap();
        assert_eq!((point.phases, point.mean_max_qt_ns, point.base_ns), (40, 1_110.0, 1_000.0));
        assert!((point.slowdown_percent - 11.0).abs() < 1e-9);
        assert!((point.difference_percent.unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(point.in_place_percent, Some(10.0));
        let [low, high] = point.ci95_percent.unwrap();
        assert!(low <= 11.0 && high >= 11.0, "{low} {high}");
        assert_eq!(super::point(16, 1_000, &Measured::default(), None), None);
    }

    #[test]
    fn the_largest_of_many_is_near_the_top() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let largest = |count| mean_of_the_largest(&values, count).unwrap();
        assert!((largest(1) - 50.5).abs() < 1e-9);
        assert!((largest(2) - 67.165).abs() < 1e-9, "{}", largest(2));
        assert!(largest(10_000) > 99.99);
        assert_eq!(mean_of_the_largest(&[], 3), None);
    }

    #[test]
    fn few_phases_make_no_interval() {
        assert!(batches(&[1.0; 15]).is_empty());
        assert_eq!(batches(&[1.0; 16]).len(), 8);
        assert_eq!(batches(&[1.0; 999]).len(), 20);
    }
}
