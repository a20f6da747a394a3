//! Writes a node's recording as an OTF2 archive: a location per CPU, with detours, quanta and kernel intervals as regions.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use quell_otf2::{Facts, Writer};
use quell_recording::mpi::{Definitions, Event, Location, Region, What};
use quell_recording::{Cpu, Recording, one_line};

/// A region on a timeline, in ns.
#[derive(Clone, Copy)]
struct Slice {
    start: u64,
    end: u64,
    region: u32,
}

/// Region numbers by name.
#[derive(Default)]
struct Regions {
    names: Vec<String>,
    of: HashMap<String, u32>,
}

impl Regions {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(known) = self.of.get(name) {
            return *known;
        }
        let number = self.names.len() as u32;
        self.names.push(one_line(name));
        self.of.insert(name.to_owned(), number);
        number
    }
}

/// Writes the archive into a new folder.
pub(super) fn write(recording: &Recording, output: &Path) -> anyhow::Result<()> {
    let manifest = &recording.manifest;
    let mut regions = Regions::default();
    let cpus: Vec<Cpu> = manifest.cpus.iter().map(|facts| facts.cpu).collect();
    let lines: Vec<Vec<Slice>> =
        cpus.iter().map(|cpu| slices_of_cpu(recording, *cpu, &mut regions)).collect();
    let host = manifest.host.clone().map(|host| one_line(&host));
    let location = |(thread, cpu): (u32, &Cpu)| Location {
        id: cpu.0.into(),
        name: format!("CPU {cpu}"),
        rank: 0,
        thread,
        host: host.clone().unwrap_or_default(),
    };
    let spans = manifest.cpus.iter();
    let definitions = Definitions {
        regions: regions.names.into_iter().map(|name| Region { name, site: None, mpi: false }).collect(),
        comms: Vec::new(),
        locations: (0..).zip(&cpus).map(location).collect(),
        sources: Vec::new(),
        span_ns: [0, spans.map(|facts| facts.end_ns.as_nanos()).max().unwrap_or(0)],
    };
    let facts = Facts {
        creator: Some(format!("quell {}", env!("CARGO_PKG_VERSION"))),
        description: Some(format!("quell recording {}", one_line(&recording.name()))),
        machine: host,
        zero_clock_ns: manifest.zero_monotonic_ns.unwrap_or(0),
        realtime_ns: manifest.zero_unix_ns,
        properties: Vec::new(),
    };
    let mut writer = Writer::with_facts(output, &definitions, facts)?;
    for (location, slices) in lines.into_iter().enumerate() {
        events(slices, |event| writer.event(location, event))?;
        writer.close(location)?;
    }
    writer.finish()?;
    Ok(())
}

fn slices_of_cpu(recording: &Recording, cpu: Cpu, regions: &mut Regions) -> Vec<Slice> {
    let mut all = Vec::new();
    for trace in recording.traces.iter().filter(|trace| trace.cpu == cpu) {
        for detour in &trace.detours {
            let region = regions.number(if detour.own { "quell's own writing" } else { "detour" });
            all.push(Slice { start: detour.start.as_nanos(), end: detour.end().as_nanos(), region });
        }
    }
    for series in recording.quanta.iter().filter(|series| series.cpu == cpu) {
        let slice = |quantum: &quell_recording::Quantum| {
            let level = recording.manifest.level_of(quantum.work);
            let region = regions.number(level.map_or("quantum", |level| level.name.slice()));
            let start = quantum.start.as_nanos();
            Slice { start, end: start.saturating_add(quantum.duration.as_nanos()), region }
        };
        all.extend(series.quanta.iter().map(slice));
    }
    for side in recording.intervals.iter().filter(|side| side.cpu == cpu) {
        for one in &side.intervals {
            let region = regions.number(&one.source.to_string());
            all.push(Slice { start: one.start.as_nanos(), end: one.end().as_nanos(), region });
        }
    }
    all.sort_by_key(|slice| (slice.start, Reverse(slice.end)));
    all
}

/// OTF2 regions must nest: a region that would extend beyond the enclosing one ends with it.
fn events<E>(slices: Vec<Slice>, mut each: impl FnMut(Event) -> Result<(), E>) -> Result<(), E> {
    let mut open: Vec<Slice> = Vec::new();
    let leave = |slice: Slice| Event { time_ns: slice.end, what: What::Leave(slice.region) };
    for mut slice in slices {
        while let Some(ended) = open.pop_if(|outer| outer.end <= slice.start) {
            each(leave(ended))?;
        }
        slice.end = open.last().map_or(slice.end, |outer| slice.end.min(outer.end));
        each(Event { time_ns: slice.start, what: What::Enter(slice.region) })?;
        open.push(slice);
    }
    open.into_iter().rev().try_for_each(|slice| each(leave(slice)))
}
