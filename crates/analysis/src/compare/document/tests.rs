use super::*;

fn change(a: f64, b: f64) -> Change {
    Change::new(a, b, -1.0..=2.0)
}

#[test]
fn a_change_is_in_percent_of_the_value_before() {
    assert_eq!(change(200.0, 250.0).percent(), Some(25.0));
    assert_eq!(change(8.0, 2.0).percent(), Some(-75.0));
    assert_eq!(change(0.0, 2.0).percent(), None);
}

#[test]
fn an_interval_that_ends_at_zero_is_no_difference() {
    let verdict = |difference| change(100.0, 100.0 + difference).verdict;
    assert_eq!((change(100.0, 110.0).low, change(100.0, 110.0).high), (9.0, 12.0));
    assert_eq!((verdict(1.0), verdict(1.5)), (Verdict::NoMeasurableDifference, Verdict::Higher));
    assert_eq!((verdict(-2.0), verdict(-2.5)), (Verdict::NoMeasurableDifference, Verdict::Lower));
}

#[test]
fn cpus_are_listed_in_a_line() {
    assert_eq!(in_line(&[0, 3, 17]), "0,3,17");
    assert_eq!(in_line(&[]), "");
}
