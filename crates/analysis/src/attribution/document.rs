//! The part of the document of `show --json` on sources.

use quell_recording::columns::{Columns, describe};
use quell_recording::{ProgramCost, RecorderEffect};
use schemars::JsonSchema;
use serde::Serialize;

use super::class::Class;
use super::command::{CommandRow, ThreadRow};
use super::figures::Figures;
use super::groups::Named;
use super::unattributed::Unattributed;
use crate::Warning;

/// What took the CPUs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Attribution {
    /// Why sources are not known, and what to do; absent if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources_unknown_because: Option<String>,
    /// What limits the figures of sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub sources_warnings: Vec<Warning>,
    /// One entry per source, by time, quell's own last; null if sources are not known.
    pub sources: Option<Vec<SourceRow>>,
    /// How much of the detours is explained; null if sources are not known or there are no detours.
    pub explained: Option<Explained>,
    /// The time that each source took per CPU; null if sources are not known.
    pub per_cpu: Option<Vec<CpuSources>>,
    /// One entry per task, with `--by task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<TaskRow>>,
    /// One entry per class, with `--by class`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<ClassRow>>,
    /// The recorded command as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandRow>,
    /// Its threads, by their start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<ThreadRow>>,
    /// The cost of the kernel recorder's programs, if it was counted (`record --cost`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder_cost: Option<Vec<ProgramCost>>,
    /// What the kernel recorder adds to the detours, if it was measured (`record --effect`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder_effect: Option<RecorderEffect>,
}

/// One source. Count and times are those of its intervals on the recorded CPUs, whether they caused a detour or not, net
/// of what interrupted them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SourceRow {
    /// The task's id, if the source is a single task.
    #[column(id)]
    pub pid: Option<u32>,
    /// `tick`, `irq:NAME`, `task:COMM`, … The name is the process's or the driver's own: untrusted text.
    #[column(title = "name", name)]
    pub source: String,
    /// Its class.
    #[column(words)]
    pub class: Class,
    /// Number of intervals.
    #[column]
    pub count: u64,
    /// Sum of their times, net of what interrupted them.
    #[column(title = "total")]
    pub total_ns: u64,
    /// The shortest time.
    #[column(title = "min")]
    pub min_ns: u64,
    /// The longest time.
    #[column(title = "max")]
    pub max_ns: u64,
    /// The mean time.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// Their period, if at least half of them belong to one train.
    #[column(title = "period")]
    pub period_ns: Option<f64>,
    /// The detour time that is attributed to it; null if no detours were recorded.
    #[column(title = "in detours")]
    pub in_detours_ns: Option<u64>,
    /// Whether it is quell itself.
    pub own: bool,
    /// What it worked on, by time: timer callbacks, work functions, called functions.
    pub details: Vec<Named>,
    /// What caused it, by time.
    pub causes: Vec<Named>,
}

/// One task; figures as in `SourceRow`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TaskRow {
    /// The task's id.
    #[column(id)]
    pub pid: u32,
    /// Its name.
    #[column(name)]
    pub name: String,
    /// Number of runs.
    #[column]
    pub count: u64,
    /// Time that it ran, net of interrupts.
    #[column(title = "total")]
    pub total_ns: u64,
    /// Shortest run.
    #[column(title = "min")]
    pub min_ns: u64,
    /// Longest run.
    #[column(title = "max")]
    pub max_ns: u64,
    /// Mean run.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// Its period, if at least half of the runs belong to one train.
    #[column(title = "period")]
    pub period_ns: Option<f64>,
    /// The detour time that is attributed to it.
    #[column(title = "in detours")]
    pub in_detours_ns: Option<u64>,
    /// Whether it is quell itself.
    #[column(title = "note", page, yes = "quell itself: no noise of the node", no = "–")]
    pub own: bool,
    /// What woke it, by time.
    pub causes: Vec<Named>,
}

/// One class of sources.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct ClassRow {
    /// The class.
    #[column(words)]
    #[column(title = "what", words, with = Class::meaning)]
    pub class: Class,
    /// Number of sources in it.
    #[column]
    pub sources: u64,
    /// Number of intervals; for `unattributed`, of detours with unattributed time.
    #[column]
    pub count: u64,
    /// Sum of their net times; for `unattributed`, the unattributed time.
    #[column(title = "total")]
    pub total_ns: u64,
    /// The shortest time.
    #[column(title = "min")]
    pub min_ns: u64,
    /// The longest time.
    #[column(title = "max")]
    pub max_ns: u64,
    /// The mean time.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// The detour time that is attributed to it.
    #[column(title = "in detours")]
    pub in_detours_ns: Option<u64>,
}

/// How much of the detours is explained, and the tolerance of the match.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Explained {
    /// The figures over all CPUs.
    #[serde(flatten)]
    pub figures: Figures,
    /// Maximum overhang of an interval out of its detour, as measured: the 99th percentile of the overhangs, and at
    /// least one step of the clock.
    pub tolerance_ns: u64,
    /// That percentile as measured; null if no interval matched a single detour.
    pub overhang_p99_ns: Option<u64>,
    /// Number of ranges of kernel work that matched a single detour, from which the percentile is taken.
    pub overhang_pairs: u64,
    /// Share of the detours' time that would be explained by chance, in percent: with the intervals shifted in time, mean of 20 to 64 shifts.
    /// To be held against `time_percent`.
    pub chance_percent: f64,
    /// Time that the hypervisor took, attributed to the longest unexplained detours of the same windows.
    pub steal_attributed_ns: u64,
    /// The time that is not attributed.
    pub unattributed: Unattributed,
}

/// The time that each source took from one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CpuSources {
    /// The CPU.
    pub cpu: u32,
    /// How long it was observed.
    pub span_ns: u64,
    /// How much of its detours is explained; null if there are none.
    pub explained: Option<Figures>,
    /// Its sources, by time.
    pub sources: Vec<CpuSource>,
}

/// The time that one source took from one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CpuSource {
    /// The source.
    pub source: String,
    /// Whether it is quell itself.
    pub own: bool,
    /// Number of intervals.
    pub count: u64,
    /// Sum of their net times.
    pub total_ns: u64,
    /// The part of that time that lies in detours; null if no detours were recorded.
    pub in_detours_ns: Option<u64>,
}
