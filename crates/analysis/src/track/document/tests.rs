use super::{mean_of, most, nested, ratio, total};

#[test]
fn regions_are_named_from_the_outermost() {
    assert_eq!(nested(&["main".to_owned(), "solve".to_owned()]), "main > solve");
    assert_eq!(nested(&[]), "");
}

#[test]
fn the_source_of_most_noise_is_the_first_of_equals() {
    let sources = ["a", "b", "c"].map(str::to_owned);
    let most = |of: [i64; 3]| most(&[of.iter().sum(), of[0], of[1], of[2]], &sources);
    assert_eq!(most([1, 3, 2]).as_deref(), Some("b"));
    assert_eq!(most([1, 3, 3]).as_deref(), Some("b"));
    assert_eq!(most([0, 0, 1]).as_deref(), Some("c"));
    assert_eq!(most([0, 0, 0]), None);
}

#[test]
fn there_is_no_share_in_nothing() {
    assert_eq!(ratio(1, 4), Some(0.25));
    assert_eq!(ratio(1, 1), Some(1.0));
    assert_eq!([ratio(0, 0), ratio(1, -1)], [None, None]);
}

#[test]
fn a_mean_of_the_longest_times_is_one_of_them() {
    assert_eq!(mean_of([i64::MAX; 3].into_iter(), 3), i64::MAX);
    assert_eq!(mean_of([i64::MAX; 3].into_iter(), 1), i64::MAX);
    assert_eq!(mean_of([10, 20].into_iter(), 0), 30);
}

#[test]
fn a_sum_of_times_stays_within_64_bits() {
    assert_eq!(total([1, -3, 5].into_iter()), 3);
    assert_eq!(total([i64::MAX, i64::MAX, -1].into_iter()), i64::MAX);
    assert_eq!(total([i64::MIN, -1].into_iter()), i64::MIN);
    assert_eq!(total([i64::MAX, 1, -2].into_iter()), i64::MAX - 1);
}
