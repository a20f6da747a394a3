//! Statistics of samples, one function for each definition. Documents use only these.
//!
//! If several definitions of a quantile or a median are in use, each function has its name from the literature, and a document keeps
//! the definition that it began with.

mod durations;
mod order;
mod poisson;
mod ranks;
mod rates;
mod student;

pub use durations::{Durations, Summary};
pub use order::{
    MAD_TO_SIGMA, ascending, median, median_absolute_deviation, median_high, median_low, nearest_rank,
    nearest_rank_in_counts, nearest_rank_of_any_order, type7_higher, type7_lower, type7_nearest,
};
pub use poisson::poisson_at_least;
pub use ranks::{Centre, SignedRank, centre, signed_rank};
pub use rates::equal_rates_p;
pub use student::{mean_half_width, normal_quantile, student_t};

/// The arithmetic mean; `None` if there are no values.
pub fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

/// The unbiased variance of a sample about `mean`, which is the sample's own: squares over n − 1. `None` if there are fewer than two values.
pub fn variance(values: impl ExactSizeIterator<Item = f64>, mean: f64) -> Option<f64> {
    let count = values.len();
    (count > 1).then(|| squares(values, mean) / (count - 1) as f64)
}

/// The variance of a population about its mean: squares over n. `None` if there are no values.
pub fn population_variance(values: impl ExactSizeIterator<Item = f64>, mean: f64) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| squares(values, mean) / count as f64)
}

fn squares(values: impl Iterator<Item = f64>, mean: f64) -> f64 {
    values.map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST's Statistical Reference Datasets, NumAcc1: 10000001, 10000003, 10000002; mean 10000002, standard deviation 1.
    #[test]
    fn moments_are_those_of_a_certified_set() {
        let values = [10_000_001.0, 10_000_003.0, 10_000_002.0];
        let of = || values.into_iter();
        assert_eq!(mean(of()), Some(10_000_002.0));
        assert_eq!(variance(of(), 10_000_002.0), Some(1.0));
        assert_eq!(population_variance(of(), 10_000_002.0), Some(2.0 / 3.0));
    }

    #[test]
    fn too_few_values_have_none() {
        let values = |count: usize| std::iter::repeat_n(7.0, count);
        assert_eq!((mean(values(0)), population_variance(values(0), 0.0)), (None, None));
        assert_eq!((mean(values(1)), variance(values(1), 7.0)), (Some(7.0), None));
    }
}
