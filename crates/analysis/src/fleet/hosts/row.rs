//! The row of one host.

use quell_recording::{Interval, MemoryName, Method, Recording, SourceKind, format_cpu_list};
use schemars::JsonSchema;
use serde::Serialize;

use super::StandsOut;
use crate::attribution::SourceRow;
use crate::memory::{MemoryRow, memory};
use crate::overview::quanta;
use crate::stats::Durations;

/// One recording. Its noise depends on its method: detours, the time that quanta lost, for `memory` the time in loads from main memory that others'
/// use of it took, or (for `kernel` and `phases`) the time that the kernel and other tasks took.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostRow {
    /// The recording's name.
    pub name: String,
    /// The host on which it was made.
    pub host: Option<String>,
    /// The state of the recording, as in quell.show.
    pub state: String,
    /// `detour`, `fwq`, `ftq`, `memory`, `kernel` or `phases`.
    pub method: String,
    /// The observed CPUs, as in `0,2-5`.
    pub cpus: String,
    /// Number of these CPUs.
    pub cpu_count: u64,
    /// The longest time that one of them was observed.
    pub span_ns: u64,
    /// Noise overhead over all CPUs: time lost / time observed, in percent; null if it is not known.
    pub overhead_percent: Option<f64>,
    /// The CPU with the highest noise overhead.
    pub worst_cpu: Option<WorstCpu>,
    /// The detours, or for `kernel` and `phases` the intervals; null for quanta.
    pub events: Option<Events>,
    /// The source that took most: of the time of detours, if there are any, otherwise of all time; null for `memory`.
    pub top_source: Option<HostSource>,
    /// Ranks of an MPI run on this host.
    pub ranks: Vec<Binding>,
    /// Number of rows and intervals that were dropped.
    pub lost: u64,
    /// The figures in which it stands out among hosts that were recorded in the same way; empty if there are none.
    pub stands_out: Vec<StandsOut>,
}

/// The CPU of a host that lost most time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorstCpu {
    /// The CPU.
    pub cpu: u32,
    /// Its noise overhead.
    pub overhead_percent: f64,
}

/// Figures of the events that disturbed; the durations are zero if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Events {
    /// Number of events.
    pub count: u64,
    /// Mean number of events per second of observed time of a CPU.
    pub rate_per_s: f64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A source of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostSource {
    /// Its name, which a process or a driver chose: untrusted text.
    pub source: String,
    /// The time that it took.
    pub total_ns: u64,
}

/// The CPU binding of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Binding {
    /// Its number.
    pub rank: u32,
    /// The CPUs that it was allowed to run on, as in `0,2-5`.
    pub cpus: String,
}

/// The time that one CPU lost, and the time that it was observed.
struct Loss {
    cpu: u32,
    lost_ns: f64,
    observed_ns: f64,
}

/// Summarises a recording. `sources` are those of the node, as [`sum_over_cpus`] returns them.
pub(super) fn row(recording: &Recording, sources: Option<&[SourceRow]>) -> HostRow {
    let manifest = &recording.manifest;
    let (losses, times) = match manifest.method {
        Method::Detour => detours(recording),
        Method::Fwq | Method::Ftq => (losses_from_quanta(recording), None),
        Method::Kernel | Method::Phases if sources.is_some() => intervals(recording),
        Method::Memory => (losses_from_memory(recording), None),
        Method::Kernel | Method::Phases | Method::Histogram => (Vec::new(), None),
    };
    let observed: f64 = losses.iter().map(|loss| loss.observed_ns).sum();
    let lost: f64 = losses.iter().map(|loss| loss.lost_ns).sum();
    let known = losses.iter().filter(|loss| loss.observed_ns > 0.0);
    let of_cpu = known
        .map(|loss| WorstCpu { cpu: loss.cpu, overhead_percent: 100.0 * loss.lost_ns / loss.observed_ns });
    let events = times.filter(|_| observed > 0.0).map(|times| {
        let summary = Durations::new(times).summary();
        let rate_per_s = summary.count as f64 / (observed / 1e9);
        Events { count: summary.count, rate_per_s, p99_ns: summary.p99_ns, max_ns: summary.max_ns }
    });
    let mut ranks: Vec<Binding> = manifest.mpi.iter().flat_map(|mpi| &mpi.here).map(binding).collect();
    ranks.sort_by_key(|one| one.rank);
    let cpus: Vec<_> = manifest.cpus.iter().map(|facts| facts.cpu).collect();
    HostRow {
        name: recording.name(),
        host: manifest.host.clone(),
        state: format!("{:?}", manifest.state).to_lowercase(),
        method: manifest.method.to_string(),
        cpus: format_cpu_list(&cpus),
        cpu_count: cpus.len() as u64,
        span_ns: manifest.cpus.iter().map(|facts| facts.span().length().as_nanos()).max().unwrap_or(0),
        overhead_percent: (observed > 0.0).then(|| 100.0 * lost / observed),
        worst_cpu: of_cpu.max_by(|a, b| a.overhead_percent.total_cmp(&b.overhead_percent)),
        events,
        // No source of the kernel's has a part in others' use of memory.
        top_source: sources.filter(|_| manifest.method != Method::Memory).and_then(top),
        ranks,
        lost: manifest.lost().saturating_add(manifest.sources.as_ref().map_or(0, |facts| facts.lost)),
        stands_out: Vec::new(),
    }
}

fn binding(facts: &quell_recording::RankFacts) -> Binding {
    Binding { rank: facts.rank, cpus: facts.cpus.clone() }
}

/// The sources that belong to the node: without quell and the program whose phases were recorded.
pub(super) fn sum_over_cpus(recording: &Recording, mut sources: Vec<SourceRow>) -> Vec<SourceRow> {
    let programs = programs(recording);
    sources.retain(|row| !row.own && !programs.contains(&row.source));
    sources
}

/// The names of the recorded program's ranks among the sources.
fn programs(recording: &Recording) -> Vec<String> {
    let pids = rank_pids(recording);
    let all = recording.intervals.iter().flat_map(|side| &side.intervals);
    let theirs = all.filter(|one| one.source.kind() == SourceKind::Task && pids.contains(&one.pid));
    let mut names: Vec<String> = Vec::new();
    for one in theirs.map(|one| &one.source) {
        if !names.iter().any(|name| *name == one.to_string()) {
            names.push(one.to_string());
        }
    }
    names
}

fn rank_pids(recording: &Recording) -> Vec<u32> {
    recording.manifest.mpi.iter().flat_map(|mpi| &mpi.here).map(|facts| facts.pid).collect()
}

fn top(sources: &[SourceRow]) -> Option<HostSource> {
    let time = |row: &SourceRow| row.in_detours_ns.unwrap_or(row.total_ns);
    let most = sources.iter().filter(|row| time(row) > 0).max_by_key(|row| time(row))?;
    Some(HostSource { source: most.source.clone(), total_ns: time(most) })
}

fn detours(recording: &Recording) -> (Vec<Loss>, Option<Vec<u64>>) {
    let loss = |trace: &quell_recording::Trace| Loss {
        cpu: trace.cpu.0,
        lost_ns: trace.noise().map(|detour| detour.duration.as_nanos() as f64).sum(),
        observed_ns: trace.observed().as_nanos() as f64,
    };
    let times =
        recording.traces.iter().flat_map(|trace| trace.noise()).map(|detour| detour.duration.as_nanos());
    (recording.traces.iter().map(loss).collect(), Some(times.collect()))
}

fn losses_from_quanta(recording: &Recording) -> Vec<Loss> {
    let of_cpu = |one: crate::overview::QuantaOverview| Loss {
        cpu: one.cpu,
        lost_ns: one.span_ns as f64 * one.overhead_percent / 100.0,
        observed_ns: one.span_ns as f64,
    };
    quanta(recording).into_iter().map(of_cpu).collect()
}

fn losses_from_memory(recording: &Recording) -> Vec<Loss> {
    let main = MemoryName::Main.to_string();
    let of_cpu = |row: MemoryRow| Loss {
        cpu: row.cpu,
        lost_ns: row.span_ns as f64 * row.share_of_others(),
        observed_ns: row.span_ns as f64,
    };
    memory(recording).into_iter().filter(|row| row.level == main).map(of_cpu).collect()
}

/// The time that the kernel and other tasks took, net of nesting; an interval counts with its net time.
fn intervals(recording: &Recording) -> (Vec<Loss>, Option<Vec<u64>>) {
    let (pids, programs) = (rank_pids(recording), programs(recording));
    let own = recording.manifest.sources.as_ref().and_then(|facts| facts.own_pid);
    let is_noise = |one: &&Interval| {
        let task = one.source.kind() == SourceKind::Task;
        !(task
            && (Some(one.pid) == own
                || pids.contains(&one.pid)
                || programs.contains(&one.source.to_string())))
    };
    let mut losses = Vec::new();
    let mut times = Vec::new();
    for facts in &recording.manifest.cpus {
        let side = recording.intervals.iter().find(|side| side.cpu == facts.cpu);
        let first = times.len();
        let rows = side.into_iter().flat_map(|side| &side.intervals).filter(is_noise);
        times.extend(rows.map(|one| one.net.as_nanos()));
        losses.push(Loss {
            cpu: facts.cpu.0,
            lost_ns: times[first..].iter().map(|&ns| ns as f64).sum(),
            observed_ns: facts.span().length().as_nanos() as f64,
        });
    }
    (losses, Some(times))
}
