//! The median of repeated measurements, which disturbed single ones do not move.

use std::cmp::Ordering;

/// The high median: of an even number of values the upper one in the middle; `None` for no values. The statistics of documents are in
/// `quell_analysis::stats`, on which this crate does not depend.
pub(super) fn median_high<T: Copy>(mut values: Vec<T>, order: impl FnMut(&T, &T) -> Ordering) -> Option<T> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, order).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_in_the_middle_it_is_the_upper() {
        assert_eq!(median_high(vec![40, 10, 30, 20], u64::cmp), Some(30));
        assert_eq!(median_high(vec![3.0, 1.0, 2.0], f64::total_cmp), Some(2.0));
        assert_eq!(median_high(Vec::new(), u64::cmp), None);
    }
}
