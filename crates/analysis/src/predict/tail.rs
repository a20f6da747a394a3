//! The longest detours of a trace as a distribution, for resampling.
//!
//! A job of many ranks waits for the longest detours, and a bootstrap that only repeats those that were seen knows no longer ones: its intervals
//! are too short (Bickel & Freedman, Annals of Statistics 9, 1981). So the longest are drawn from the distribution that excesses over a high
//! threshold tend to, the generalised Pareto distribution (Pickands, Annals of Statistics 3, 1975), fitted by probability-weighted moments
//! (Hosking & Wallis, Technometrics 29, 1987). Each resampled trace has its own fit, as uncertain as one to so few excesses is.

use quell_recording::{Nanos, Trace};
use quell_sim::Draws;

use crate::stats::{ascending, poisson_at_least};

/// Maximum number of detours in the tail, a fifth of all, within these limits. It is halved until the fit is a good one.
const FEWEST: usize = 20;
const MOST: usize = 200;
/// A tail of at most this shape ends soon.
const ENDS: f64 = -0.3;
/// Maximum Cramér–von Mises statistic of a good fit: exceeded by one in a hundred samples of 25 to 200 excesses with shapes from -0.3 to 0.3
/// (3,000 drawn of each; Choulakian & Stephens, Technometrics 43, 2001, for other estimators).
const GOOD: f64 = 0.2;
/// Number of the longest detours that a fit has to explain each, because the distance hardly notices so few.
const EXPLAINED: usize = 10;
/// Minimum probability of as many detours of that length or more as there are, for each of these.
const UNLIKELY: f64 = 0.001;
/// Minimum shape of a heavy tail. From 1/2 on, the variance is infinite and a bootstrap of means is inconsistent (Athreya, Annals of Statistics
/// 15, 1987). It is lower, because fits are: 25 excesses of shape 1/2 give 0.35 in the mean, and 0.04 or less in one of ten (4,000 drawn).
const HEAVY: f64 = 0.25;
/// Maximum shape. From 1 on, the mean is infinite.
const HEAVIEST: f64 = 0.95;

/// The distribution of the longest detours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tail {
    /// Detours that are longer belong to it, in nanoseconds.
    threshold: u64,
    shape: f64,
    scale: f64,
    /// Number of detours that it was fitted to.
    count: usize,
}

impl Tail {
    /// The tail of some traces; `None` if they hold too few detours, or if the longest have no such tail: they may be all alike, or from
    /// sources that differ.
    pub(super) fn from_traces(traces: &[Trace]) -> Option<Self> {
        let noise = traces.iter().flat_map(Trace::noise);
        let mut durations: Vec<u64> = noise.map(|detour| detour.duration.as_nanos()).collect();
        durations.sort_unstable();
        let most = (durations.len() / 5).clamp(FEWEST, MOST);
        std::iter::successors(Some(most), |count| Some(count / 2))
            .take_while(|count| *count >= FEWEST)
            .find_map(|count| Self::from_longest(&durations, count))
            // A tail that ends is known from the trace: drawing from a fit would only blur its end.
            .filter(|tail| tail.shape > ENDS)
    }

    /// A good fit to the longest of these durations, which ascend.
    fn from_longest(durations: &[u64], count: usize) -> Option<Self> {
        let (_, longest) = durations.split_at(durations.len().checked_sub(count)?);
        let threshold = *durations.get(durations.len().checked_sub(count + 1)?)?;
        let excesses: Vec<f64> = longest.iter().map(|duration| (duration - threshold) as f64).collect();
        let (shape, scale) = fit(&excesses)?;
        let tail = Self { threshold, shape, scale, count };
        (tail.distance(&excesses) <= GOOD && tail.explains(&excesses)).then_some(tail)
    }

    /// Whether the longest of these excesses, which ascend, are not too many for this distribution.
    fn explains(&self, excesses: &[f64]) -> bool {
        let count = excesses.len() as f64;
        let likely = |(number, excess): (u32, &f64)| {
            let expected = count * (1.0 - self.share_below(*excess));
            poisson_at_least(number, expected) >= UNLIKELY
        };
        (1..).zip(excesses.iter().rev().take(EXPLAINED)).all(likely)
    }

    /// Whether a few of its longest detours can make up most of what a job loses.
    pub(super) fn is_heavy(&self) -> bool {
        self.shape > HEAVY
    }

    /// The Cramér–von Mises statistic of excesses, which ascend.
    fn distance(&self, excesses: &[f64]) -> f64 {
        let count = excesses.len() as f64;
        let square = |(at, excess): (usize, &f64)| {
            let expected = (at as f64 + 0.5) / count;
            (self.share_below(*excess) - expected).powi(2)
        };
        excesses.iter().enumerate().map(square).sum::<f64>() + 1.0 / (12.0 * count)
    }

    /// A fit to as many excesses drawn from this one.
    pub(super) fn again(self, draws: &Draws) -> Self {
        let drawn = (0..self.count as u64).map(|index| self.excess(uniform(draws.at(index))));
        let (shape, scale) = fit(&ascending(drawn)).unwrap_or((self.shape, self.scale));
        Self { shape: shape.min(HEAVIEST), scale, ..self }
    }

    /// The duration that is exceeded once in this many recordings.
    pub(super) fn longest_in(&self, recordings: f64) -> Nanos {
        let excess =
            Self { shape: self.shape.min(HEAVIEST), ..*self }.excess(1.0 / (recordings * self.count as f64));
        Nanos::from_nanos_f64(self.threshold as f64 + excess).unwrap_or(Nanos::MAX)
    }

    /// Whether a detour of this duration belongs to the tail.
    pub(super) fn holds(&self, duration: Nanos) -> bool {
        duration.as_nanos() > self.threshold
    }

    /// The duration of a detour: its own, or a drawn one if it belongs to the tail.
    pub(super) fn redraw(&self, duration: Nanos, random: u64) -> Nanos {
        if !self.holds(duration) {
            return duration;
        }
        let excess = Nanos::from_nanos_f64(self.excess(uniform(random))).unwrap_or(Nanos::MAX);
        Nanos::from_nanos(self.threshold.saturating_add(excess.as_nanos()))
    }

    /// The share of excesses below this one.
    fn share_below(&self, excess: f64) -> f64 {
        let scaled = excess / self.scale;
        if self.shape.abs() < 1e-9 {
            return -(-scaled).exp_m1();
        }
        let base = (1.0 + self.shape * scaled).max(0.0);
        1.0 - base.powf(-1.0 / self.shape)
    }

    /// The excess that is exceeded with this probability.
    fn excess(&self, probability: f64) -> f64 {
        let log = -probability.ln();
        if self.shape.abs() < 1e-9 {
            self.scale * log
        } else {
            self.scale * (self.shape * log).exp_m1() / self.shape
        }
    }
}

/// Shape and scale of a generalised Pareto distribution, from excesses that ascend.
fn fit(excesses: &[f64]) -> Option<(f64, f64)> {
    let count = excesses.len() as f64;
    let mean = excesses.iter().sum::<f64>() / count;
    let weighted = excesses.iter().enumerate().map(|(at, excess)| {
        // Hosking & Wallis: p = (i - 0.35) / n.
        (1.0 - (at as f64 + 0.65) / count) * excess
    });
    let weighted = weighted.sum::<f64>() / count;
    let denominator = mean - 2.0 * weighted;
    let alike = excesses.last()? - excesses.first()? < 1.0;
    (!alike && denominator > 0.0).then(|| (2.0 - mean / denominator, 2.0 * mean * weighted / denominator))
}

/// From 0, which is left out, to 1.
fn uniform(random: u64) -> f64 {
    ((random >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use quell_recording::{Cpu, Detour, Span};

    use super::*;

    fn trace(durations: impl Iterator<Item = u64>) -> Trace {
        let at = |(index, duration): (usize, u64)| Detour {
            start: Nanos::from_nanos(index as u64 * 1_000_000_000),
            duration: Nanos::from_nanos(duration),
            own: false,
        };
        let detours: Vec<Detour> = durations.enumerate().map(at).collect();
        let end = Nanos::from_secs(detours.len() as u64 + 1);
        Trace { cpu: Cpu(0), span: Span { start: Nanos::ZERO, end }, detours }
    }

    /// P(X > x) = (x / 5 us)^-1.5: excesses have the shape 1 / 1.5, and above u the scale u / 1.5.
    #[test]
    fn a_pareto_tail_is_found() {
        let shapes = (0..50).map(|seed| {
            let draws = Draws::new(seed, &[]);
            let durations = (0..1000).map(|i| (5_000.0 * uniform(draws.at(i)).powf(-1.0 / 1.5)) as u64);
            let tail = Tail::from_traces(&[trace(durations)]).unwrap();
            let exceeded = 1_000.0 / tail.count as f64;
            assert!((tail.threshold as f64 / (5_000.0 * exceeded.powf(1.0 / 1.5)) - 1.0).abs() < 0.3);
            tail.shape
        });
        let mean = shapes.sum::<f64>() / 50.0;
        // Probability-weighted moments tend to be a little low where the variance is infinite.
        assert!((0.5..0.72).contains(&mean), "{mean}");
    }

    /// Of exponential durations, one in n is longer than mean × ln n.
    #[test]
    fn the_longest_in_ten_recordings_is_that_of_the_distribution() {
        let longest = (0..50).map(|seed| {
            let draws = Draws::new(seed, &[]);
            let durations = (0..1000).map(|i| (-50_000.0 * uniform(draws.at(i)).ln()) as u64);
            Tail::from_traces(&[trace(durations)]).unwrap().longest_in(10.0).as_nanos() as f64
        });
        let middle = crate::stats::median_low(&crate::stats::ascending(longest)).unwrap();
        let expected = 50_000.0 * 10_000f64.ln();
        assert!((middle / expected - 1.0).abs() < 0.1, "{middle} {expected}");
    }

    #[test]
    fn what_has_no_tail_is_left_as_it_is() {
        assert_eq!(Tail::from_traces(&[trace((1..=10).map(|i| i * 100))]), None);
        let evenly_up_to_an_end = (1..=1000).map(|i| i * 100);
        assert_eq!(Tail::from_traces(&[trace(evenly_up_to_an_end)]), None);
        assert_eq!(Tail::from_traces(&[trace((0..500).map(|_| 10_000_000))]), None);
        let two_sources = (0..500).map(|i| if i < 460 { 9_000 } else { 10_000_000 });
        assert_eq!(Tail::from_traces(&[trace(two_sources)]), None);
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} for {expected}");
    }

    fn tail(shape: f64) -> Tail {
        Tail { threshold: 1_000, shape, scale: 10.0, count: 10 }
    }

    #[test]
    fn uniform_numbers_go_from_above_zero_to_one() {
        assert_eq!(uniform(0), 2f64.powi(-53));
        assert_eq!(uniform(1 << 63), 0.5 + 2f64.powi(-53));
        assert_eq!(uniform(u64::MAX), 1.0);
    }

    /// F(x) = 1 − (1 + k x / s)^(−1/k), and 1 − exp(−x / s) for k = 0.
    #[test]
    fn shares_and_excesses_are_those_of_the_distribution() {
        near(tail(0.5).share_below(20.0), 0.75);
        near(tail(0.5).excess(0.25), 20.0);
        near(tail(-0.5).share_below(10.0), 0.75);
        near(tail(-0.5).excess(0.25), 10.0);
        assert_eq!(tail(-0.5).share_below(21.0), 1.0, "beyond its end at s / 0.5");
        near(tail(0.0).share_below(10.0 * 4f64.ln()), 0.75);
        near(tail(0.0).excess(0.25), 10.0 * 4f64.ln());
    }

    #[test]
    fn the_longest_of_a_heavy_tail_is_bounded_by_its_shape() {
        let longest = |shape| tail(shape).longest_in(10.0).as_nanos() as f64;
        // One in ten recordings of ten: the hundredth part.
        assert!((longest(0.0) - (1_000.0 + 10.0 * 100f64.ln())).abs() < 1.0);
        assert!((longest(0.5) - (1_000.0 + 10.0 * 9.0 / 0.5)).abs() < 1.0);
        assert!((longest(2.0) - (1_000.0 + 10.0 * (100f64.powf(0.95) - 1.0) / 0.95)).abs() < 1.0);
    }

    #[test]
    fn a_detour_of_the_threshold_is_not_in_the_tail() {
        let ns = Nanos::from_nanos;
        assert!(!tail(0.0).holds(ns(1_000)) && tail(0.0).holds(ns(1_001)));
        assert_eq!(tail(0.0).redraw(ns(1_000), 0), ns(1_000));
        assert_eq!(tail(0.0).redraw(ns(1_001), u64::MAX), ns(1_000), "nothing exceeds the threshold by less");
        let drawn = tail(0.0).redraw(ns(1_001), 1 << 62).as_nanos() as f64;
        assert!((drawn - (1_000.0 + 10.0 * 4f64.ln())).abs() < 1.0, "{drawn}");
    }

    /// P(X > x) = exp(-x). Twenty: one above x has the probability 1 - exp(-m), two 1 - exp(-m) (1 + m), with m = 20 exp(-x).
    #[test]
    fn a_fit_explains_each_of_the_longest() {
        let tail = Tail { threshold: 0, shape: 0.0, scale: 1.0, count: 20 };
        let explains = |longest: &[f64]| {
            let rest = std::iter::repeat_n(0.5, 20 - longest.len());
            tail.explains(&rest.chain(longest.iter().copied()).collect::<Vec<_>>())
        };
        assert!(explains(&[9.8]) && !explains(&[10.0]), "0.00110 and 0.00091");
        assert!(explains(&[6.0, 6.0]) && !explains(&[6.2, 6.2]), "0.00119 and 0.00080");
        let ends = Tail { shape: -0.5, ..tail };
        assert!(!ends.explains(&[0.5, 2.0]), "it ends at 2");
    }

    /// Of 10 and 30: mean 20, and the weights are 1 − 0.65 / 2 and 1 − 1.65 / 2.
    #[test]
    fn a_fit_is_by_weighted_moments() {
        let (shape, scale) = fit(&[10.0, 30.0]).unwrap();
        near(shape, 2.0 - 20.0 / (20.0 - 2.0 * 6.0));
        near(scale, 2.0 * 20.0 * 6.0 / (20.0 - 2.0 * 6.0));
        assert!(fit(&[5.0, 6.0]).is_some() && fit(&[5.0, 5.9]).is_none(), "less than a nanosecond apart");
        assert_eq!(fit(&[]), None);
    }

    /// W² = Σ (F(x) − (2 i − 1) / 2 n)² + 1 / 12 n.
    #[test]
    fn the_distance_is_that_of_cramer_and_von_mises() {
        let at = |share: f64| -10.0 * (1.0 - share).ln();
        near(tail(0.0).distance(&[at(0.25), at(0.75)]), 1.0 / 24.0);
        near(tail(0.0).distance(&[at(0.5), at(0.75)]), 0.25 * 0.25 + 1.0 / 24.0);
        near(
            tail(0.0).distance(&[at(0.25), at(0.25), at(0.25)]),
            1.0 / 144.0 + 1.0 / 16.0 + 49.0 / 144.0 + 1.0 / 36.0,
        );
    }

    /// Evenly spaced quantiles of an exponential distribution, ascending.
    fn exponential(count: usize) -> Vec<u64> {
        let share = |at: usize| (at as f64 + 0.5) / count as f64;
        (0..count).map(|at| (-50_000.0 * (1.0 - share(at)).ln()) as u64).collect()
    }

    #[test]
    fn the_threshold_is_the_longest_that_is_not_in_the_tail() {
        let durations = exponential(100);
        let tail = Tail::from_longest(&durations, 20).unwrap();
        assert_eq!((tail.threshold, tail.count), (durations[79], 20));
        assert!(Tail::from_longest(&durations, 99).is_some());
        assert_eq!(Tail::from_longest(&durations, 100), None, "no threshold is left");
        assert_eq!(Tail::from_longest(&durations, 101), None);
    }

    #[test]
    fn a_tail_is_a_fifth_within_limits_and_halved_until_it_fits() {
        let count =
            |durations: Vec<u64>| Tail::from_traces(&[trace(durations.into_iter())]).map(|tail| tail.count);
        assert_eq!(
            [50, 100, 400, 1_000, 2_000].map(|n| count(exponential(n))),
            [20, 20, 80, 200, 200].map(Some)
        );
        let mut two_sources: Vec<u64> = (0..880).map(|at| 1_000 + at).collect();
        two_sources.extend(exponential(120).iter().map(|duration| 10_000_000 + 100 * duration));
        assert_eq!(count(two_sources), Some(100));
    }
}
