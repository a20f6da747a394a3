use quell_sim::loggops::{Stuck, Waiting};

use super::{MOST_NAMED, SkippedEvents, why};

#[test]
fn the_first_hundred_omissions_are_named() {
    let mut skipped = SkippedEvents::default();
    for number in 0..MOST_NAMED + 5 {
        skipped.note(|| number.to_string());
    }
    assert_eq!(skipped.notes.len(), 100);
    assert_eq!(skipped.notes.last().map(String::as_str), Some("99"));
}

#[test]
fn what_stops_a_schedule_is_named_the_cycle_first() {
    let waiting = Waiting { rank: 3, op: 5, peer: 1, tag: 9, size: 8 };
    let nothing = Stuck {
        receives: Vec::new(),
        receives_total: 0,
        messages: Vec::new(),
        messages_total: 4,
        unfreed: Vec::new(),
        unfreed_total: 0,
        cycle: Vec::new(),
    };
    assert_eq!(why(&nothing), "4 messages find no receive");
    let receive = Stuck { receives: vec![waiting], receives_total: 1, ..nothing };
    assert_eq!(why(&receive), "rank 3, operation 5, waits for rank 1 with tag 9");
    let cycle = Stuck { cycle: (2..12).collect(), ..receive };
    assert_eq!(why(&cycle), "ranks 2, 3, 4, 5, 6, 7, 8, 9 wait for one another");
}
