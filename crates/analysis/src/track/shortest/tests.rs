use super::ShortestWaits;

const KIND: (u32, u32, u8, u8) = (0, 1, 0, 4);

#[test]
fn each_kind_of_wait_has_its_own_shortest() {
    let mut waits = ShortestWaits::default();
    assert_eq!(waits.with(KIND, 50), 50);
    assert_eq!(waits.with(KIND, 70), 50);
    assert_eq!(waits.with((0, 1, 0, 5), 70), 70);
    assert_eq!(waits.with(KIND, 20), 20);
    assert_eq!(waits.with(KIND, 50), 20);
}

#[test]
fn a_wait_that_limited_another_and_proves_too_long_is_judged_again() {
    let mut waits = ShortestWaits::default();
    waits.with(KIND, 50);
    waits.with(KIND, 40);
    assert!(waits.are_final, "it had limited none");
    waits.limited(KIND);
    waits.with(KIND, 40);
    assert!(waits.are_final, "it is as short");
    waits.with(KIND, 39);
    assert!(!waits.are_final);
    waits.with(KIND, 30);
    assert!(!waits.are_final, "nor is it made good by a later one");
}
