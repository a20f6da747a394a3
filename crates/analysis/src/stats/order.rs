//! Order statistics: sample quantiles, medians, and the spread about a median.
//!
//! The types are those of Hyndman & Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50(4), 1996.
//! Samples must be ascending if the parameter is called so ([`ascending`] sorts). A share `p` outside of 0 to 1 selects the nearer end.

use std::cmp::Ordering;

/// The values in ascending order (IEEE 754's total order, so NaN is last).
pub fn ascending(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The quantile by the nearest rank (type 1): the smallest value that at least a share `p` of the sample does not exceed.
/// `None` if there are no values.
pub fn nearest_rank<T: Copy>(ascending: &[T], p: f64) -> Option<T> {
    ascending.get(rank(p, ascending.len() as u64) as usize - 1).copied()
}

/// [`nearest_rank`] of values in any order, which are partly sorted. `None` if there are no values.
pub fn nearest_rank_of_any_order<T: Copy + Ord>(values: &mut [T], p: f64) -> Option<T> {
    let at = rank(p, values.len() as u64) as usize - 1;
    (!values.is_empty()).then(|| *values.select_nth_unstable(at).1)
}

/// [`nearest_rank`] of a histogram, from the count of each bucket and their `total`: the bucket that holds the quantile, and
/// its rank in it, from 1. `None` if the total is zero.
pub fn nearest_rank_in_counts(
    counts: impl IntoIterator<Item = u64>,
    total: u64,
    p: f64,
) -> Option<(usize, u64)> {
    let mut left = rank(p, total);
    for (bucket, count) in counts.into_iter().enumerate() {
        if count >= left {
            return Some((bucket, left));
        }
        left -= count;
    }
    None
}

/// The rank, from 1, of the type 1 quantile of `count` values.
fn rank(p: f64, count: u64) -> u64 {
    let rank = p.clamp(0.0, 1.0) * count as f64;
    // 0.07 × 100 is a little more than 7 in floating point; the intended rank is 7.
    let rank = (rank * (1.0 - 1e-12)).ceil() as u64;
    rank.clamp(1, count.max(1))
}

/// The value at or below the position of type 7, (n − 1) p from 0 (NumPy's method `lower`). `None` if there are no values.
pub fn type7_lower<T: Copy>(ascending: &[T], p: f64) -> Option<T> {
    at_position(ascending, p, f64::floor)
}

/// The value at or above the position of type 7 (NumPy's method `higher`). `None` if there are no values.
pub fn type7_higher<T: Copy>(ascending: &[T], p: f64) -> Option<T> {
    at_position(ascending, p, f64::ceil)
}

/// The value nearest to the position of type 7, the upper one of two (NumPy's method `nearest` takes the even one of two).
/// `None` if there are no values.
pub fn type7_nearest<T: Copy>(ascending: &[T], p: f64) -> Option<T> {
    at_position(ascending, p, f64::round)
}

fn at_position<T: Copy>(ascending: &[T], p: f64, whole: impl Fn(f64) -> f64) -> Option<T> {
    let last = ascending.len().checked_sub(1)?;
    ascending.get(whole(p.clamp(0.0, 1.0) * last as f64) as usize).copied()
}

/// The median. If the number of values is even, it is the mean of the two middle ones (type 2). `None` if there are no values.
pub fn median(ascending: &[f64]) -> Option<f64> {
    let upper = *ascending.get(ascending.len() / 2)?;
    Some(f64::midpoint(median_low(ascending)?, upper))
}

/// The low median: the middle value, the lower one of two, as of type 1 (Rousseeuw & Croux, "Alternatives to the Median
/// Absolute Deviation", JASA 88, 1993: lomed). `None` if there are no values.
pub fn median_low<T: Copy>(ascending: &[T]) -> Option<T> {
    ascending.get(ascending.len().checked_sub(1)? / 2).copied()
}

/// The high median: the middle value, the upper one of two (Rousseeuw & Croux: himed). The values can have any order and
/// are partly sorted. `None` if there are no values.
pub fn median_high<T: Copy>(values: &mut [T], order: impl FnMut(&T, &T) -> Ordering) -> Option<T> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, order).1)
}

/// Factor from the median absolute deviation to the standard deviation of a normal sample: 1 / Φ⁻¹(3/4).
pub const MAD_TO_SIGMA: f64 = 1.4826;

/// The [`median`] of the values' distances from `centre`, which is their own median. `None` if there are no values.
pub fn median_absolute_deviation(values: &[f64], centre: f64) -> Option<f64> {
    median(&ascending(values.iter().map(|value| (value - centre).abs())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIVE: [u64; 5] = [10, 20, 30, 40, 50];
    const FOUR: [u64; 4] = [10, 20, 30, 40];

    /// Reference values from NumPy 2.4: `numpy.quantile(values, p, method=…)` with `inverted_cdf`, `lower`, `higher` and `nearest`.
    #[test]
    fn quantiles_are_numpys() {
        let of = |values: &[u64], p| {
            [
                nearest_rank(values, p),
                type7_lower(values, p),
                type7_higher(values, p),
                type7_nearest(values, p),
            ]
            .map(Option::unwrap_or_default)
        };
        assert_eq!(of(&FIVE, 0.0), [10, 10, 10, 10]);
        assert_eq!(of(&FIVE, 0.1), [10, 10, 20, 10]);
        assert_eq!(of(&FIVE, 0.4), [20, 20, 30, 30]);
        assert_eq!(of(&FIVE, 0.5), [30, 30, 30, 30]);
        assert_eq!(of(&FIVE, 0.9), [50, 40, 50, 50]);
        assert_eq!(of(&FOUR, 0.25), [10, 10, 20, 20]);
        assert_eq!(of(&FOUR, 0.75), [30, 30, 40, 30]);
        assert_eq!(of(&FOUR, 1.0), [40, 40, 40, 40]);
    }

    #[test]
    fn medians_differ_where_there_is_no_middle() {
        let real = |values: &[u64]| values.iter().map(|&value| value as f64).collect::<Vec<f64>>();
        assert_eq!((median(&real(&FOUR)), median(&real(&FIVE))), (Some(25.0), Some(30.0)));
        assert_eq!((median_low(&FOUR), median_low(&FIVE)), (Some(20), Some(30)));
        let mut mixed = [40, 10, 30, 20];
        assert_eq!((median_high(&mut mixed, u64::cmp), median_high(&mut [7], u64::cmp)), (Some(30), Some(7)));
    }

    /// Computed by hand: distances of 0, 1, 3, 3 and 6, and of 0, 1, 3, 6 and 5682.
    #[test]
    fn a_gross_error_does_not_move_the_deviation() {
        for values in [[625.0, 627.0, 628.0, 631.0, 634.0], [625.0, 627.0, 628.0, 634.0, 6310.0]] {
            assert_eq!(median(&values), Some(628.0));
            assert_eq!(median_absolute_deviation(&values, 628.0), Some(3.0));
        }
    }

    #[test]
    fn no_values_have_none() {
        let none: [f64; 0] = [];
        let all = [nearest_rank, type7_lower, type7_higher, type7_nearest].map(|of| of(&none, 0.5));
        assert_eq!(all, [None; 4]);
        assert_eq!(
            (median(&none), median_low(&none), median_absolute_deviation(&none, 0.0)),
            (None, None, None)
        );
        assert_eq!(median_high(&mut [], u64::cmp), None);
        assert_eq!(
            (nearest_rank_in_counts([], 0, 0.5), nearest_rank_in_counts([0, 0], 0, 0.5)),
            (None, None)
        );
    }

    #[test]
    fn shares_that_are_none_mean_an_end() {
        assert_eq!((nearest_rank(&FIVE, -1.0), nearest_rank(&FIVE, 2.0)), (Some(10), Some(50)));
        assert_eq!((nearest_rank(&FIVE, f64::NAN), type7_lower(&FIVE, f64::NAN)), (Some(10), Some(10)));
    }

    proptest! {
        #[test]
        fn a_histogram_of_single_values_is_the_sample(counts in prop::collection::vec(0u64..5, 1..60), per_mille in 0u64..=1000) {
            let sample: Vec<usize> =
                counts.iter().enumerate().flat_map(|(bucket, &n)| vec![bucket; n as usize]).collect();
            let p = per_mille as f64 / 1000.0;
            let found = nearest_rank_in_counts(counts.iter().copied(), sample.len() as u64, p);
            prop_assert_eq!(found.map(|place| place.0), nearest_rank(&sample, p));
            if let Some((bucket, rank)) = found {
                prop_assert!((1..=counts[bucket]).contains(&rank));
            }
        }

        #[test]
        fn any_order_has_the_same_quantiles(values in prop::collection::vec(0u64..50, 0..200), p in -0.1..1.1) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let mut values = values;
            prop_assert_eq!(nearest_rank_of_any_order(&mut values, p), nearest_rank(&sorted, p));
        }

        #[test]
        fn the_low_median_is_of_type_1(values in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut values = values;
            values.sort_unstable();
            prop_assert_eq!(median_low(&values), nearest_rank(&values, 0.5));
        }
    }
}
