//! The runs behind a point, for comparing two predictions: equal options and seed make equal draws, so differences are paired.

use super::interval::Means;
use crate::stats::mean;

/// Mean phases of one scale's runs, in nanoseconds. Each run is split into chains: independent runs of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// The mean phase without noise.
    pub silent_ns: f64,
    /// The mean phase of each chain on the recorded traces.
    pub recorded_ns: Vec<f64>,
    /// For each run on resampled traces the mean phase of each chain; `None` if the traces left no useful time.
    pub resampled_ns: Vec<Option<Vec<f64>>>,
    /// The ratio of the length of a chain on resampled traces to that of one on the recorded traces.
    pub longer: f64,
}

/// A difference with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub value: f64,
    pub ci95: Option<[f64; 2]>,
}

/// Maximum width of an interval, in percentage points, that says something about a figure of any size.
const NARROW: f64 = 0.1;
/// Maximum ratio of the ends of an interval that says something about a slowdown.
const WITHIN: f64 = 10.0;

impl Sample {
    /// 100 × (mean − silent) / silent.
    pub(crate) fn slowdown_percent(&self) -> f64 {
        self.percent(mean(self.recorded_ns.iter().copied()).unwrap_or(0.0))
    }

    /// The 95 % confidence interval of the slowdown, which is not negative. It is left out if its ends differ by an order of magnitude,
    /// or where no run met any noise: then the traces do not resolve the slowdown.
    pub(crate) fn slowdown_interval(&self) -> Option<[f64; 2]> {
        let [low, high] = self.interval(None)?;
        let (low, high) = (low.min(self.slowdown_percent()).max(0.0), high.max(self.slowdown_percent()));
        // A trace without detours does not show how rare they are.
        (high > 0.0 && (high <= WITHIN * low || high - low <= NARROW)).then_some([low, high])
    }

    /// The same runs, against another time without noise.
    pub(crate) fn against(self, silent_ns: f64) -> Self {
        Self { silent_ns, ..self }
    }

    fn percent(&self, phase_ns: f64) -> f64 {
        if self.silent_ns > 0.0 { 100.0 * (phase_ns - self.silent_ns) / self.silent_ns } else { 0.0 }
    }

    /// The gain of `other`, drawn with the same options and seed: by how many percentage points its slowdown is lower. Its interval is left
    /// out if it is wider than twice this slowdown: then the traces do not resolve the gain.
    pub(crate) fn gain(&self, other: &Self) -> Difference {
        let resolves = |[low, high]: &[f64; 2]| high - low <= (2.0 * self.slowdown_percent()).max(NARROW);
        Difference {
            value: self.slowdown_percent() - other.slowdown_percent(),
            ci95: self.interval(Some(other)).filter(resolves),
        }
    }

    /// The interval of the slowdown, less that of `other` in the same draws.
    fn interval(&self, other: Option<&Self>) -> Option<[f64; 2]> {
        let slowdowns = |sample: &Self, chains: &[f64]| -> Vec<f64> {
            chains.iter().map(|chain| sample.percent(*chain)).collect()
        };
        let pairs = |mine: &[f64], theirs: Option<&[f64]>| {
            let mine = slowdowns(self, mine);
            match (other, theirs) {
                (Some(other), Some(theirs)) => {
                    mine.iter().zip(slowdowns(other, theirs)).map(|(mine, theirs)| mine - theirs).collect()
                }
                _ => mine,
            }
        };
        let resampled = |run: usize| {
            let theirs = match other {
                Some(other) => Some(other.resampled_ns.get(run)?.as_deref()?),
                None => None,
            };
            Some(pairs(self.resampled_ns[run].as_deref()?, theirs))
        };
        let means = Means {
            recorded: pairs(&self.recorded_ns, other.map(|other| other.recorded_ns.as_slice())),
            resampled: (0..self.resampled_ns.len()).filter_map(resampled).collect(),
            longer: self.longer,
        };
        means.interval()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn sample(mean: f64, resampled: Vec<Option<f64>>) -> Sample {
        let resampled_ns = resampled.into_iter().map(|one| one.map(|mean| vec![mean])).collect();
        Sample { silent_ns: 100.0, recorded_ns: vec![mean], resampled_ns, longer: 1.0 }
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
        let interval = |mean, lowest: f64| {
            let hundred = (0..100).map(|one| Some(100.0 + lowest + f64::from(one)));
            sample(100.0 + mean, hundred.collect()).slowdown_interval()
        };
        assert_eq!(interval(150.0, 100.0), Some([102.0, 197.0]));
        assert_eq!(interval(99.0, 100.0), Some([99.0, 197.0]));
        assert_eq!(interval(30.0, 0.0), None, "from nothing to more than three times as much");
    }

    #[test]
    fn nothing_is_no_slower_than_nothing() {
        let sample = Sample { silent_ns: 0.0, recorded_ns: vec![5.0], resampled_ns: Vec::new(), longer: 1.0 };
        assert_eq!(sample.slowdown_percent(), 0.0);
    }

    #[test]
    fn no_noise_is_no_certainty() {
        assert_eq!(sample(100.0, vec![Some(100.0); 40]).slowdown_interval(), None);
    }

    #[test]
    fn a_slowdown_is_not_negative() {
        let around = (0..100).map(|one| Some(100.0 + f64::from(one - 50) / 1_000.0)).collect();
        assert_eq!(sample(100.01, around).slowdown_interval().unwrap()[0], 0.0);
    }

    /// A hundred runs, half of them with each of two slowdowns: the interval is from one to the other.
    fn halves(mean: f64, low: f64, high: f64) -> Sample {
        let runs = (0..100).map(|run| Some(100.0 + if run < 50 { low } else { high }));
        sample(100.0 + mean, runs.collect())
    }

    #[test]
    fn an_interval_that_is_narrow_or_within_a_decade_is_kept() {
        let kept = |low, high| halves((low + high) / 2.0, low, high).slowdown_interval().is_some();
        assert!(kept(1.0, 10.0) && !kept(1.0, 10.5), "ten times");
        assert!(kept(0.0075, 0.099) && !kept(0.0075, 0.12), "a tenth of a point");
    }

    #[test]
    fn a_gain_is_resolved_if_its_interval_is_within_twice_the_slowdown() {
        let gain = |low, high| halves(50.0, low, high).gain(&halves(0.0, 0.0, 0.0)).ci95;
        let near = |found: Option<[f64; 2]>, expected: [f64; 2]| {
            found.unwrap().iter().zip(expected).for_each(|(one, other)| assert!((one - other).abs() < 1e-9));
        };
        near(gain(30.0, 120.0), [30.0, 120.0]);
        assert_eq!(gain(10.0, 150.0), None);
    }
}
