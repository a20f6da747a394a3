use super::*;

#[test]
fn a_sample_is_evenly_spaced_and_holds_those_that_exist() {
    assert_eq!(Timeline::sample(8, 4, &[]), [0, 2, 4, 6]);
    assert_eq!(Timeline::sample(8, 3, &[7, 2]), [0, 2, 5, 7]);
    assert_eq!(Timeline::sample(4, 2, &[3, 4, 9]), [0, 2, 3]);
    assert_eq!(Timeline::sample(3, 9, &[]), [0, 1, 2]);
    assert_eq!(Timeline::sample(3, 0, &[]), [0]);
}
