//! Paired differences of one figure: their interval, what their ranks show, and how many pairs would show more.

use crate::stats::{SignedRank, mean, normal_quantile, signed_rank, student_t};

/// Minimum number of pairs to adjust for load: a slope takes a degree of freedom, and few points fit any line.
const LEAST_ADJUSTED: usize = 8;
/// Confidence that load explains a part of the differences, before it is adjusted for.
const EXPLAINS: f64 = 0.95;
/// Where half of a normal distribution lies, in standard deviations: a later mean is that far from 0, without an effect.
const PROBABLE_ERROR: f64 = 0.674_489_750_196_081_7;
/// More pairs than that are not predicted.
const MOST_PAIRS: f64 = 1e6;

/// The gains of all pairs, and the differences in load that they are adjusted for.
#[derive(Clone, Debug)]
pub(super) struct Paired {
    gains: Vec<f64>,
    loads: Option<Vec<f64>>,
    step: f64,
}

impl Paired {
    /// Gains that are only known to a `step`, and the difference in load of each pair.
    ///
    /// They are adjusted if load explains a part of them by a regression through the origin. That choice, and the slope, are the same if the
    /// sides of any pair change places, so it spoils no test that counts on that.
    pub(super) fn new(gains: Vec<f64>, loads: &[f64], step: f64) -> Self {
        let explains = gains.len() >= LEAST_ADJUSTED && explains(&gains, loads);
        let loads = (explains && spread(loads) > 0.0).then(|| loads.to_vec());
        Self { gains, loads, step }
    }

    /// The mean gain; if adjusted, at equal load on both sides, by ordinary least squares.
    pub(super) fn centre(&self) -> f64 {
        let centre = average(&self.gains);
        self.loads.as_ref().map_or(centre, |loads| centre - self.slope().unwrap_or(0.0) * average(loads))
    }

    /// The gain per difference in load, if it was adjusted.
    pub(super) fn slope(&self) -> Option<f64> {
        let loads = self.loads.as_ref()?;
        let (gain, load) = (average(&self.gains), average(loads));
        let products = self.gains.iter().zip(loads).map(|(one, other)| (one - gain) * (other - load));
        Some(products.sum::<f64>() / spread(loads))
    }

    fn degrees(&self, pairs: u64) -> u64 {
        pairs.saturating_sub(1 + u64::from(self.loads.is_some()))
    }

    /// The standard error of the centre.
    fn error(&self) -> Option<f64> {
        let degrees = self.degrees(self.gains.len() as u64);
        if degrees == 0 {
            return None;
        }
        let (centre, slope, count) = (self.centre(), self.slope().unwrap_or(0.0), self.gains.len() as f64);
        let none = vec![0.0; self.gains.len()];
        let loads = self.loads.as_ref().unwrap_or(&none);
        let left = self.gains.iter().zip(loads).map(|(gain, load)| (gain - centre - slope * load).powi(2));
        let variance = left.sum::<f64>() / degrees as f64;
        let leverage = if spread(loads) > 0.0 { average(loads).powi(2) / spread(loads) } else { 0.0 };
        Some((variance * (1.0 / count + leverage)).sqrt())
    }

    /// Half of Student's interval of the centre. It is never narrower than a step on either side, because rounding may err equally in
    /// all pairs.
    pub(super) fn half_width(&self, alpha: f64) -> f64 {
        self.half_width_after(self.gains.len() as u64, alpha)
    }

    /// The same after more pairs of the same spread.
    fn half_width_after(&self, pairs: u64, alpha: f64) -> f64 {
        let Some(error) = self.error() else { return f64::MAX };
        let error = error * (self.gains.len() as f64 / pairs as f64).sqrt();
        let half = (student_t(1.0 - alpha / 2.0, self.degrees(pairs)) * error).max(self.step);
        if half.is_finite() { half } else { f64::MAX }
    }

    /// What ranks show of the gains' distance from `at`.
    ///
    /// Load is adjusted for by the slope through the origin, which stays the same if the sides of a pair change places.
    fn ranks(&self, at: f64) -> Option<SignedRank> {
        let gains: Vec<f64> = self.gains.iter().map(|gain| gain - at).collect();
        let Some(loads) = &self.loads else { return signed_rank(&gains) };
        let slope = product(&gains, loads) / product(loads, loads);
        signed_rank(&gains.iter().zip(loads).map(|(gain, load)| gain - slope * load).collect::<Vec<_>>())
    }

    /// Whether ranks show at level `alpha` that the gains lie above `at`, or below it.
    fn lie(&self, above: bool, at: f64, alpha: f64) -> bool {
        // The probabilities are sums of powers of two, exact up to the last bits.
        self.ranks(at).is_some_and(|found| found.p <= alpha * (1.0 + 1e-9) && (found.z > 0.0) == above)
    }

    /// Whether the interval excludes 0 and the ranks agree.
    pub(super) fn excludes_zero(&self, alpha: f64) -> bool {
        let (centre, half) = (self.centre(), self.half_width(alpha));
        centre.abs() > half && self.lie(centre > 0.0, 0.0, alpha)
    }

    /// Whether the interval lies within ± `limit` and the ranks agree.
    pub(super) fn lies_within(&self, limit: f64, alpha: f64) -> bool {
        self.centre().abs() + self.half_width(alpha) <= limit
            && self.lie(false, limit, alpha)
            && self.lie(true, -limit, alpha)
    }

    /// The number of pairs with which the interval would exclude 0, if centre and spread stay as they are.
    pub(super) fn pairs_to_exclude_zero(&self, alpha: f64) -> Option<u64> {
        let (centre, ranks) = (self.centre(), self.ranks(0.0)?);
        // Where mean and ranks point to different sides, they do not come to agree.
        if (centre > 0.0) != (ranks.z > 0.0) {
            return None;
        }
        let by_ranks = self.pairs_by_ranks(ranks.z.abs(), normal_quantile(1.0 - alpha / 2.0));
        Some(self.pairs_until(alpha, |half, _| half < centre.abs())?.max(by_ranks?))
    }

    /// The number of pairs with which the interval would lie within ± `limit`, if there is no effect and the spread stays as it is.
    pub(super) fn pairs_to_lie_within(&self, limit: f64, alpha: f64) -> Option<u64> {
        let level = normal_quantile(1.0 - alpha / 2.0) + PROBABLE_ERROR;
        let far = |at: f64| self.ranks(self.centre() + at).map(|found| found.z.abs());
        let by_ranks = self.pairs_by_ranks(far(limit)?.min(far(-limit)?), level)?;
        Some(self.pairs_until(alpha, |half, error| half + PROBABLE_ERROR * error <= limit)?.max(by_ranks))
    }

    /// The first number of pairs at which half the interval and the standard error suffice.
    fn pairs_until(&self, alpha: f64, suffice: impl Fn(f64, f64) -> bool) -> Option<u64> {
        let (error, count) = (self.error()?, self.gains.len() as f64);
        let enough =
            |pairs: u64| suffice(self.half_width_after(pairs, alpha), error * (count / pairs as f64).sqrt());
        let least = least_pairs(alpha);
        let mut high = least;
        while !enough(high) {
            high = high.checked_mul(2).filter(|pairs| *pairs as f64 <= MOST_PAIRS)?;
        }
        let mut low = (high / 2).max(least);
        // Half widths only fall with more pairs, so the first number is found by halves.
        while low < high {
            let middle = u64::midpoint(low, high);
            if enough(middle) { high = middle } else { low = middle + 1 }
        }
        Some(high)
    }

    /// A rank sum's distance from balance grows as the root of the number of pairs.
    fn pairs_by_ranks(&self, z: f64, needed: f64) -> Option<u64> {
        let count = self.gains.len() as f64;
        // All of one sign is the most that a number of pairs can show.
        let most = (count * (count + 1.0) * 1.5 / (2.0 * count + 1.0)).sqrt();
        if z >= most * 0.999 {
            return Some(0);
        }
        let pairs = (count * (needed / z).powi(2)).ceil();
        (pairs <= MOST_PAIRS).then_some(pairs as u64)
    }
}

/// The number of pairs that can reach a level by ranks: with one sign, the probability is 2 / 2ⁿ.
pub(super) fn least_pairs(alpha: f64) -> u64 {
    (1.0 - alpha.log2()).ceil().max(2.0) as u64
}

/// Whether the slope of a regression through the origin differs from 0, by Student's test.
fn explains(gains: &[f64], loads: &[f64]) -> bool {
    let squares = product(gains, gains) * product(loads, loads);
    let explained = product(gains, loads).powi(2) / squares;
    let degrees = gains.len().saturating_sub(1);
    let t = (degrees as f64 * explained / (1.0 - explained).max(0.0)).sqrt();
    squares > 0.0 && t >= student_t(0.5 + EXPLAINS / 2.0, degrees as u64)
}

fn average(values: &[f64]) -> f64 {
    mean(values.iter().copied()).unwrap_or(0.0)
}

fn product(some: &[f64], others: &[f64]) -> f64 {
    some.iter().zip(others).map(|(one, other)| one * other).sum()
}

/// The sum of squares about the mean.
fn spread(values: &[f64]) -> f64 {
    let centre = average(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}
