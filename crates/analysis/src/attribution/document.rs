//! What `show --json` says of sources.

use quell_recording::ProgramCost;
use quell_recording::columns::{AsValue, Columns, Value, ValueKind, describe};
use schemars::JsonSchema;
use serde::Serialize;

use super::command::{CommandRow, ThreadRow};
use super::figures::Figures;
use super::groups::Named;
use super::unattributed::Unattributed;
use crate::Warning;
use crate::overview::Overview;

/// What `show --json` prints: the recording at a glance, and its sources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Show")]
pub struct Show<'a> {
    /// The recording at a glance.
    #[serde(flatten)]
    pub overview: &'a Overview,
    /// Its sources.
    #[serde(flatten)]
    pub attribution: &'a Attribution,
}

/// Who took the CPUs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Attribution {
    /// Why sources are not known, and what to do; absent where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources_unknown_because: Option<String>,
    /// What limits the figures of sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources_warnings: Vec<Warning>,
    /// One entry a source, the one that took most time first, quell's own last; null where sources are not known.
    pub sources: Option<Vec<SourceRow>>,
    /// How much of the detours is explained; null where sources are not known or there are no detours.
    pub explained: Option<Explained>,
    /// What each source took per CPU; null where sources are not known.
    pub per_cpu: Option<Vec<CpuSources>>,
    /// One entry a task, with `--by task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<TaskRow>>,
    /// One entry a class, with `--by class`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<ClassRow>>,
    /// The recorded command as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandRow>,
    /// Its threads, by their start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<ThreadRow>>,
    /// What the kernel recorder's programs cost, where that was counted (`record --cost`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder_cost: Option<Vec<ProgramCost>>,
}

/// Kinds of noise, after Jones et al., "Improving the Scalability of Parallel Jobs by adding Parallel Awareness to
/// the Operating System", SC 2003, sections 4.2 and 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Short interrupts that come round with a period.
    Type1,
    /// Daemons and other tasks that the kernel scheduled.
    Type2,
    /// Interrupts without a period.
    Interrupt,
    /// What the hypervisor took.
    Hypervisor,
    /// What nothing explains.
    Unattributed,
    /// quell itself: no noise of the node.
    Own,
}

impl Class {
    /// The word for it, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Type1 => "type1",
            Self::Type2 => "type2",
            Self::Interrupt => "interrupt",
            Self::Hypervisor => "hypervisor",
            Self::Unattributed => "unattributed",
            Self::Own => "own",
        }
    }

    fn meaning(&self) -> &'static str {
        match self {
            Self::Type1 => "short interrupts with a period",
            Self::Type2 => "daemons and other tasks",
            Self::Interrupt => "interrupts without a period",
            Self::Hypervisor => "time that the hypervisor took",
            Self::Unattributed => "what nothing explains",
            Self::Own => "quell itself",
        }
    }
}

impl AsValue for Class {
    const KIND: ValueKind = ValueKind::Text;

    fn value(&self) -> Value {
        Value::Text(self.name().to_owned())
    }
}

/// One source. Count and times are those of its intervals on the recorded CPUs, whether they made a detour or not, net
/// of what interrupted them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SourceRow {
    /// The task, where it was one alone.
    #[column(id)]
    pub pid: Option<u32>,
    /// `tick`, `irq:NAME`, `task:COMM`, … The name is the process's or the driver's own: hostile input.
    #[column(title = "name", name)]
    pub source: String,
    /// Its class.
    #[column(words)]
    pub class: Class,
    /// Intervals.
    #[column]
    pub count: u64,
    /// All their time, net of what interrupted them.
    #[column(title = "total")]
    pub total_ns: u64,
    /// The shortest.
    #[column(title = "min")]
    pub min_ns: u64,
    /// The longest.
    #[column(title = "max")]
    pub max_ns: u64,
    /// The mean.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// Their period, where at least half of them belong to one train.
    #[column(title = "period")]
    pub period_ns: Option<f64>,
    /// The time of detours that was attributed to it; null where no detours were recorded.
    #[column(title = "in detours")]
    pub in_detours_ns: Option<u64>,
    /// Whether it is quell itself.
    pub own: bool,
    /// What it worked at, most time first: timer callbacks, work functions, called functions.
    pub details: Vec<Named>,
    /// Who caused it, most time first.
    pub causes: Vec<Named>,
}

/// One task; figures as in [`SourceRow`].
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TaskRow {
    /// The task's id.
    #[column(id)]
    pub pid: u32,
    /// Its name.
    #[column(name)]
    pub name: String,
    /// How often it ran.
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
    /// Its period, where at least half of the runs belong to one train.
    #[column(title = "period")]
    pub period_ns: Option<f64>,
    /// The time of detours that was attributed to it.
    #[column(title = "in detours")]
    pub in_detours_ns: Option<u64>,
    /// Whether it is quell itself.
    #[column(title = "note", page, yes = "quell itself: no noise of the node", no = "–")]
    pub own: bool,
    /// What woke it, most time first.
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
    /// Sources in it.
    #[column]
    pub sources: u64,
    /// Intervals; for `unattributed` detours with something left over.
    #[column]
    pub count: u64,
    /// Their net time; for `unattributed` the time left over.
    #[column(title = "total")]
    pub total_ns: u64,
    /// The shortest.
    #[column(title = "min")]
    pub min_ns: u64,
    /// The longest.
    #[column(title = "max")]
    pub max_ns: u64,
    /// The mean.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// The time of detours that was attributed to it.
    #[column(title = "in detours")]
    pub in_detours_ns: Option<u64>,
}

/// How much of the detours is explained, and by what match.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Explained {
    /// The figures, all CPUs together.
    #[serde(flatten)]
    pub figures: Figures,
    /// How far an interval may stick out of its detour, measured: the 99th percentile of how far they do, and at
    /// least a step of the clock.
    pub tolerance_ns: u64,
    /// That percentile as it was found; null where no interval had a clear partner.
    pub overhang_p99_ns: Option<u64>,
    /// Stretches of kernel work with one clear detour, from which it was taken.
    pub overhang_pairs: u64,
    /// Detours that would hold an interval by chance: with the intervals moved in time, mean of eight shifts.
    pub chance_percent: f64,
    /// Time that the hypervisor took, put down to the longest unexplained detours of the same windows.
    pub steal_attributed_ns: u64,
    /// What is left over.
    pub unattributed: Unattributed,
}

/// What each source took from one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CpuSources {
    /// The CPU.
    pub cpu: u32,
    /// How long it was watched.
    pub span_ns: u64,
    /// How much of its detours is explained; null where there are none.
    pub explained: Option<Figures>,
    /// Its sources, the one that took most time first.
    pub sources: Vec<CpuSource>,
}

/// What one source took from one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CpuSource {
    /// The source.
    pub source: String,
    /// Whether it is quell itself.
    pub own: bool,
    /// Intervals.
    pub count: u64,
    /// Their net time.
    pub total_ns: u64,
    /// The part of it that lies in detours; null where no detours were recorded.
    pub in_detours_ns: Option<u64>,
}
