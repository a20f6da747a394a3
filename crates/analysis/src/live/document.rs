//! The document at the end of an interval.

use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::Class;

/// One interval, and the totals since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Frame {
    /// `quell.watch/1`.
    pub schema: String,
    /// The end of the interval, in ns from the start of the run.
    pub time_ns: u64,
    /// Length of the interval.
    pub interval_ns: u64,
    /// Whether there was no probe, so that only the kernel's intervals are known.
    pub passive: bool,
    /// Why sources are not known; absent if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources_unknown_because: Option<String>,
    /// One entry per CPU, in their order.
    pub cpus: Vec<CpuNow>,
    /// One entry per source, by time in the interval, quell's own last; null if sources are not known.
    pub sources: Option<Vec<SourceNow>>,
    /// Detours longer than any before on their CPU, in order of time; in a CPU's first interval only its longest.
    pub longest: Vec<LongestDetour>,
    /// The cost of quell itself.
    pub overhead: Overhead,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CpuNow {
    /// The CPU.
    pub cpu: u32,
    /// Time lost to detours in the interval, in percent of the time observed; null without a probe. A detour counts in the interval in which
    /// it ended.
    pub noise_percent: Option<f64>,
    /// The same since the start.
    pub noise_percent_since_start: Option<f64>,
    /// Detours per second in the interval.
    pub detours_per_s: Option<f64>,
    /// The longest detour of the interval; 0 if there was none.
    pub max_ns: Option<u64>,
    /// The longest detour since the start.
    pub max_ns_since_start: Option<u64>,
    /// Time that interrupts, softirqs and the hypervisor took in the interval, in percent; null if sources are not known.
    pub kernel_percent: Option<f64>,
    /// The same since the start.
    pub kernel_percent_since_start: Option<f64>,
    /// Time that tasks took in the interval, in percent, without quell's probe. With a probe these are the tasks that disturbed it.
    pub tasks_percent: Option<f64>,
    /// The same since the start.
    pub tasks_percent_since_start: Option<f64>,
    /// Number of detours that quell itself caused in the interval; they are in no other figure.
    pub own_detours: u64,
    /// Sum of their times.
    pub own_ns: u64,
    /// Percentages of the last minute, the oldest first: of noise, or without a probe of the kernel's time.
    #[serde(skip)]
    pub history: Vec<f64>,
}

/// Time and count over some span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Share of the time of all observed CPUs.
    pub percent: f64,
    /// Number of events.
    pub count: u64,
    /// Events per second, over all observed CPUs.
    pub per_s: f64,
    /// Net time.
    pub time_ns: u64,
    /// Mean net time.
    pub mean_ns: f64,
    /// Longest net time.
    pub max_ns: u64,
    /// The detour time that is attributed to it; null without a probe.
    pub in_detours_ns: Option<u64>,
}

/// One source. `unattributed` is detour time that no source explains, a rough figure from each interval alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SourceNow {
    /// `tick`, `irq:NAME`, `task:COMM`, …; `unattributed`; `other tasks` for those without a row of their own. The process
    /// or the driver chose the name: untrusted text.
    pub source: String,
    /// Its class, as far as one interval shows it: periods are not searched for, so none is `type1`.
    pub class: Class,
    /// Figures of the interval.
    pub now: Figures,
    /// Figures since the start.
    pub since_start: Figures,
    /// What it worked on for most of its time: timer callback, work function, called function.
    pub detail: Option<String>,
}

/// A detour longer than any before on its CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LongestDetour {
    /// When it began.
    pub start_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// Its duration.
    pub duration_ns: u64,
    /// The sources that took it, by time, including `unattributed`; empty if sources are not known.
    pub culprits: Vec<Culprit>,
}

/// A source's share of a detour.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Culprit {
    /// The source: untrusted text.
    pub source: String,
    /// What it worked on.
    pub detail: Option<String>,
    /// Time that it took.
    pub ns: u64,
}

/// The cost of quell itself in the interval, except for the lost rows, which count from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Overhead {
    /// Time in quell's eBPF programs on all CPUs of the machine, in percent of one CPU; null if the kernel does not measure it.
    pub bpf_percent: Option<f64>,
    /// Number of their runs per second.
    pub bpf_runs_per_s: Option<f64>,
    /// CPU time of the thread that reads, joins and draws, in percent of one CPU. The probes are not included: each
    /// occupies its CPU completely.
    pub thread_percent: f64,
    /// Number of detours that quell itself caused, over all CPUs.
    pub own_detours: u64,
    /// Sum of their times.
    pub own_ns: u64,
    /// Number of detours lost since the start.
    pub lost_detours: u64,
    /// Number of kernel intervals lost since the start.
    pub lost_intervals: u64,
}
