//! The runs behind a point, for comparing two predictions: equal options and seed make equal draws, so differences are paired.

use super::{half_width, half_width_of_mean};
use crate::stats::{ascending, mean, median_low, type7_higher, type7_lower};

/// Mean phases of one scale's runs, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// The mean phase without noise.
    pub silent_ns: f64,
    /// The mean phase of each run on the recorded traces; without messages one run covers all phases.
    pub noisy_ns: Vec<f64>,
    /// The mean phase of each chain of that one run.
    pub chains_ns: Vec<f64>,
    /// The mean phase of each run on resampled traces; `None` if the traces left no useful time.
    pub resampled_ns: Vec<Option<f64>>,
    /// The ratio of the length of runs on resampled traces to that of the others.
    pub longer: f64,
}

/// A difference with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub value: f64,
    pub ci95: Option<[f64; 2]>,
}

impl Sample {
    /// 100 × (mean − silent) / silent.
    pub(crate) fn slowdown_percent(&self) -> f64 {
        self.percent(mean(self.noisy_ns.iter().copied()).unwrap_or(0.0))
    }

    /// The 95 % confidence interval of the slowdown, which is not negative.
    pub(crate) fn slowdown_interval(&self) -> Option<[f64; 2]> {
        let silent = Self {
            silent_ns: self.silent_ns,
            noisy_ns: vec![self.silent_ns; self.noisy_ns.len()],
            chains_ns: vec![self.silent_ns; self.chains_ns.len()],
            resampled_ns: vec![Some(self.silent_ns); self.resampled_ns.len()],
            longer: self.longer,
        };
        Some(self.gain(&silent).ci95?.map(|end| end.max(0.0)))
    }

    fn percent(&self, phase_ns: f64) -> f64 {
        if self.silent_ns > 0.0 { 100.0 * (phase_ns - self.silent_ns) / self.silent_ns } else { 0.0 }
    }

    /// The gain of `other`, drawn with the same options and seed: by how many percentage points its slowdown is lower.
    ///
    /// As for a prediction: with one run the interval has the 2.5 % and 97.5 % points of the resampled differences, shifted so that
    /// their median is the difference, and is at least the interval by chance of a mean of the run's chains; with several runs it is
    /// Student's (see [`super::Messages`]).
    pub(crate) fn gain(&self, other: &Self) -> Difference {
        let value = self.slowdown_percent() - other.slowdown_percent();
        let pair = |mine: f64, theirs: f64| self.percent(mine) - other.percent(theirs);
        let pairs = |mine: &[f64], theirs: &[f64]| -> Vec<f64> {
            mine.iter().zip(theirs).map(|(mine, theirs)| pair(*mine, *theirs)).collect()
        };
        let resampled = self.resampled_ns.iter().zip(&other.resampled_ns);
        let resampled: Vec<f64> =
            resampled.filter_map(|(mine, theirs)| Some(pair((*mine)?, (*theirs)?))).collect();
        let ci95 = if self.noisy_ns.len() > 1 {
            let noisy = pairs(&self.noisy_ns, &other.noisy_ns);
            half_width(&noisy, &resampled, self.longer).map(|half| [value - half, value + half])
        } else {
            let half = half_width_of_mean(&pairs(&self.chains_ns, &other.chains_ns)).unwrap_or(0.0);
            middle(value, resampled).map(|[low, high]| [low.min(value - half), high.max(value + half)])
        };
        Difference { value, ci95 }
    }
}

/// The middle 95 % of some values, both ends rounded outwards, shifted so that their median is the value: if detours are long and frequent,
/// those that overlap at the boundaries of blocks are queued, which shifts all resampled runs by a similar amount.
fn middle(value: f64, resampled: Vec<f64>) -> Option<[f64; 2]> {
    let resampled = ascending(resampled);
    let median = median_low(&resampled)?;
    let moved = |end: f64| value + end - median;
    let (low, high) = (type7_lower(&resampled, 0.025)?, type7_higher(&resampled, 0.975)?);
    Some([moved(low).min(value), moved(high).max(value)])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn sample(mean: f64, resampled: Vec<Option<f64>>) -> Sample {
        let chains_ns = Vec::new();
        Sample { silent_ns: 100.0, noisy_ns: vec![mean], chains_ns, resampled_ns: resampled, longer: 1.0 }
    }

    #[test]
    fn gains_are_paired() {
        // The values scatter widely, but equally on both sides.
        let wild = |more: f64| (0..40).map(|i| (i != 3).then(|| 150.0 + more + f64::from(i * i))).collect();
        let gain = sample(170.0, wild(20.0)).gain(&sample(150.0, wild(0.0)));
        assert_eq!(gain, Difference { value: 20.0, ci95: Some([20.0, 20.0]) });
        let none = sample(150.0, Vec::new());
        assert_eq!(none.gain(&none).ci95, None);
    }

    #[test]
    fn intervals_hold_their_point() {
        let interval = |mean, resampled: &[f64]| {
            sample(100.0 + mean, resampled.iter().map(|one| Some(100.0 + one)).collect()).slowdown_interval()
        };
        assert_eq!(interval(5.0, &[]), None);
        assert_eq!(interval(5.0, &[6.0, 7.0]), Some([5.0, 6.0]));
        let hundred: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(interval(80.0, &hundred), Some([33.0, 128.0]));
        assert_eq!(interval(5.0, &hundred), Some([0.0, 53.0]), "a slowdown is not negative");
    }

    #[test]
    fn replicates_that_are_all_alike_leave_what_chance_does() {
        let chains_ns: Vec<f64> = (0..8).map(|chain| if chain == 3 { 1_000.0 } else { 1_100.0 }).collect();
        let noisy_ns = vec![mean(chains_ns.iter().copied()).unwrap()];
        let alike = Sample { noisy_ns, chains_ns, ..sample(0.0, vec![Some(1_100.0); 20]) };
        let [low, high] = alike.slowdown_interval().unwrap();
        assert!(low < 970.0 && high > 1_000.0, "{low} to {high}");
    }
}
