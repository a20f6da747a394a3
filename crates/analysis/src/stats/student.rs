//! Student's t distribution ("The Probable Error of a Mean", Biometrika 6, 1908), for the confidence in a mean of few values.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

use super::{mean, variance};

/// The value that Student's t with these degrees of freedom does not exceed with probability `p`; infinite for 0 degrees of freedom.
/// NaN if `p` is not a probability.
pub fn student_t(p: f64, degrees_of_freedom: u64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64)
        .map_or(f64::INFINITY, |student| student.inverse_cdf(p))
}

/// The value that the standard normal distribution does not exceed with probability `p`; NaN if `p` is not a probability.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    Normal::standard().inverse_cdf(p)
}

/// Half the length of the interval that contains the expected value of the independent `values` with this
/// confidence, 0 to 1. `None` if there are fewer than two values.
pub fn mean_half_width(values: impl ExactSizeIterator<Item = f64> + Clone, confidence: f64) -> Option<f64> {
    let count = values.len();
    let variance = variance(values.clone(), mean(values)?)?;
    Some(student_t(0.5 + confidence / 2.0, count as u64 - 1) * (variance / count as f64).sqrt())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::f64::consts::PI;

    use super::*;

    fn near(found: f64, expected: f64, relative: f64) {
        assert!((found / expected - 1.0).abs() < relative, "{found} for {expected}");
    }

    /// With one, two and four degrees of freedom the distribution has closed forms (Shaw, "Sampling Student's T
    /// distribution", J. Comput. Finance 9(4), 2006).
    #[test]
    fn it_has_its_closed_forms() {
        for p in [0.6, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995] {
            let alpha: f64 = 4.0 * p * (1.0 - p);
            near(student_t(p, 1), (PI * (p - 0.5)).tan(), 1e-9);
            near(student_t(p, 2), (2.0 * p - 1.0) * (2.0 / alpha).sqrt(), 1e-9);
            let root = alpha.sqrt();
            near(student_t(p, 4), 2.0 * ((root.acos() / 3.0).cos() / root - 1.0).sqrt(), 1e-9);
            near(student_t(1.0 - p, 4), -student_t(p, 4), 1e-9);
        }
    }

    /// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: upper critical values for 0.975.
    #[test]
    fn it_has_the_tables_values() {
        let table = [
            (1, 12.706),
            (3, 3.182),
            (7, 2.365),
            (8, 2.306),
            (9, 2.262),
            (12, 2.179),
            (15, 2.131),
            (19, 2.093),
            (30, 2.042),
            (39, 2.023),
            (63, 1.998),
            (100, 1.984),
        ];
        for (degrees, value) in table {
            let found = student_t(0.975, degrees);
            assert!((found - value).abs() <= 0.000_5 + 1e-9, "{degrees}: {found} for {value}");
        }
    }

    /// NIST/SEMATECH e-Handbook, 1.3.6.7.1 and 1.3.6.7.2: the last line of the table of t is the normal distribution's.
    #[test]
    fn the_normal_distribution_has_the_tables_values() {
        for (p, value) in
            [(0.5, 0.0), (0.9, 1.282), (0.95, 1.645), (0.975, 1.960), (0.99, 2.326), (0.999, 3.090)]
        {
            assert!((normal_quantile(p) - value).abs() <= 0.000_5 + 1e-9, "{p}");
        }
        assert!(normal_quantile(1.5).is_nan());
    }

    #[test]
    fn what_cannot_be_is_no_panic() {
        assert_eq!(student_t(0.975, 0), f64::INFINITY);
        assert!(student_t(1.5, 3).is_nan() && student_t(f64::NAN, 3).is_nan());
        assert_eq!(mean_half_width([1.0].into_iter(), 0.95), None);
    }

    /// The sleep data of Student 1908 as in R, paired: `t.test(extra ~ group, paired = TRUE)` gives −2.4598858 to −0.7001142.
    #[test]
    fn an_interval_is_that_of_students_own_data() {
        let gain = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        near(mean(gain.into_iter()).unwrap(), 1.58, 1e-12);
        near(mean_half_width(gain.into_iter(), 0.95).unwrap(), (2.459_885_8 - 0.700_114_2) / 2.0, 1e-6);
    }
}
