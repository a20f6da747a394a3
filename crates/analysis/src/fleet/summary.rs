//! The summary of one node: a few KiB, whatever the size of its recording.

use std::collections::BTreeMap;

use quell_recording::{Interval, Method, Nanos, Recording, Source, SourceKind, Span};
use quell_sim::Draws;
use rustc_hash::FxHashMap;

use super::curve::Curve;
use super::duration_bands;
use super::sums::{Event, Gathered, Sums, Windows};
use crate::attribution::blames;
use crate::overview;
use crate::whatif::family;

/// Name of the sum of all noise of a node.
pub(super) const ALL: &str = "all noise";
/// Name of detour time that no source explains.
pub(super) const UNATTRIBUTED: &str = "unattributed";
/// Maximum number of sources that are kept per node, by time: processes can have any number of names.
const MOST_SOURCES: usize = 64;

/// The summary of one node of a fleet. Its rows need not stay in memory.
#[derive(Clone, Debug)]
pub struct NodeSummary {
    pub(super) name: String,
    pub(super) host: Option<String>,
    pub(super) method: Method,
    pub(super) cpus: usize,
    /// The longest time that a CPU was observed.
    pub(super) span_ns: u64,
    pub(super) kernel: Option<String>,
    pub(super) clock: Option<String>,
    pub(super) whole: bool,
    pub(super) lost: u64,
    /// Observed time in seconds, over all CPUs.
    pub(super) watched_s: f64,
    /// Whether the kernel's intervals are known.
    pub(super) sources_known: bool,
    /// [`ALL`], and one entry per source, or per band of durations if sources are unknown.
    pub(super) sums: BTreeMap<String, Sums>,
    /// The delay over a quantum; `None` if it was not requested, or there are no detours.
    pub(super) curve: Option<Curve>,
    pub(super) no_curve_because: Option<String>,
}

impl NodeSummary {
    /// Summarises a recording, in one pass over its rows. With a quantum it includes the node's delay over one; the places that are
    /// evaluated depend only on the seed and the recording's name.
    pub fn from_recording(recording: &Recording, quantum: Option<Nanos>, seed: u64) -> Self {
        let manifest = &recording.manifest;
        let spans: Vec<Span> = manifest.cpus.iter().map(|facts| facts.span()).collect();
        let gathering = Gathering::new(recording, &spans);
        let curve = quantum.map(|quantum| curve(recording, quantum, seed));
        let (curve, no_curve_because) = match curve {
            Some(Ok(curve)) => (Some(curve), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        Self {
            name: recording.name(),
            host: manifest.host.clone(),
            method: manifest.method,
            cpus: manifest.cpus.len(),
            span_ns: spans.iter().map(|span| span.length().as_nanos()).max().unwrap_or(0),
            kernel: manifest.kernel.clone(),
            clock: manifest.clock.as_ref().map(|clock| clock.name.clone()),
            whole: !matches!(
                manifest.state,
                quell_recording::State::Recording | quell_recording::State::Failed
            ),
            lost: manifest.lost().saturating_add(manifest.sources.as_ref().map_or(0, |facts| facts.lost)),
            watched_s: gathering.watched_s.iter().sum(),
            sources_known: sources_known(recording),
            sums: gathering.sums(),
            curve,
            no_curve_because,
        }
    }

    /// Events or time as a rate over the observed time.
    pub(super) fn per_s(&self, sum: f64) -> f64 {
        if self.watched_s > 0.0 { sum / self.watched_s } else { 0.0 }
    }
}

fn sources_known(recording: &Recording) -> bool {
    recording.manifest.sources.as_ref().is_some_and(|facts| facts.unknown_because.is_none())
}

fn curve(recording: &Recording, quantum: Nanos, seed: u64) -> Result<Curve, String> {
    if recording.manifest.method != Method::Detour {
        return Err(format!("it holds {}, not detours", recording.manifest.method.holds()));
    }
    if recording.manifest.unordered {
        return Err("it holds no order of its detours".into());
    }
    let name: Vec<u64> = recording.name().bytes().map(u64::from).collect();
    Curve::from_traces(&recording.traces, quantum, Draws::new(seed, &name)).map_err(|error| error.to_string())
}

/// The sums of a node while its rows are read.
struct Gathering<'a> {
    by_source: FxHashMap<&'a Source, usize>,
    places: BTreeMap<String, usize>,
    gathered: Vec<Gathered>,
    watched_s: Vec<f64>,
    windows: Windows,
    /// Losses of quanta, which are not events.
    lost: Option<Sums>,
}

impl<'a> Gathering<'a> {
    fn new(recording: &'a Recording, spans: &[Span]) -> Self {
        let start = spans.iter().map(|span| span.start).min().unwrap_or_default();
        let end = spans.iter().map(|span| span.end).max().unwrap_or_default();
        let mut all = Self {
            by_source: FxHashMap::default(),
            places: BTreeMap::new(),
            gathered: Vec::new(),
            watched_s: spans.iter().map(|span| span.length().as_secs_f64()).collect(),
            windows: Windows::from_span(Span { start, end }),
            lost: None,
        };
        if recording.manifest.method == Method::Detour {
            all.watched_s = recording.traces.iter().map(|trace| trace.observed().as_secs_f64()).collect();
        }
        let known = sources_known(recording);
        match recording.manifest.method {
            Method::Detour => all.detours(recording, known),
            Method::Fwq | Method::Ftq => all.lost = Some(sums_from_quanta(recording)),
            Method::Memory | Method::Kernel | Method::Phases | Method::Histogram => {}
        }
        if known {
            all.intervals(recording);
        }
        all
    }

    fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        self.gathered.push(Gathered::new(self.watched_s.len()));
        self.places.insert(name.to_owned(), self.gathered.len() - 1);
        self.gathered.len() - 1
    }

    fn add(&mut self, place: usize, cpu: usize, event: Event) {
        self.gathered[place].add(cpu, event, self.windows);
    }

    fn detours(&mut self, recording: &Recording, known: bool) {
        let all = self.place(ALL);
        let bands: Vec<usize> =
            if known { Vec::new() } else { duration_bands::names().map(|name| self.place(&name)).collect() };
        for (cpu, trace) in recording.traces.iter().enumerate() {
            for detour in trace.noise() {
                let event = Event { at: detour.start, ns: detour.duration.as_nanos(), weight: 1.0 };
                self.add(all, cpu, event);
                for (band, weight) in duration_bands::weights(event.ns).into_iter().filter(|_| !known) {
                    self.add(bands[band], cpu, Event { weight, ..event });
                }
            }
        }
        if known {
            let place = self.place(UNATTRIBUTED);
            for (cpu, (_, blames)) in blames(recording).into_iter().enumerate() {
                let alone =
                    blames.iter().filter(|blame| 2 * blame.left_ns > blame.detour.duration.as_nanos());
                for blame in alone {
                    self.add(place, cpu, Event { at: blame.detour.start, ns: blame.left_ns, weight: 1.0 });
                }
            }
        }
    }

    fn intervals(&mut self, recording: &'a Recording) {
        let programs = Programs::from_recording(recording);
        let all = (recording.manifest.method != Method::Detour).then(|| self.place(ALL));
        for (cpu, side) in recording.intervals.iter().enumerate() {
            for one in side.intervals.iter().filter(|one| one.net > Nanos::ZERO && !programs.hold(one)) {
                let place = match self.by_source.get(&one.source) {
                    Some(&place) => place,
                    None => {
                        let place = self.place(&family(&one.source));
                        self.by_source.insert(&one.source, place);
                        place
                    }
                };
                let event = Event { at: one.start, ns: one.net.as_nanos(), weight: 1.0 };
                self.add(place, cpu, event);
                if let Some(all) = all {
                    self.add(all, cpu, event);
                }
            }
        }
    }

    fn sums(&self) -> BTreeMap<String, Sums> {
        let of =
            |(name, &place): (&String, &usize)| (name.clone(), self.gathered[place].sums(&self.watched_s));
        let mut sums: Vec<(String, Sums)> =
            self.places.iter().map(of).filter(|(name, sums)| name == ALL || sums.count > 0.0).collect();
        sums.sort_by(|a, b| (b.0 == ALL).cmp(&(a.0 == ALL)).then(b.1.total_ns.total_cmp(&a.1.total_ns)));
        sums.truncate(MOST_SOURCES + 1);
        sums.extend(self.lost.map(|lost| (ALL.to_owned(), lost)));
        sums.into_iter().collect()
    }
}

/// FWQ and FTQ only measure how much time was lost.
fn sums_from_quanta(recording: &Recording) -> Sums {
    let mut sums = Sums::default();
    for one in overview::quanta(recording) {
        let share = one.overhead_percent / 100.0;
        sums.count += one.span_ns as f64 / 1e6;
        sums.total_ns += one.span_ns as f64 * share;
        sums.worst_share = sums.worst_share.max(1e9 * share);
    }
    Sums { settled_ns: sums.total_ns, ..sums }
}

/// quell itself, and the program whose phases were recorded: they are not noise of the node.
struct Programs {
    pids: Vec<u32>,
    /// Threads of a rank have its name.
    names: Vec<Source>,
}

impl Programs {
    fn from_recording(recording: &Recording) -> Self {
        let manifest = &recording.manifest;
        let ranks: Vec<u32> = manifest.mpi.iter().flat_map(|mpi| &mpi.here).map(|facts| facts.pid).collect();
        let mut names: Vec<Source> = Vec::new();
        if !ranks.is_empty() {
            for one in recording.intervals.iter().flat_map(|side| &side.intervals) {
                let theirs = one.source.kind() == SourceKind::Task && ranks.contains(&one.pid);
                if theirs && !names.contains(&one.source) {
                    names.push(one.source.clone());
                }
            }
        }
        let own = manifest.sources.as_ref().and_then(|facts| facts.own_pid);
        Self { pids: ranks.into_iter().chain(own).collect(), names }
    }

    fn hold(&self, one: &Interval) -> bool {
        one.source.kind() == SourceKind::Task
            && (self.pids.contains(&one.pid) || self.names.contains(&one.source))
    }
}
