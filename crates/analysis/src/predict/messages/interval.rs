//! Confidence in a mean of runs, from runs on the recorded traces and on resampled ones (see [`super::Messages`]).

use crate::stats::{self, mean_half_width, student_t};

/// Minimum number of runs of each kind for an interval.
pub(super) const FEWEST: usize = 8;

/// Half the length of the interval, in nanoseconds, if resampled runs are `longer` times as long as the others.
pub(crate) fn half_width(noisy: &[f64], resampled: &[f64], longer: f64) -> Option<f64> {
    let (chance, both) = (variance(noisy)?, variance(resampled)?);
    let variance = (both - chance / longer).max(0.0) + chance / noisy.len() as f64;
    Some(student_t(0.975, resampled.len() as u64 - 1) * variance.sqrt())
}

/// Half the length of the 95 % interval of a mean of independent values; `None` if there are too few.
pub(crate) fn half_width_of_mean(values: &[f64]) -> Option<f64> {
    mean_half_width(enough(values)?.iter().copied(), 0.95)
}

/// The unbiased variance of a sample; `None` if it is too small.
fn variance(values: &[f64]) -> Option<f64> {
    let values = enough(values)?.iter().copied();
    stats::variance(values.clone(), stats::mean(values)?)
}

fn enough(values: &[f64]) -> Option<&[f64]> {
    (values.len() >= FEWEST).then_some(values)
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
        // 2.093024 is the tables' 97.5 % point of Student's t with 19 degrees of freedom.
        assert!((half - 2.093_024 * variance.sqrt()).abs() < 1e-5, "{half}");
        assert!(half_width(&spread(2.0), &spread(1.0), 1.0).unwrap() < 1.0, "chance alone");
        assert!(half_width(&spread(1.0), &spread(1.0), 4.0).unwrap() > 1.5, "longer runs owe less to chance");
        assert_eq!(half_width(&[1.0; 7], &[1.0; 7], 1.0), None);
    }
}
