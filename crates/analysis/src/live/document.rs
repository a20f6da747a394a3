//! What is known at the end of an interval.

use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::Class;

/// One interval, and all time before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Frame {
    /// `quell.watch/1`.
    pub schema: String,
    /// The end of the interval, from the start of the run.
    pub time_ns: u64,
    /// Length of the interval.
    pub interval_ns: u64,
    /// Whether there was no probe: only what the kernel saw is known.
    pub passive: bool,
    /// Why sources are not known; absent where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources_unknown_because: Option<String>,
    /// One entry a CPU, in their order.
    pub cpus: Vec<CpuNow>,
    /// One entry a source, the one that took most time in the interval first, quell's own last; null where sources are not known.
    pub sources: Option<Vec<SourceNow>>,
    /// Detours that were longer than any before on their CPU, in order of time; in a CPU's first interval only its longest.
    pub longest: Vec<LongestDetour>,
    /// What quell itself costs.
    pub overhead: Overhead,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CpuNow {
    /// The CPU.
    pub cpu: u32,
    /// Time lost to detours in the interval, in percent of the time observed; null without a probe. A detour counts where it
    /// ended.
    pub noise_percent: Option<f64>,
    /// The same since the start.
    pub noise_percent_since_start: Option<f64>,
    /// Detours a second in the interval.
    pub detours_per_s: Option<f64>,
    /// The longest detour of the interval; 0 where there was none.
    pub max_ns: Option<u64>,
    /// The longest since the start.
    pub max_ns_since_start: Option<u64>,
    /// What interrupts, softirqs and the hypervisor took in the interval, in percent; null where sources are not known.
    pub kernel_percent: Option<f64>,
    /// The same since the start.
    pub kernel_percent_since_start: Option<f64>,
    /// What tasks took in the interval, in percent, quell's probe left out. With a probe these are tasks that disturbed it.
    pub tasks_percent: Option<f64>,
    /// The same since the start.
    pub tasks_percent_since_start: Option<f64>,
    /// Detours that quell itself caused in the interval; they are in no other figure.
    pub own_detours: u64,
    /// Their time.
    pub own_ns: u64,
    /// Percentages of the last minute, the oldest first: of noise, or without a probe of the kernel's.
    #[serde(skip)]
    pub history: Vec<f64>,
}

/// Time and count over some span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Share of all watched CPUs' time.
    pub percent: f64,
    /// How often.
    pub count: u64,
    /// How often a second, all watched CPUs together.
    pub per_s: f64,
    /// Net time.
    pub time_ns: u64,
    /// Mean net time.
    pub mean_ns: f64,
    /// Longest net time.
    pub max_ns: u64,
    /// The time of detours that was attributed to it; null without a probe.
    pub in_detours_ns: Option<u64>,
}

/// One source. `unattributed` is the time of detours that no source explains, a rough figure from each interval alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SourceNow {
    /// `tick`, `irq:NAME`, `task:COMM`, …; `unattributed`; `other tasks` for those without a row of their own. The name is
    /// the process's or the driver's own: hostile input.
    pub source: String,
    /// Its class, as far as one interval tells: no period is looked for, so none is `type1`.
    pub class: Class,
    /// In the interval.
    pub now: Figures,
    /// Since the start.
    pub since_start: Figures,
    /// What it worked at for most of its time: timer callback, work function, called function.
    pub detail: Option<String>,
}

/// A detour longer than any before on its CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LongestDetour {
    /// When it began.
    pub start_ns: u64,
    /// Where.
    pub cpu: u32,
    /// How long it was.
    pub duration_ns: u64,
    /// Who took it, most time first, `unattributed` among them; empty where sources are not known.
    pub culprits: Vec<Culprit>,
}

/// A source's part of a detour.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Culprit {
    /// The source: hostile input.
    pub source: String,
    /// What it worked at.
    pub detail: Option<String>,
    /// What it took.
    pub ns: u64,
}

/// What quell itself costs, in the interval but for the lost rows, which count from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Overhead {
    /// Time in quell's eBPF programs, all CPUs of the machine together, in percent of one CPU; null where the kernel does not count it.
    pub bpf_percent: Option<f64>,
    /// Their runs a second.
    pub bpf_runs_per_s: Option<f64>,
    /// CPU time of the thread that reads, joins and draws, in percent of one CPU. The probes are not in it: they take their
    /// CPUs whole.
    pub thread_percent: f64,
    /// Detours that quell itself caused, all CPUs together.
    pub own_detours: u64,
    /// Their time.
    pub own_ns: u64,
    /// Detours lost since the start.
    pub lost_detours: u64,
    /// Kernel intervals lost since the start.
    pub lost_intervals: u64,
}
