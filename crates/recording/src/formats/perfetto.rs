//! Perfetto's own trace format: detours and the kernel's intervals on one clock, for <https://ui.perfetto.dev> and
//! its trace processor. One group of tracks for each CPU, or for each thread of a recorded command. Only written.

mod event;
mod packets;
mod schema;
mod simulated;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use self::event::{Event, Level};
use self::packets::Packets;
pub use self::packets::Track;
pub use self::simulated::{Label, Timeline};
use crate::display_text::one_line;
use crate::{Interval, Nanos, Recording, Thread};

/// Writes a recording. If CLOCK_MONOTONIC at its zero is not known, the times count from that zero.
pub(super) fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &recording.manifest;
    let mut packets = Packets::start(out, manifest.zero_monotonic_ns.unwrap_or(0), manifest.zero_unix_ns)?;
    let name = format!("quell: {}", one_line(&recording.name()));
    let root = packets.track(None, 0, &name, Some(limits(recording)))?;
    for (rank, group) in groups(recording).into_iter().enumerate() {
        group.write(&mut packets, root, rank)?;
    }
    Ok(())
}

/// The limits of the recording, for the description of the top track.
fn limits(recording: &Recording) -> String {
    let manifest = &recording.manifest;
    let mut printed = vec![format!("Written by quell {}.", manifest.quell)];
    if manifest.zero_monotonic_ns.is_none() {
        printed.push("Times count from the recording's zero, not from that of CLOCK_MONOTONIC.".to_owned());
    }
    if manifest.lost() > 0 {
        printed.push(format!("{} rows of the probe were lost.", manifest.lost()));
    }
    if let Some(sources) = &manifest.sources {
        printed.extend(sources.unknown_because.iter().map(|why| format!("Sources are unknown: {why}")));
        printed.extend(sources.missing.iter().map(|what| format!("Missing: {what}")));
        if sources.lost > 0 {
            printed.push(format!("{} intervals were lost.", sources.lost));
        }
    }
    printed.extend(manifest.warnings.iter().map(ToString::to_string));
    one_line(&printed.join(" "))
}

/// The tracks of one CPU or thread.
struct Group<'a> {
    name: String,
    tracks: BTreeMap<Level, Vec<Event<'a>>>,
}

impl<'a> Group<'a> {
    fn new(name: String) -> Self {
        Self { name, tracks: BTreeMap::new() }
    }

    fn push(&mut self, event: Event<'a>) {
        self.tracks.entry(event.level()).or_default().push(event);
    }

    fn write(self, packets: &mut Packets<'_>, root: Track, rank: usize) -> io::Result<()> {
        let group = packets.track(Some(root), rank, &self.name, None)?;
        for (level, events) in self.tracks {
            let track = match level {
                Level::Watched => group,
                _ => {
                    let description = level.description().map(str::to_owned);
                    packets.track(Some(group), level as usize, level.name(), description)?
                }
            };
            write_slices(packets, track, events)?;
        }
        Ok(())
    }
}

/// Writes events as nested slices in order. An event that would cross another ends with it, and is marked as cut.
fn write_slices(packets: &mut Packets<'_>, track: Track, mut events: Vec<Event<'_>>) -> io::Result<()> {
    events.sort_by_key(|event| (event.start(), Reverse(event.end())));
    let mut open: Vec<Nanos> = Vec::new();
    for event in &events {
        while let Some(end) = open.pop_if(|end| *end <= event.start()) {
            packets.end(track, end)?;
        }
        let end = open.last().map_or(event.end(), |outer| event.end().min(*outer));
        packets.begin(track, event, end)?;
        open.push(end);
    }
    open.into_iter().rev().try_for_each(|end| packets.end(track, end))
}

/// Sorts everything into groups: intervals go to the thread that had to wait if one was observed, otherwise to their CPU.
fn groups(recording: &Recording) -> Vec<Group<'_>> {
    let mut cpus = groups_of_cpus(recording);
    let mut threads = Threads::new(&recording.threads);
    for side in &recording.intervals {
        for interval in &side.intervals {
            let event = Event::Interval(side.cpu, interval);
            match threads.group_of(interval) {
                Some(group) => group.push(event),
                None => cpus
                    .entry(side.cpu.0)
                    .or_insert_with(|| Group::new(format!("CPU {}", side.cpu)))
                    .push(event),
            }
        }
    }
    cpus.into_values().chain(threads.groups).chain(threads.strangers.into_values()).collect()
}

/// The detours of the probes, by CPU. In a recording of a command no CPU as such was observed.
fn groups_of_cpus(recording: &Recording) -> BTreeMap<u32, Group<'_>> {
    let mut cpus: BTreeMap<u32, Group<'_>> = BTreeMap::new();
    let group = |cpu| Group::new(format!("CPU {cpu}"));
    if recording.threads.is_empty() {
        for facts in &recording.manifest.cpus {
            cpus.entry(facts.cpu.0).or_insert_with(|| group(facts.cpu)).push(Event::Cpu(facts));
        }
    }
    for trace in recording.traces.iter().filter(|trace| !trace.detours.is_empty()) {
        let group = cpus.entry(trace.cpu.0).or_insert_with(|| group(trace.cpu));
        trace.detours.iter().for_each(|detour| group.push(Event::Detour(detour)));
    }
    for series in recording.quanta.iter().filter(|series| !series.quanta.is_empty()) {
        let group = cpus.entry(series.cpu.0).or_insert_with(|| group(series.cpu));
        for quantum in &series.quanta {
            let level = recording.manifest.level_of(quantum.work).map(|level| level.name);
            group.push(Event::Quantum(quantum, level));
        }
    }
    cpus
}

/// The threads of a recorded command.
struct Threads<'a> {
    threads: &'a [Thread],
    groups: Vec<Group<'a>>,
    /// Indices of the threads that had an id, by their start: the kernel reuses ids.
    of_tid: BTreeMap<u32, Vec<usize>>,
    /// Victims that the table of threads does not list.
    strangers: BTreeMap<u32, Group<'a>>,
}

impl<'a> Threads<'a> {
    fn new(threads: &'a [Thread]) -> Self {
        let mut of_tid: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut groups = Vec::with_capacity(threads.len());
        for (index, thread) in threads.iter().enumerate() {
            of_tid.entry(thread.tid).or_default().push(index);
            let mut group = Group::new(format!("{} {}", one_line(&thread.comm), thread.tid));
            group.push(Event::Thread(thread));
            groups.push(group);
        }
        Self { threads, groups, of_tid, strangers: BTreeMap::new() }
    }

    /// The group of the thread that an interval delayed; `None` if no thread was observed.
    fn group_of(&mut self, interval: &Interval) -> Option<&mut Group<'a>> {
        let tid = interval.victim;
        if tid == 0 || self.threads.is_empty() {
            return None;
        }
        let Some(candidates) = self.of_tid.get(&tid) else {
            let name = || Group::new(format!("thread {tid} (not listed)"));
            return Some(self.strangers.entry(tid).or_insert_with(name));
        };
        let later = candidates.partition_point(|&index| self.threads[index].start <= interval.start);
        candidates.get(later.saturating_sub(1)).map(|&index| &mut self.groups[index])
    }
}
