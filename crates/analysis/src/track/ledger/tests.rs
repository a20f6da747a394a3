use super::super::LONGEST;
use super::{Change, Ledger};

#[test]
fn a_counter_gives_what_it_rose_by_to_its_own_lane_and_that_of_all() {
    let mut ledger = Ledger::new(2);
    assert_eq!(ledger.accounts(), 3);
    assert_eq!(ledger.add_noise(0, 100, false), Some(100));
    assert_eq!(ledger.add_noise(0, 150, true), Some(50));
    assert_eq!(ledger.add_noise(1, 7, true), Some(7));
    assert_eq!(ledger.local, [157, 150, 7]);
    assert_eq!(ledger.within, [57, 50, 7]);
    assert_eq!(ledger.late, [100, 100, 0]);
    // Together with the noise within the open call.
    assert_eq!([0, 1, 2].map(|account| ledger.unplaced(account)), [157, 150, 7]);
}

#[test]
fn a_counter_that_goes_back_counts_from_there() {
    let mut ledger = Ledger::new(1);
    ledger.add_noise(0, 100, false);
    assert_eq!(ledger.add_noise(0, 20, false), None);
    assert_eq!(ledger.add_noise(0, 30, false), Some(10));
    assert_eq!(ledger.add_noise(1, 30, false), None, "there is no such source");
    assert_eq!(ledger.local, [110, 110]);
    assert_eq!(ledger.add_noise(0, u64::MAX, false), Some(LONGEST));
}

#[test]
fn noise_takes_at_most_the_time_that_there_was_and_the_rest_comes_later() {
    let mut ledger = Ledger::new(1);
    ledger.enter(1000);
    ledger.add_noise(0, 300, false);
    ledger.close_interval(1200);
    assert_eq!((ledger.accumulated[0], ledger.unplaced(0)), (200, 100));
    ledger.close_interval(1500);
    assert_eq!((ledger.accumulated[0], ledger.unplaced(0)), (300, 0));
    ledger.add_noise(0, 5300, false);
    // From 1500 to 1600 there is time for 100 more.
    ledger.close_interval(1600);
    assert_eq!((ledger.accumulated[0], ledger.unplaced(0)), (400, 4900));
    assert_eq!((ledger.accumulated[1], ledger.unplaced(1)), (400, 4900));
}

#[test]
fn noise_before_the_first_event_counts() {
    let mut ledger = Ledger::new(1);
    ledger.add_noise(0, 300, false);
    ledger.close_interval(10);
    assert_eq!((ledger.accumulated[0], ledger.unplaced(0)), (300, 0));
}

#[test]
fn a_call_that_began_with_its_region_has_the_noise_since_then() {
    let mut ledger = Ledger::new(1);
    ledger.enter(1000);
    ledger.add_noise(0, 30, false);
    ledger.enter_late();
    assert_eq!((ledger.within[0], ledger.late[0], ledger.unplaced(0)), (30, 0, 30));
    assert_eq!([ledger.noise_of_call(0, 100), ledger.noise_of_call(0, 10)], [30, 10]);
    ledger.enter(1100);
    assert_eq!(ledger.within, [0, 0], "a new call has none yet");
}

#[test]
fn what_a_call_changed_is_amplified_or_absorbed() {
    let mut ledger = Ledger::new(1);
    ledger.enter(1000);
    ledger.add_noise(0, 50, true);
    // A call of 30 ns has room for 30 ns of noise; 10 of them delayed nothing.
    assert_eq!(ledger.leave(0, 30, 1030, 1010), Change { amplified: 0, absorbed: 10 });
    assert_eq!((ledger.accumulated[0], ledger.unplaced(0), ledger.within[0]), (20, 20, 0));
    ledger.enter(1100);
    assert_eq!((ledger.accumulated[0], ledger.unplaced(0)), (40, 0));
    assert_eq!(ledger.leave(0, 10, 1110, 1000), Change { amplified: 70, absorbed: 0 });
    // No program is later without noise than with it.
    assert_eq!(ledger.leave(0, 0, 1110, 5000), Change { amplified: 0, absorbed: 110 });
    assert_eq!((ledger.accumulated[0], ledger.amplified[0], ledger.absorbed[0]), (0, 70, 120));
}

#[test]
fn work_begins_where_the_call_ended_on_the_noise_free_timeline() {
    let mut ledger = Ledger::new(1);
    ledger.enter(1000);
    ledger.leave(0, 100, 1100, 1060);
    ledger.add_noise(0, 500, false);
    // 40 behind, and 50 ns of time since the call.
    ledger.close_interval(1150);
    assert_eq!((ledger.accumulated[0], ledger.unplaced(0)), (90, 450));
}
