//! The longest detours of a trace as a distribution, for resampling.
//!
//! A job of many ranks waits for the longest detours, and a bootstrap that only repeats those that were seen knows no longer ones: its intervals
//! are too short (Bickel & Freedman, Annals of Statistics 9, 1981). So the longest are drawn from the distribution that excesses over a high
//! threshold tend to, the generalised Pareto distribution (Pickands, Annals of Statistics 3, 1975), fitted by probability-weighted moments
//! (Hosking & Wallis, Technometrics 29, 1987). Each resampled trace has its own fit, as uncertain as one to so few excesses is.

use quell_recording::{Nanos, Trace};
use quell_sim::Draws;

use crate::stats::ascending;

/// Maximum number of detours in the tail, a fifth of all, within these limits. It is halved until the fit is a good one.
const FEWEST: usize = 20;
const MOST: usize = 200;
/// A tail of at most this shape ends soon.
const ENDS: f64 = -0.3;
/// Maximum Cramér–von Mises statistic of a good fit: exceeded by one in a hundred samples of 25 to 200 excesses with shapes from -0.3 to 0.3
/// (3,000 drawn of each; Choulakian & Stephens, Technometrics 43, 2001, for other estimators).
const GOOD: f64 = 0.2;
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
        (tail.distance(&excesses) <= GOOD).then_some(tail)
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
}
