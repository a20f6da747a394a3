use super::{Count, Findings};

#[test]
fn the_first_twenty_of_a_kind_are_reported() {
    assert!(Findings::is_significant(1) && Findings::is_significant(20));
    assert!(!Findings::is_significant(21));
}

#[test]
fn a_count_keeps_the_largest() {
    let mut count = Count::default();
    for size in [3, 9, -5] {
        count.add(size);
    }
    assert_eq!(count, Count { times: 3, largest_ns: 9 });
}
