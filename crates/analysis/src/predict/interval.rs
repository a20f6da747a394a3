//! Confidence intervals from runs on resampled traces.
//!
//! The percentile interval (Efron, "Nonparametric Standard Errors and Confidence Intervals", Canadian Journal of Statistics 9, 1981) of the
//! resampled runs' means, without what chance alone adds to their spread.

use crate::stats::{ascending, mean, mean_half_width, median_low, student_t, variance};
use crate::stats::{type7_higher, type7_lower};

/// Minimum number of runs for an interval.
pub(super) const FEWEST: usize = 8;
/// With fewer resampled runs their 2.5 % and 97.5 % points are beyond the shortest and the longest.
const ENOUGH: usize = 40;

/// Variance of a median over that of a mean, of many values of a normal distribution: π / 2.
const OF_A_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// How many standard errors above the estimate the variance of the runs is taken to be. Without this, intervals of runs that differ mostly by
/// chance hold the truth in 91 of 100 cases; with it in 95 to 99, and those of all other runs in 95.
const ERRORS: f64 = 0.5;

/// The means of runs, each split into chains: independent runs of equal length.
#[derive(Clone, Debug)]
pub(super) struct Means {
    /// The chains on the recorded traces.
    pub recorded: Vec<f64>,
    /// The chains of each run on resampled traces.
    pub resampled: Vec<Vec<f64>>,
    /// The ratio of the length of a chain on resampled traces to that of one on the recorded traces.
    pub longer: f64,
}

impl Means {
    /// The 95 % interval; `None` if the runs are too few. It contains the mean of the recorded chains.
    ///
    /// The means of resampled runs differ because their traces differ, as the recorded ones differ from others of the same length, and by
    /// chance, because a run places its ranks at random in a limited number of phases. Only the former belongs to the interval, so it
    /// is drawn in around their median by the share that chance has of the variance.
    pub(super) fn interval(&self) -> Option<[f64; 2]> {
        let value = mean(self.recorded.iter().copied())?;
        let means: Vec<f64> = self.resampled.iter().filter_map(|one| mean(one.iter().copied())).collect();
        let count = means.len();
        if count < FEWEST {
            return None;
        }
        let all = spread(&means)?;
        let chance = self.chance().min(all);
        // The standard error of a normal distribution's variance.
        let at_most = all * (1.0 + ERRORS * (2.0 / (count - 1) as f64).sqrt());
        let kept = at_most - chance + chance * OF_A_MEDIAN / count as f64;
        let kept = if all > 0.0 { (kept / all).sqrt().min(1.0) } else { 1.0 };
        let sorted = ascending(means);
        let middle = median_low(&sorted)?;
        let (low, high) = if count >= ENOUGH {
            (type7_lower(&sorted, 0.025)?, type7_higher(&sorted, 0.975)?)
        } else {
            // Student's interval for one more value of a normal distribution.
            let half = student_t(0.975, count as u64 - 1) * (all * (1.0 + 1.0 / count as f64)).sqrt();
            (middle - half, middle + half)
        };
        Some([(middle - kept * (middle - low)).min(value), (middle + kept * (high - middle)).max(value)])
    }

    /// The variance by chance of a resampled run's mean: from the differences between its chains, or if it has only one, between the
    /// recorded chains.
    fn chance(&self) -> f64 {
        let within = self.resampled.iter().filter_map(|one| Some(spread(one)? / one.len() as f64));
        let within: Vec<f64> = within.collect();
        let recorded = || spread(&self.recorded).map(|variance| variance / self.longer);
        mean(within.iter().copied()).or_else(recorded).unwrap_or(0.0)
    }
}

/// The unbiased variance; `None` for fewer than two values.
fn spread(values: &[f64]) -> Option<f64> {
    variance(values.iter().copied(), mean(values.iter().copied())?)
}

/// Half the length of the 95 % interval of a mean of independent values; `None` if there are too few.
pub(crate) fn half_width_of_mean(values: &[f64]) -> Option<f64> {
    (values.len() >= FEWEST).then(|| mean_half_width(values.iter().copied(), 0.95)).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_sim::Draws;
    use statrs::distribution::{ContinuousCDF as _, Normal};

    use super::*;

    fn normal(draws: &Draws, at: u64) -> f64 {
        Normal::new(0.0, 1.0).unwrap().inverse_cdf(draws.unit(at).max(f64::EPSILON))
    }

    /// Traces whose true mean is 0 and varies by 1; the chains of a run vary by `chance`. The share of intervals that hold 0.
    fn coverage(runs: usize, chains: usize, chance: f64, longer: f64) -> f64 {
        let held = (0..2_000).filter(|&seed| {
            let draws = Draws::new(seed, &[runs as u64]);
            let trace = normal(&draws, 0);
            let mut at = 0;
            let mut chain = |around: f64, chance: f64| {
                at += 1;
                around + chance * normal(&draws, at)
            };
            let recorded = (0..20).map(|_| chain(trace, chance)).collect();
            let resampled = (0..runs).map(|_| {
                let around = chain(trace, 1.0);
                (0..chains).map(|_| chain(around, chance / longer.sqrt())).collect()
            });
            let means = Means { recorded, resampled: resampled.collect(), longer };
            let [low, high] = means.interval().unwrap();
            (low..=high).contains(&0.0)
        });
        held.count() as f64 / 2_000.0
    }

    #[test]
    fn it_holds_the_truth_whatever_chance_adds() {
        for (runs, chains, chance, longer) in [
            (40, 8, 0.1, 1.0),
            (40, 8, 2.0, 1.0),
            (40, 8, 4.0, 1.0),
            (40, 1, 1.0, 3.0),
            (100, 1, 0.5, 1.0),
            (20, 1, 0.5, 3.0),
        ] {
            let held = coverage(runs, chains, chance, longer);
            assert!((0.925..=0.98).contains(&held), "{runs} × {chains}, {chance}: {held}");
        }
    }

    #[test]
    fn a_few_runs_are_no_interval() {
        let means = |count| Means { recorded: vec![1.0], resampled: vec![vec![1.0]; count], longer: 1.0 };
        assert_eq!(means(FEWEST - 1).interval(), None);
        assert_eq!(means(FEWEST).interval(), Some([1.0, 1.0]));
        assert_eq!(half_width_of_mean(&[1.0; FEWEST - 1]), None);
    }

    /// Student's interval of one more value: median ∓ t(0.975, 19) × √(35 × (1 + 1/20)), with t from tables.
    #[test]
    fn twenty_runs_are_widened_by_students_factor() {
        let resampled = (0..20).map(|i| vec![f64::from(i)]).collect();
        let means = Means { recorded: vec![9.0], resampled, longer: 1.0 };
        let [low, high] = means.interval().unwrap();
        let half = 2.093_024 * (35.0_f64 * 1.05).sqrt();
        assert!((low - (9.0 - half)).abs() < 1e-3 && (high - (9.0 + half)).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn the_middle_95_percent_of_many() {
        let resampled = (0..1_000).map(|i| vec![f64::from(i)]).collect();
        let means = Means { recorded: vec![2_000.0], resampled, longer: 1.0 };
        assert_eq!(means.interval(), Some([24.0, 2_000.0]), "and it contains the value");
    }
}
