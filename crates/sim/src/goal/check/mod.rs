//! Finds what is wrong with a schedule before it runs.

mod matching;
mod work;

use std::io::{BufRead, Read};

use super::binary::{self, BinaryError};
use super::finding::Findings;
use super::schedule::Schedule;
use super::text::{self, TextError};

/// A schedule that was read, and its findings.
#[derive(Debug)]
pub struct Checked {
    /// The schedule, where it is fit to run.
    pub schedule: Option<Schedule>,
    /// All findings. Messages and work are not checked where the schedule is unfit.
    pub findings: Findings,
}

impl Checked {
    fn new((schedule, sound): (Schedule, bool), mut findings: Findings) -> Self {
        if sound {
            look(&schedule, &mut findings);
        }
        Self { schedule: sound.then_some(schedule), findings }
    }
}

/// Reads a schedule from text and checks it. Unfit operations are findings, and reading goes on.
///
/// # Errors
/// As [`read_text`](super::read_text), where a line makes no sense.
pub fn check_text(input: impl BufRead) -> Result<Checked, TextError> {
    let mut findings = Findings::default();
    let read = text::read_to_check(input, &mut findings)?;
    Ok(Checked::new(read, findings))
}

/// Reads a schedule from the binary form and checks it. Unfit operations are findings, and reading goes on.
///
/// # Errors
/// As [`read_binary`](super::read_binary), where the bytes make no sense.
pub fn check_binary(input: impl Read) -> Result<Checked, BinaryError> {
    let mut findings = Findings::default();
    let read = binary::read_to_check(input, &mut findings)?;
    Ok(Checked::new(read, findings))
}

/// Checks a schedule: messages that no receive can take, receives that no message can reach, and work that overflows a
/// 64-bit clock. With wildcards, only findings that hold for every order of arrival are reported.
pub fn check(schedule: &Schedule) -> Findings {
    let mut findings = Findings::default();
    look(schedule, &mut findings);
    findings
}

fn look(schedule: &Schedule, findings: &mut Findings) {
    matching::look(schedule, findings);
    work::look(schedule, findings);
}

/// Adds the line and label of its operation to each finding that has none, in a second pass over the text.
///
/// # Errors
/// As [`locate`](text::locate).
pub fn place_findings(input: impl BufRead, findings: &mut Findings) -> Result<(), TextError> {
    let wanted: Vec<(u32, u32)> = findings.placeless().map(|(rank, op, _)| (rank, op)).collect();
    let places = text::locate(input, &wanted)?;
    for ((_, _, slot), place) in findings.placeless().zip(places) {
        *slot = place;
    }
    Ok(())
}
