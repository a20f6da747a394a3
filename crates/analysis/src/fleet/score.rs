//! How far a value is from what is usual, by figures that a few odd nodes do not move.

use statrs::function::gamma::gamma_lr;

use crate::stats::{MAD_TO_SIGMA, ascending, median, median_absolute_deviation, type7_lower};

/// Normal quantiles: of the 90 % and 75 % points.
const AT_90: f64 = 1.2816;
const AT_75: f64 = 0.6745;
/// From so many values on the 90 % point says how they spread upwards, else the 75 % point.
const MANY: usize = 40;

/// Sorted values.
#[derive(Clone, Debug)]
pub(super) struct Ordered(Vec<f64>);

impl Ordered {
    pub fn new(values: impl Iterator<Item = f64>) -> Self {
        Self(ascending(values))
    }

    /// The median; 0 for none.
    pub fn median(&self) -> f64 {
        median(&self.0).unwrap_or(0.0)
    }

    /// The value below which this share lies, rounded towards the lower ones; 0 for none.
    pub fn quantile(&self, share: f64) -> f64 {
        type7_lower(&self.0, share).unwrap_or(0.0)
    }

    /// A standard deviation of the upper side, as if it were normal: of the median absolute deviation and of an upper quantile, the
    /// larger. Up to a tenth of odd values do not move it (a quarter where there are few).
    pub fn spread(&self) -> f64 {
        let middle = self.median();
        let deviation = median_absolute_deviation(&self.0, middle).unwrap_or(0.0);
        let (share, normal) = if self.0.len() >= MANY { (0.9, AT_90) } else { (0.75, AT_75) };
        (MAD_TO_SIGMA * deviation).max((self.quantile(share) - middle) / normal)
    }
}

/// Counts on a scale on which chance has a standard deviation of one, whatever the mean (Anscombe, "The Transformation of Poisson,
/// Binomial and Negative-Binomial Data", Biometrika 35, 1948).
pub(super) fn anscombe(count: f64) -> f64 {
    2.0 * (count + 0.375).sqrt()
}

/// The chance of `count` or more where `mean` are expected and chance alone rules (Poisson).
pub(super) fn chance_of(count: u32, mean: f64) -> f64 {
    if count == 0 || mean.is_nan() {
        1.0
    } else if mean <= 0.0 {
        0.0
    } else {
        gamma_lr(f64::from(count), mean)
    }
}

/// The chance of a maximum above `value`, from the maxima of all nodes: their upper tail taken as a power law, whose exponent the 90 % and
/// 97 % points give (Hill's estimate by quantiles, so that the odd ones have no say). An exponential tail is left at its safe side by that.
pub(super) fn chance_of_maximum(value: f64, maxima: &Ordered) -> f64 {
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
    fn poisson_tails_are_right() {
        assert!((chance_of(1, 0.01) - 0.009_950_17).abs() < 1e-7);
        assert!((chance_of(3, 1.0) - 0.080_301_4).abs() < 1e-6);
        assert_eq!((chance_of(0, 5.0), chance_of(2, 0.0)), (1.0, 0.0));
    }

    #[test]
    fn the_longest_of_a_heavy_tail_is_no_wonder() {
        // Maxima with a Pareto tail of exponent 1.5: the highest of 2,000 is some 150 times the median.
        let maxima = Ordered::new((1..=2_000).map(|n| (f64::from(n) / 2_000.5).powf(-1.0 / 1.5)));
        assert!(chance_of_maximum(maxima.quantile(1.0), &maxima) > 1e-4);
        assert!(chance_of_maximum(1e5, &maxima) < 1e-6);
    }
}
