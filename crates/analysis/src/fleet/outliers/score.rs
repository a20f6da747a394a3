//! The distance of a value from the typical one, by robust statistics that a few outliers do not move.

use crate::stats::{MAD_TO_SIGMA, ascending, median, median_absolute_deviation, type7_lower};

/// The 90 % and 75 % points of the standard normal distribution.
const AT_90: f64 = 1.2816;
const AT_75: f64 = 0.6745;
/// From this number of values on, the upper spread is measured at the 90 % point, below it at the 75 % point.
const MANY: usize = 40;

/// Sorted values.
#[derive(Clone, Debug)]
pub(in crate::fleet) struct Ordered(Vec<f64>);

impl Ordered {
    pub fn new(values: impl Iterator<Item = f64>) -> Self {
        Self(ascending(values))
    }

    /// Number of values.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The median; 0 if there are no values.
    pub fn median(&self) -> f64 {
        median(&self.0).unwrap_or(0.0)
    }

    /// The median absolute deviation from the median; 0 if there are no values.
    pub fn deviation(&self) -> f64 {
        median_absolute_deviation(&self.0, self.median()).unwrap_or(0.0)
    }

    /// The quantile of this share, rounded towards lower values; 0 if there are no values.
    pub fn quantile(&self, share: f64) -> f64 {
        type7_lower(&self.0, share).unwrap_or(0.0)
    }

    /// The standard deviation of the upper side, as if it were normal: the larger of those from the median absolute deviation and from an
    /// upper quantile. Up to a tenth of outliers do not move it (a quarter if there are few values).
    pub fn spread(&self) -> f64 {
        let middle = self.median();
        let (share, normal) = if self.0.len() >= MANY { (0.9, AT_90) } else { (0.75, AT_75) };
        (MAD_TO_SIGMA * self.deviation()).max((self.quantile(share) - middle) / normal)
    }
}

/// Transforms counts to a scale on which chance has a standard deviation of one, whatever the mean (Anscombe, "The Transformation of Poisson,
/// Binomial and Negative-Binomial Data", Biometrika 35, 1948).
pub(in crate::fleet) fn anscombe(count: f64) -> f64 {
    2.0 * (count + 0.375).sqrt()
}

/// The probability of a maximum above `value`, from the maxima of all nodes. Their upper tail is modelled as a power law whose exponent the 90 %
/// and 97 % points give (Hill's estimate by quantiles, so that outliers have no influence). For an exponential tail this is conservative.
pub(in crate::fleet) fn chance_of_maximum(value: f64, maxima: &Ordered) -> f64 {
    let (from, far) = (maxima.quantile(0.9), maxima.quantile(0.97));
    if value <= from || from <= 0.0 {
        return 1.0;
    }
    let scale = (far / from).ln().max(0.05) / (0.1f64 / 0.03).ln();
    0.1 * (-(value / from).ln() / scale).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_odd_values_moves_nothing() {
        let healthy = |n: u32| f64::from(n % 19) - 9.0;
        let clean = Ordered::new((0..1_000).map(healthy));
        let odd = Ordered::new((0..1_000).map(|n| if n % 11 == 0 { 1e6 } else { healthy(n) }));
        assert!((clean.median() - odd.median()).abs() <= 1.0);
        assert!(odd.spread() < 1.6 * clean.spread(), "{} {}", odd.spread(), clean.spread());
        assert_eq!(Ordered::new([].into_iter()).median(), 0.0);
    }

    #[test]
    fn the_longest_of_a_heavy_tail_is_no_wonder() {
        // Maxima with a Pareto tail of exponent 1.5: the highest of 2,000 is some 150 times the median.
        let maxima = Ordered::new((1..=2_000).map(|n| (f64::from(n) / 2_000.5).powf(-1.0 / 1.5)));
        assert!(chance_of_maximum(maxima.quantile(1.0), &maxima) > 1e-4);
        assert!(chance_of_maximum(1e5, &maxima) < 1e-6);
    }
}
