//! The Poisson distribution.

use statrs::function::gamma::gamma_lr;

/// The probability of `count` or more if `mean` are expected by chance alone (Poisson).
pub fn poisson_at_least(count: u32, mean: f64) -> f64 {
    if count == 0 || mean.is_nan() {
        1.0
    } else if mean <= 0.0 {
        0.0
    } else {
        gamma_lr(f64::from(count), mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_tails_are_right() {
        assert!((poisson_at_least(1, 0.01) - 0.009_950_17).abs() < 1e-7);
        assert!((poisson_at_least(3, 1.0) - 0.080_301_4).abs() < 1e-6);
        assert_eq!((poisson_at_least(0, 5.0), poisson_at_least(2, 0.0)), (1.0, 0.0));
    }
}
