//! GOAL's binary form: what is accepted survives every form and can be run to its end.
#![no_main]

use quell_sim::goal::{Findings, check_binary, read_binary, read_text, write_binary, write_text};
use quell_sim::loggops::Program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let checked = check_binary(bytes);
    let Ok(schedule) = read_binary(bytes) else {
        assert!(checked.is_err() || checked.is_ok_and(|checked| checked.schedule.is_none()));
        return;
    };
    assert_eq!(checked.unwrap().schedule.as_ref(), Some(&schedule));
    let mut binary = Vec::new();
    write_binary(&schedule, &mut binary).unwrap();
    assert_eq!(read_binary(&binary[..]).unwrap(), schedule);
    let mut text = Vec::new();
    write_text(&schedule, &mut text).unwrap();
    assert_eq!(read_text(&text[..], &mut Findings::default()).unwrap(), schedule);
    for rank in 0..schedule.ranks() {
        let mut free = Vec::new();
        let mut state = schedule.begin(rank, &mut free);
        while let Some(next) = free.pop() {
            schedule.started(rank, &mut state, next.op, next.ready, &mut free);
            schedule.done(rank, &mut state, next.op, next.ready, &mut free);
        }
        assert_eq!(schedule.unfreed(rank, &state), 0);
    }
});
