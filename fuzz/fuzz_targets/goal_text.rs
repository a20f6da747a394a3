//! GOAL text: what is accepted survives every form and can be found again, and a check agrees with the reader.
#![no_main]

use quell_sim::goal::{self, Findings, check_text, locate, read_binary, read_text, write_binary, write_text};
use quell_sim::loggops::Program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut notes = Findings::default();
    let checked = check_text(bytes);
    let Ok(schedule) = read_text(bytes, &mut notes) else {
        assert!(checked.is_err() || checked.is_ok_and(|checked| checked.schedule.is_none()));
        return;
    };
    let checked = checked.unwrap();
    assert_eq!(checked.schedule.as_ref(), Some(&schedule));
    assert!(checked.findings.errors() >= goal::check(&schedule).errors());
    let mut text = Vec::new();
    write_text(&schedule, &mut text).unwrap();
    assert_eq!(read_text(&text[..], &mut notes).unwrap(), schedule);
    let mut binary = Vec::new();
    write_binary(&schedule, &mut binary).unwrap();
    assert_eq!(read_binary(&binary[..]).unwrap(), schedule);
    for rank in 0..schedule.ranks().min(100) {
        let last = schedule.ops(rank).checked_sub(1);
        assert!(last.is_none_or(|last| locate(bytes, &[(rank, last)]).unwrap()[0].is_some()));
    }
});
