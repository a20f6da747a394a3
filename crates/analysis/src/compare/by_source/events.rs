//! The detours of each source of a recording, with their places in time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use quell_recording::{Cpu, Interval, Recording};

use crate::attribution::{Blame, JoinedRecording, UNATTRIBUTED, family};
use crate::stats::{mean, population_variance, variance};

/// Number of blocks of time, in which the scatter of counts is measured.
const BLOCKS: usize = 32;
/// With fewer detours, gaps between them show no period. Four at random have gaps as equal as [`PERIOD`] once in 80 times; that one side has
/// them and the other none is as rare, so both together are within [`super::ERROR`].
const LEAST_FOR_A_PERIOD: usize = 4;
/// Gaps that scatter by less than this part of their mean are a period.
const PERIOD: f64 = 0.1;
/// The dispersion of counts that a period gives.
const OF_A_PERIOD: f64 = 0.2;
/// The name of all detours, if a side has no sources.
const ALL: &str = "all";

/// A recording's detours, by what made them.
pub(super) struct Observed {
    pub sources: BTreeMap<Arc<str>, Events>,
    /// The time that each CPU was observed, less quell's own.
    pub cpu_ns: BTreeMap<u32, f64>,
}

/// What a source did to the CPUs: one entry per detour that it has a part of.
#[derive(Default)]
pub(super) struct Events {
    events: Vec<Event>,
}

#[derive(Clone, Copy)]
struct Event {
    cpu: u32,
    start_ns: u64,
    block: usize,
    /// Its part of the detour.
    ns: u64,
}

/// Whether detours of the recording can be attributed.
pub(super) fn knows_sources(recording: &Recording) -> bool {
    recording.manifest.sources.as_ref().is_some_and(|facts| facts.unknown_because.is_none())
}

impl Observed {
    /// Attributes the detours; all are one source if sources are not known on both sides.
    pub fn new(recording: &Recording, sources_known: bool) -> Self {
        let mut observed = Self { sources: BTreeMap::new(), cpu_ns: BTreeMap::new() };
        for trace in &recording.traces {
            let own: u64 = trace
                .detours
                .iter()
                .filter(|detour| detour.own)
                .map(|detour| detour.duration.as_nanos())
                .sum();
            let ns = trace.span.length().as_nanos().saturating_sub(own);
            *observed.cpu_ns.entry(trace.cpu.0).or_default() += ns as f64;
        }
        let spans: HashMap<Cpu, (u64, u64)> = recording
            .traces
            .iter()
            .map(|trace| (trace.cpu, (trace.span.start.as_nanos(), trace.span.length().as_nanos())))
            .collect();
        let at = |cpu: Cpu, start_ns: u64, ns: u64| {
            let (begin, length) = spans.get(&cpu).copied().unwrap_or_default();
            let place = start_ns.saturating_sub(begin) as f64 / length.max(1) as f64;
            Event { cpu: cpu.0, start_ns, block: ((place * BLOCKS as f64) as usize).min(BLOCKS - 1), ns }
        };
        if sources_known {
            observed.attribute(recording, at);
        } else {
            let events = recording.traces.iter().flat_map(|trace| {
                let cpu = trace.cpu;
                trace.noise().map(move |detour| at(cpu, detour.start.as_nanos(), detour.duration.as_nanos()))
            });
            let events: Vec<Event> = events.collect();
            if !events.is_empty() {
                observed.sources.insert(ALL.into(), Events { events });
            }
        }
        observed
    }

    fn attribute(&mut self, recording: &Recording, at: impl Fn(Cpu, u64, u64) -> Event) {
        let none: &[Interval] = &[];
        let mut names: HashMap<(Cpu, usize), Arc<str>> = HashMap::new();
        let mut of_detour: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        let (steal, unattributed): (Arc<str>, Arc<str>) = ("steal".into(), UNATTRIBUTED.into());
        for (cpu, blames) in JoinedRecording::new(recording).blames() {
            let intervals = recording.intervals.iter().find(|side| side.cpu == cpu);
            let intervals = intervals.map_or(none, |side| &side.intervals);
            for Blame { detour, parts, stolen_ns, left_ns, .. } in blames {
                of_detour.clear();
                for part in parts {
                    let name = names
                        .entry((cpu, part.interval))
                        .or_insert_with(|| family(&intervals[part.interval].source).into());
                    *of_detour.entry(Arc::clone(name)).or_default() += part.ns;
                }
                for (name, ns) in [(&steal, stolen_ns), (&unattributed, left_ns)] {
                    if ns > 0 {
                        *of_detour.entry(Arc::clone(name)).or_default() += ns;
                    }
                }
                for (name, &ns) in of_detour.iter().filter(|(_, ns)| **ns > 0) {
                    let events = self.sources.entry(Arc::clone(name)).or_default();
                    events.events.push(at(cpu, detour.start.as_nanos(), ns));
                }
            }
            names.clear();
        }
    }

    /// The time of all CPUs.
    pub fn observed_ns(&self) -> f64 {
        self.cpu_ns.values().sum::<f64>().max(1.0)
    }

    /// The same in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.observed_ns() / 1e9
    }

    /// The share of the CPUs' time that a source took, in percent.
    pub fn share(&self, events: &Events) -> f64 {
        100.0 * events.lengths().map(|ns| ns as f64).sum::<f64>() / self.observed_ns()
    }

    /// The share that all sources took, in percent.
    pub fn percent(&self) -> f64 {
        self.sources.values().map(|events| self.share(events)).sum()
    }
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The source's part of each detour, in ns.
    pub fn lengths(&self) -> impl Iterator<Item = u64> {
        self.events.iter().map(|event| event.ns)
    }

    /// Those of each CPU that has any.
    pub fn by_cpu(&self) -> BTreeMap<u32, Self> {
        let mut of_cpus = BTreeMap::<u32, Self>::new();
        for event in &self.events {
            of_cpus.entry(event.cpu).or_default().events.push(*event);
        }
        of_cpus
    }

    /// Number of detours of which its part is longer than this.
    pub fn longer_than(&self, ns: u64) -> usize {
        self.events.iter().filter(|event| event.ns > ns).count()
    }

    /// The time that it took on one CPU.
    pub fn ns_on(&self, cpu: u32) -> f64 {
        self.events.iter().filter(|event| event.cpu == cpu).map(|event| event.ns as f64).sum()
    }

    /// The variance of the number of detours longer than this in a block of time, over its mean: 1 for single independent detours, more for
    /// bursts. Less only for a period: of few detours, an even spread over the blocks is no evidence. `None` without such detours.
    pub fn dispersion(&self, ns: u64) -> Option<f64> {
        let mut counts = [0.0; BLOCKS];
        let longer: Vec<&Event> = self.events.iter().filter(|event| event.ns > ns).collect();
        longer.iter().for_each(|event| counts[event.block] += 1.0);
        if is_periodic(&longer) {
            return Some(OF_A_PERIOD);
        }
        let per_block = longer.len() as f64 / BLOCKS as f64;
        let variance = variance(counts.into_iter(), per_block).filter(|_| per_block > 0.0)?;
        Some((variance / per_block).max(1.0))
    }
}

/// Whether they come at equal distances on the machine.
fn is_periodic(events: &[&Event]) -> bool {
    if events.len() < LEAST_FOR_A_PERIOD {
        return false;
    }
    let mut starts: Vec<u64> = events.iter().map(|event| event.start_ns).collect();
    starts.sort_unstable();
    let gaps = || starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect::<Vec<_>>().into_iter();
    let (Some(gap), Some(spread)) =
        (mean(gaps()), mean(gaps()).and_then(|gap| population_variance(gaps(), gap)))
    else {
        return false;
    };
    spread.sqrt() < PERIOD * gap
}
