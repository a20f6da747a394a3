//! Confidence in a mean of runs, from runs on the traces themselves and on resampled ones (see [`super::Network`]).

/// Fewer runs of either kind make no interval.
pub(super) const FEWEST: usize = 8;

/// Half the length of the interval, in nanoseconds, where resampled runs are so many times as long.
pub(crate) fn half_width(noisy: &[f64], resampled: &[f64], longer: f64) -> Option<f64> {
    let (chance, both) = (variance(noisy)?, variance(resampled)?);
    let variance = (both - chance / longer).max(0.0) + chance / noisy.len() as f64;
    Some(student(resampled.len()) * variance.sqrt())
}

/// Half the length of the interval of a mean of independent values; `None` for too few.
pub(crate) fn half_width_of_mean(values: &[f64]) -> Option<f64> {
    Some(student(values.len()) * (variance(values)? / values.len() as f64).sqrt())
}

/// The 97.5 % point of Student's distribution for a mean of so many values, from eight to twenty: of the largest number
/// that has one here and is not above.
fn student(values: usize) -> f64 {
    match values {
        ..10 => 2.365,
        10..13 => 2.262,
        13..16 => 2.179,
        16..20 => 2.131,
        _ => 2.093,
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The unbiased variance of a sample; `None` for too small a one.
fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < FEWEST {
        return None;
    }
    let mean = mean(values);
    Some(values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_what_resampling_adds_to_chance() {
        let spread = |by: f64| (0..20).map(|i| 100.0 + if i % 2 == 0 { by } else { -by }).collect::<Vec<_>>();
        // Variances 20/19 and 20/19·9.
        let half = half_width(&spread(1.0), &spread(3.0), 1.0).unwrap();
        let variance: f64 = 20.0 / 19.0 * 8.0 + 1.0 / 19.0;
        assert!((half - 2.093 * variance.sqrt()).abs() < 1e-9, "{half}");
        assert!(half_width(&spread(2.0), &spread(1.0), 1.0).unwrap() < 1.0, "chance alone");
        assert!(half_width(&spread(1.0), &spread(1.0), 4.0).unwrap() > 1.5, "longer runs owe less to chance");
        assert_eq!(half_width(&[1.0; 7], &[1.0; 7], 1.0), None);
    }
}
