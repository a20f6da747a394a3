//! The content of a recording on the clock that the disturbers read.

use std::path::Path;

use quell_recording::{Interval, Recording};

/// Opens a recording, and requires that nothing was lost.
pub fn whole(folder: &Path, name: &str) -> Result<Recording, String> {
    let recording = Recording::open(&folder.join(name)).unwrap();
    let lost = recording.manifest.sources.as_ref().unwrap().lost;
    if lost == 0 { Ok(recording) } else { Err(format!("{lost} intervals were lost")) }
}

/// The span of its first CPU on CLOCK_MONOTONIC.
pub fn span(recording: &Recording) -> (u64, u64) {
    let (zero, facts) = (recording.manifest.zero_monotonic_ns.unwrap(), &recording.manifest.cpus[0]);
    (zero + facts.start_ns.as_nanos(), zero + facts.end_ns.as_nanos())
}

/// Whether a time is in a span.
pub fn inside(at: u64, (start, end): (u64, u64)) -> bool {
    start < at && at < end
}

/// An interval with its times on CLOCK_MONOTONIC. Its end is the recorder's own reading of that clock, in whole ns, and so is its start
/// unless it is before the recording's zero: no value is converted or rounded.
pub struct Placed {
    pub start: u64,
    pub end: u64,
    pub net: u64,
}

/// The intervals of all CPUs that pass a filter.
pub fn placed(recording: &Recording, wanted: impl Fn(&Interval) -> bool) -> Vec<Placed> {
    let zero = recording.manifest.zero_monotonic_ns.unwrap();
    let rows = recording.intervals.iter().flat_map(|side| &side.intervals).filter(|one| wanted(one));
    let ns = |one: &Interval| (zero + one.start.as_nanos(), zero + one.end().as_nanos(), one.net.as_nanos());
    rows.map(ns).map(|(start, end, net)| Placed { start, end, net }).collect()
}

/// Count and net time of the intervals that ended by `until`.
pub fn ended_by(rows: &[Placed], until: u64) -> (u64, u64) {
    let ended = rows.iter().filter(|row| row.end <= until);
    ended.fold((0, 0), |sum, row| (sum.0 + 1, sum.1 + row.net))
}
