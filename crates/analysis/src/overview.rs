//! A recording at a glance: the figures of `show`, per CPU.

use std::collections::BTreeMap;

use quell_recording::columns::{Columns, describe};
use quell_recording::{
    ClockFacts, Cpu, CpuFacts, LoopFacts, Method, Nanos, Quanta, Recording, Trace, warning as recording,
};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Warning;
use crate::histogram_summary::HistogramOverview;
use crate::memory::{MemoryRow, memory};
use crate::periods::{Period, periods};
use crate::simultaneous::{Simultaneous, simultaneous};
use crate::stats::Durations;

/// The part of `show --json` that does not concern sources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Overview {
    /// `quell.show/2`.
    pub schema: &'static str,
    /// The recording's name.
    pub name: String,
    /// The host on which it was made.
    pub host: Option<String>,
    /// Kernel release and build.
    pub kernel: Option<String>,
    /// The processor's own name.
    pub processor: Option<String>,
    /// `complete`, `recording` (cut off, or still being made), `interrupted`, `failed` or `imported`.
    pub state: String,
    /// Why it failed, or where it was imported from.
    pub note: Option<String>,
    /// Wall-clock time of the recording's zero, in ns since 1970.
    pub zero_unix_ns: Option<u64>,
    /// `detour`, `fwq`, `ftq`, `memory`, `kernel`, `phases` or `histogram`.
    pub method: String,
    /// Only longer detours were recorded, in ns.
    pub threshold_ns: Option<f64>,
    /// The probe's clock.
    pub clock: Option<ClockFacts>,
    /// Number of rows that were dropped for lack of space, over all CPUs.
    pub lost: u64,
    /// Warnings for the reader of the figures.
    pub warnings: Vec<Warning>,
    /// One entry per CPU, for the detour method.
    pub cpus: Vec<CpuOverview>,
    /// What strikes all these CPUs at the same time; null for fewer than two.
    pub simultaneous: Option<Simultaneous>,
    /// One entry per CPU, for FWQ, FTQ and the work in phases of an MPI program.
    pub quanta: Vec<QuantaOverview>,
    /// One entry for each CPU and level of memory, for the memory method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub memory: Vec<MemoryRow>,
    /// One entry for each CPU, thread and kind, for histograms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub histograms: Vec<HistogramOverview>,
}

/// Figures of the detours of one CPU. quell's own are counted separately and are in no other figure.
#[derive(Clone, Debug, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct CpuOverview {
    /// The CPU.
    #[column(title = "CPU", id)]
    pub cpu: u32,
    /// Noise overhead: time lost to detours / time observed, in percent.
    #[column(title = "noise %", precision = 4)]
    pub overhead_percent: f64,
    /// The shortest detour that the probe can distinguish from its own loop.
    #[column(minor)]
    pub resolution_ns: Option<f64>,
    /// The mean frequency while it was measured, in percent of the time-stamp counter's; absent where the processor does not count it.
    #[column(title = "frequency %", precision = 1, minor, filled)]
    pub frequency_percent: Option<f64>,
    /// Number of detours.
    #[column]
    pub detours: u64,
    /// Detours per second of observed time.
    #[column(title = "per s", precision = 1)]
    pub rate_per_s: f64,
    /// Shortest detour (zero if there is none, like all the durations that follow).
    #[column(title = "min", zero, minor)]
    pub min_ns: u64,
    /// Mean duration.
    #[column(title = "mean", zero, minor)]
    pub mean_ns: f64,
    /// Median duration.
    #[column(title = "p50", zero)]
    pub p50_ns: u64,
    /// 90th percentile of the durations.
    #[column(title = "p90", zero, page)]
    pub p90_ns: u64,
    /// 99th percentile.
    #[column(title = "p99", zero)]
    pub p99_ns: u64,
    /// 99.9th percentile.
    #[column(title = "p99.9", zero)]
    pub p99_9_ns: u64,
    /// Longest detour.
    #[column(title = "max", zero)]
    pub max_ns: u64,
    /// Time lost to detours.
    #[column(title = "time lost", page)]
    pub noise_ns: u64,
    /// Physical core.
    #[column(page, id)]
    pub core: Option<u32>,
    /// Package (socket).
    #[column(page, id)]
    pub package: Option<u32>,
    /// NUMA node.
    #[column(title = "NUMA node", page, id)]
    pub numa_node: Option<u32>,
    /// How long the CPU was observed.
    #[column(title = "watched", page)]
    pub span_ns: u64,
    /// The span less the time that quell itself took.
    pub observed_ns: u64,
    /// The probe's loop.
    #[serde(rename = "loop")]
    #[column(nested, title = "loop")]
    pub probe_loop: Option<LoopFacts>,
    /// Detours that quell's own writing caused.
    #[column(title = "own", page)]
    pub own_detours: u64,
    /// Time that they took.
    #[column(title = "own time", page)]
    pub own_ns: u64,
    /// Number of rows dropped on this CPU.
    #[column(title = "lost rows", page)]
    pub lost: u64,
    /// Periodic sources, found in the spectrum, most noise first.
    pub periods: Vec<Period>,
}

/// A table row: a period that was found in the noise of a CPU.
#[derive(Debug, Columns)]
pub struct PeriodRow<'a> {
    /// The CPU.
    #[column(title = "CPU", id)]
    pub cpu: u32,
    /// The period.
    #[column(flatten)]
    pub period: &'a Period,
}

/// Figures of the quanta of one CPU.
#[derive(Clone, Debug, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct QuantaOverview {
    /// The CPU.
    #[column(title = "CPU", id)]
    pub cpu: u32,
    /// FWQ: time above the fastest quantum / all time. FTQ: work below the fullest quantum / all work that could
    /// have been done. In percent (Hoefler et al. 2010).
    #[column(title = "noise %", precision = 4)]
    pub overhead_percent: f64,
    /// Number of quanta.
    #[column]
    pub quanta: u64,
    /// Time that they cover.
    #[column(title = "watched", page)]
    pub span_ns: u64,
    /// Shortest quantum.
    #[column(title = "min")]
    pub min_ns: u64,
    /// Median quantum.
    #[column(title = "p50")]
    pub p50_ns: u64,
    /// 99th percentile.
    #[column(title = "p99")]
    pub p99_ns: u64,
    /// Longest quantum.
    #[column(title = "max")]
    pub max_ns: u64,
    /// Least work in a quantum.
    #[column(title = "work min")]
    pub min_work: u64,
    /// Median work.
    #[column(title = "work p50")]
    pub p50_work: u64,
    /// Most work in a quantum.
    #[column(title = "work max")]
    pub max_work: u64,
}

/// The schema's name and version.
pub const SCHEMA: &str = "quell.show/2";

/// Noise overhead above which a system is reported: no system for parallel programs takes this much for itself.
pub(crate) const BUSY_PERCENT: f64 = 10.0;

/// Summarises a recording.
pub fn overview(recording: &Recording) -> Overview {
    let manifest = &recording.manifest;
    let detour_method = manifest.method == Method::Detour;
    let facts: BTreeMap<Cpu, &CpuFacts> = manifest.cpus.iter().map(|facts| (facts.cpu, facts)).collect();
    let one = |trace: &Trace| from_trace(trace, facts.get(&trace.cpu).copied());
    let cpus = recording.traces.par_iter().filter(|_| detour_method).map(one);
    let cpus: Vec<CpuOverview> = cpus.collect();
    let busy = cpus.iter().filter_map(|cpu| taken(cpu.cpu, cpu.overhead_percent));
    let warnings = manifest.warnings.iter().cloned().chain(busy).map(Warning::from).collect();
    Overview {
        schema: SCHEMA,
        name: recording.name(),
        host: manifest.host.clone(),
        kernel: manifest.kernel.clone(),
        processor: manifest.processor.clone(),
        state: format!("{:?}", manifest.state).to_lowercase(),
        note: manifest.note.clone(),
        zero_unix_ns: manifest.zero_unix_ns,
        method: manifest.method.to_string(),
        threshold_ns: manifest.threshold_ns,
        clock: manifest.clock.clone(),
        lost: manifest.lost(),
        warnings,
        simultaneous: detour_method.then(|| simultaneous(&recording.traces)).flatten(),
        cpus,
        quanta: quanta(recording),
        memory: memory(recording),
        histograms: crate::histogram_summary::overviews(recording),
    }
}

/// A warning about the CPU that was taken from the probe for the largest share of the time, if that is more than a system takes.
pub fn busiest(traces: &[Trace]) -> Option<recording::Warning> {
    let percent = |trace: &Trace| {
        (trace.cpu.0, overhead_percent(trace, Durations::from_noise([trace]).summary().total_ns))
    };
    let (cpu, percent) = traces.iter().map(percent).max_by(|one, other| one.1.total_cmp(&other.1))?;
    taken(cpu, percent)
}

fn taken(cpu: u32, percent: f64) -> Option<recording::Warning> {
    (percent > BUSY_PERCENT).then_some(recording::Warning::CpuTaken { cpu, percent })
}

fn overhead_percent(trace: &Trace, noise_ns: u64) -> f64 {
    100.0 * share(noise_ns as f64, trace.observed().as_nanos() as f64)
}

/// Figures of the quanta of each CPU; empty for methods without quanta.
pub(crate) fn quanta(recording: &Recording) -> Vec<QuantaOverview> {
    let method = recording.manifest.method;
    let tells = |series: &&Quanta| match method {
        Method::Fwq | Method::Ftq => true,
        // A loop that only performs operations has no work whose time could vary.
        Method::Phases => series.quanta.iter().any(|quantum| quantum.duration > Nanos::ZERO),
        Method::Detour | Method::Memory | Method::Kernel | Method::Histogram => false,
    };
    recording.quanta.iter().filter(tells).map(|series| from_quanta(series, method)).collect()
}

fn from_trace(trace: &Trace, facts: Option<&CpuFacts>) -> CpuOverview {
    let summary = Durations::from_noise([trace]).summary();
    let own = trace.detours.iter().filter(|d| d.own);
    let observed = trace.observed();
    CpuOverview {
        cpu: trace.cpu.0,
        core: facts.and_then(|f| f.core),
        package: facts.and_then(|f| f.package),
        numa_node: facts.and_then(|f| f.numa_node),
        span_ns: trace.span.length().as_nanos(),
        observed_ns: observed.as_nanos(),
        detours: summary.count,
        rate_per_s: share(summary.count as f64, observed.as_secs_f64()),
        noise_ns: summary.total_ns,
        overhead_percent: overhead_percent(trace, summary.total_ns),
        resolution_ns: facts.and_then(|f| f.resolution_ns),
        frequency_percent: facts.and_then(|f| f.frequency_percent),
        min_ns: summary.min_ns,
        mean_ns: summary.mean_ns,
        p50_ns: summary.p50_ns,
        p90_ns: summary.p90_ns,
        p99_ns: summary.p99_ns,
        p99_9_ns: summary.p99_9_ns,
        max_ns: summary.max_ns,
        lost: facts.map_or(0, |f| f.lost),
        own_detours: own.clone().count() as u64,
        own_ns: own.fold(Nanos::ZERO, |sum, d| sum + d.duration).as_nanos(),
        probe_loop: facts.and_then(|f| f.probe_loop),
        periods: periods(trace),
    }
}

fn from_quanta(series: &Quanta, method: Method) -> QuantaOverview {
    let times = Durations::new(series.quanta.iter().map(|q| q.duration.as_nanos()).collect());
    let works = Durations::new(series.quanta.iter().map(|q| q.work).collect());
    let (time, work) = (times.summary(), works.summary());
    let overhead = match method {
        Method::Ftq => 1.0 - share(work.mean_ns, work.max_ns as f64),
        _ => 1.0 - share(time.min_ns as f64, time.mean_ns),
    };
    let Cpu(cpu) = series.cpu;
    QuantaOverview {
        cpu,
        quanta: time.count,
        span_ns: time.total_ns,
        overhead_percent: if time.count == 0 { 0.0 } else { 100.0 * overhead },
        min_ns: time.min_ns,
        p50_ns: time.p50_ns,
        p99_ns: time.p99_ns,
        max_ns: time.max_ns,
        min_work: work.min_ns,
        p50_work: work.p50_ns,
        max_work: work.max_ns,
    }
}

/// A ratio; zero if the whole is zero.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
