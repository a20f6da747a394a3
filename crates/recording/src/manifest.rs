//! `manifest.json`: everything about a recording that is not a row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cpu, Error, MemoryLevel, MpiFacts, Nanos, Span, Warning, atomic_write, warning, whole_file};

/// The recording format that this crate writes. Readers accept every older one.
///
/// 2 added the tables `intervals` and `threads`, the method `kernel` and the manifest's `sources`. 3 added the method `phases`, whose
/// `quanta` have a rank, and the manifest's `mpi`. 4 added the method `histogram` with the table `histograms`. 5 made each of the
/// manifest's `warnings` a code with facts; older versions have sentences. 6 added the method `memory`, and the manifest's `memory`.
pub const FORMAT_VERSION: u32 = 6;

/// The name of the threads that run probes. The kernel recorder does not record their runs: they are what is measured.
pub const PROBE_THREAD: &str = "quell-probe";

/// The value of `format` in every manifest.
const FORMAT: &str = "quell.recording";

/// The state of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Still being made, or its writer was killed: the tables end at their last flush.
    Recording,
    /// Ended as requested.
    Complete,
    /// Ended early by a signal; all rows until then are kept.
    Interrupted,
    /// Ended early by an error, such as a full disk; the rows that were written are kept.
    Failed,
    /// Made from another tool's file.
    Imported,
}

/// The method of recording noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A loop that reads the clock and keeps the gaps (the selfish detour benchmark).
    Detour,
    /// Fixed work quanta: how long does the same work take?
    Fwq,
    /// Fixed time quanta: how much work fits into the same time?
    Ftq,
    /// Loads from memory: how long do those of each level take?
    Memory,
    /// No probe: only the kernel's intervals.
    Kernel,
    /// Phases of an MPI program, with the kernel's intervals.
    Phases,
    /// Another tool's counts of lengths: order and starts are not known.
    Histogram,
}

impl Method {
    /// The content of such a recording, in words.
    pub fn holds(self) -> &'static str {
        match self {
            Self::Detour => "detours",
            Self::Fwq => "fwq quanta",
            Self::Ftq => "ftq quanta",
            Self::Memory => "quanta of loads from memory",
            Self::Kernel => "kernel intervals",
            Self::Phases => "phases of an MPI program",
            Self::Histogram => "histograms, in which neither order nor starts are known",
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Detour => "detour",
            Self::Fwq => "fwq",
            Self::Ftq => "ftq",
            Self::Memory => "memory",
            Self::Kernel => "kernel",
            Self::Phases => "phases",
            Self::Histogram => "histogram",
        })
    }
}

/// The clock that the probe read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// `tsc`, `cntvct` or `clock_monotonic`.
    pub name: String,
    /// Ticks per second, calibrated against CLOCK_MONOTONIC over the whole run.
    pub ticks_per_second: f64,
    /// The smallest step that the clock shows, in ns.
    pub granularity_ns: f64,
    /// Change of the calibrated rate between the start and the end of the run, in parts per million.
    pub drift_ppm: f64,
}

/// The probe's own loop on one CPU: the time of an undisturbed turn, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct LoopFacts {
    /// Number of turns in the whole run.
    #[column(title = "turns", page)]
    pub iterations: u64,
    /// Mean over the run, without detours.
    pub mean_ns: f64,
    /// Shortest.
    pub min_ns: f64,
    /// Median.
    #[column(title = "p50", page)]
    pub p50_ns: f64,
    /// 99th percentile.
    #[column(title = "p99", page)]
    pub p99_ns: f64,
    /// 99.9th percentile.
    #[column(title = "p99.9", page)]
    pub p99_9_ns: f64,
}

/// The cost of one of the kernel recorder's programs, as the kernel accounts it (`bpf_stats`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCost {
    /// The program's name.
    pub program: String,
    /// Number of runs, on any CPU.
    pub runs: u64,
    /// Time in it, in ns, including the kernel's own time measurement.
    pub ns: u64,
}

/// How much longer detours are while the kernel recorder's programs are attached, measured on the recorded CPUs before the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecorderEffect {
    /// Number of pairs of blocks, one with the programs attached and one without.
    pub pairs: u64,
    /// Length of a block.
    pub block_ns: u64,
    /// Only detours below this length count: longer ones are mostly other tasks, which come and go without regard for the recorder.
    pub below_ns: u64,
    /// Time in detours without the programs, in ns per second.
    pub without_ns_per_s: f64,
    /// By how much the programs change the length at which half of that time is reached, in percent.
    pub percent: f64,
    /// The lower end of its 95 % interval.
    pub low_percent: f64,
    /// The upper end.
    pub high_percent: f64,
}

/// Facts about the kernel recorder, which ran in addition to the probe or instead of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourcesFacts {
    /// Why sources are not known; absent if they were recorded.
    pub unknown_because: Option<String>,
    /// Kinds of event that this kernel cannot trace, and what that means.
    pub missing: Vec<String>,
    /// The source of a virtual machine's stolen time: `run queue`, which keeps the kernel's reading of the hypervisor's count
    /// at each tick, in ns; absent if it was not read.
    pub steal: Option<String>,
    /// Number of intervals that did not fit into the buffer, or whose end was not seen, and were dropped, over all CPUs.
    pub lost: u64,
    /// Number of threads of the command that could not be followed for lack of space.
    pub lost_threads: u64,
    /// The process that was followed with all its children; absent if CPUs were observed.
    pub command_pid: Option<u32>,
    /// The command's own exit code, if it exited by itself.
    pub command_exit_code: Option<i32>,
    /// The id of quell's own process: the time that it took is not noise of the node.
    pub own_pid: Option<u32>,
    /// The cost of each program; absent if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Vec<ProgramCost>>,
    /// What the recorder does to what it records; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<RecorderEffect>,
}

/// One recorded CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// The CPU.
    pub cpu: Cpu,
    /// Physical core, if the kernel reports it.
    pub core: Option<u32>,
    /// Package (socket), if the kernel reports it.
    pub package: Option<u32>,
    /// NUMA node, if the kernel reports it.
    pub numa_node: Option<u32>,
    /// Start of the observation, from the recording's zero.
    pub start_ns: Nanos,
    /// End of the observation.
    pub end_ns: Nanos,
    /// The shortest detour that the probe can distinguish from its own loop: the deviation from the median of 999 of 1,000 undisturbed
    /// turns, plus one step of the clock. Absent if it was not measured.
    pub resolution_ns: Option<f64>,
    /// The probe's loop, for the detour method.
    pub probe_loop: Option<LoopFacts>,
    /// Number of rows that did not fit into the buffer and were dropped.
    pub lost: u64,
    /// Number of system management interrupts (SMI) that the processor counted while the probe ran. Absent where it does not count them, or
    /// the count could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smis: Option<u64>,
    /// The mean frequency while the probe ran, in percent of the time-stamp counter's. Absent where the processor does not count it, or the
    /// counters could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_percent: Option<f64>,
    /// How heat slowed this CPU while the probe ran. Absent where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
    /// Number of detours or quanta in the tables; known once the recording has ended. It reveals a missing table.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Number of intervals in the table; known once the recording has ended.
    #[serde(default)]
    pub intervals: Option<u64>,
}

/// How a processor slowed a CPU, or its package, because of heat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// How often that began.
    pub times: u64,
    /// For how long in all, in steps of a millisecond, of what had ended; zero on kernels that only count.
    pub total_ns: Nanos,
}

impl Throttling {
    /// Whether it slowed the CPU at all.
    pub fn has_slowed(self) -> bool {
        self.times > 0 || self.total_ns > Nanos::ZERO
    }
}

impl CpuFacts {
    /// Facts of a CPU for which only the span is known.
    pub fn from_span(cpu: Cpu, span: Span) -> Self {
        Self {
            cpu,
            core: None,
            package: None,
            numa_node: None,
            start_ns: span.start,
            end_ns: span.end,
            resolution_ns: None,
            probe_loop: None,
            lost: 0,
            smis: None,
            frequency_percent: None,
            throttling: None,
            rows: None,
            intervals: None,
        }
    }

    /// The time of its observation.
    pub fn span(&self) -> Span {
        Span { start: self.start_ns, end: self.end_ns }
    }
}

/// The manifest of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    version: u32,
    /// The version of quell that wrote it.
    pub quell: String,
    /// The state of the recording.
    pub state: State,
    /// Why it failed, or where it was imported from.
    pub note: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Kernel release and build.
    pub kernel: Option<String>,
    /// The processor's own name.
    pub processor: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// Wall-clock time of the recording's zero, in ns since 1970.
    pub zero_unix_ns: Option<u64>,
    /// CLOCK_MONOTONIC at the recording's zero, in ns: relates these rows to the kernel's.
    pub zero_monotonic_ns: Option<u64>,
    /// The method of recording noise.
    pub method: Method,
    /// The clock.
    pub clock: Option<ClockFacts>,
    /// Only longer gaps were recorded.
    pub threshold_ns: Option<f64>,
    /// Requested length of a quantum, for FWQ and FTQ.
    pub quantum_ns: Option<Nanos>,
    /// The levels of memory whose loads were timed, in the order of the numbers in `work`; absent for every other method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryLevel>,
    /// Facts about the kernel recorder; absent if it was not requested.
    #[serde(default)]
    pub sources: Option<SourcesFacts>,
    /// The MPI program whose phases these are; absent for every other method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiFacts>,
    /// Hosts of the ranks, if another tool's file held those of several; empty for what quell records, because a recording is from
    /// one host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rank_hosts: BTreeMap<u32, String>,
    /// Whether the rows come from a histogram: then only their durations are meaningful, not their order and starts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unordered: bool,
    /// The recorded CPUs, ordered.
    pub cpus: Vec<CpuFacts>,
    /// Warnings for the reader of the figures.
    #[serde(deserialize_with = "warning::typed_or_sentences")]
    pub warnings: Vec<Warning>,
}

/// Maximum number of levels of memory: no machine has as many.
const MOST_LEVELS: usize = 16;

impl Manifest {
    /// An empty manifest of the current format, to be filled in.
    pub fn new(method: Method, state: State) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: FORMAT_VERSION,
            quell: env!("CARGO_PKG_VERSION").to_owned(),
            state,
            note: None,
            host: None,
            kernel: None,
            processor: None,
            command: Vec::new(),
            zero_unix_ns: None,
            zero_monotonic_ns: None,
            method,
            clock: None,
            threshold_ns: None,
            quantum_ns: None,
            memory: Vec::new(),
            sources: None,
            mpi: None,
            rank_hosts: BTreeMap::new(),
            unordered: false,
            cpus: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The host of a rank, if it is known.
    pub fn host_of(&self, rank: u32) -> Option<&str> {
        self.rank_hosts.get(&rank).or(self.host.as_ref()).map(String::as_str)
    }

    /// The level of memory whose loads are a quantum of this work; none for every other method.
    #[must_use]
    pub fn level_of(&self, work: u64) -> Option<&MemoryLevel> {
        let is_memory = self.method == Method::Memory;
        is_memory.then(|| self.memory.get(usize::try_from(work).ok()?)).flatten()
    }

    /// Number of rows lost over all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.lost))
    }

    /// Adds the CPUs that are not listed yet; only their rows are known.
    pub fn add_cpus(&mut self, cpus: impl IntoIterator<Item = Cpu>) {
        let known: BTreeSet<Cpu> = self.cpus.iter().map(|facts| facts.cpu).collect();
        let new: BTreeSet<Cpu> = cpus.into_iter().filter(|cpu| !known.contains(cpu)).collect();
        self.cpus.extend(new.into_iter().map(|cpu| CpuFacts::from_span(cpu, Span::default())));
        self.cpus.sort_by_key(|facts| facts.cpu);
    }

    /// Reads and checks `manifest.json` of the recording in `folder`.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        /// The part that every version has.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let path = folder.join("manifest.json");
        if !folder.is_dir() {
            let reason =
                if folder.exists() { "it is a file, not a folder" } else { "there is no such folder" };
            return Err(Error::not_a_recording(folder, reason));
        }
        if !path.is_file() {
            return Err(Error::not_a_recording(folder, "it holds no manifest.json"));
        }
        let text = whole_file::read(&path, whole_file::MOST_DESCRIPTION_BYTES)?;
        let head: Head = serde_json::from_slice(&text)
            .map_err(|e| Error::malformed(&path, format!("not a manifest of a recording: {e}")))?;
        if head.format != FORMAT {
            return Err(Error::malformed(&path, format!("`format` is `{}`, not `{FORMAT}`", head.format)));
        }
        if head.version > FORMAT_VERSION {
            return Err(Error::Newer {
                path: folder.to_owned(),
                found: head.version,
                supported: FORMAT_VERSION,
            });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(|e| Error::malformed(&path, e))?;
        manifest.check().map_err(|reason| Error::malformed(&path, reason))?;
        Ok(manifest)
    }

    /// Checks what the types do not guarantee.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(facts) = self.cpus.iter().find(|facts| facts.cpu > Cpu::LAST) {
            return Err(format!(
                "CPU {} is beyond {}, the last that a recording can have",
                facts.cpu,
                Cpu::LAST
            ));
        }
        if self.memory.len() > MOST_LEVELS {
            return Err(format!("{} levels of memory are more than {MOST_LEVELS}", self.memory.len()));
        }
        for (at, level) in self.memory.iter().enumerate() {
            if self.memory[..at].iter().any(|other| other.name == level.name) {
                return Err(format!("the level `{}` of memory is listed twice", level.name));
            }
        }
        for pair in self.cpus.windows(2) {
            if pair[0].cpu >= pair[1].cpu {
                return Err(format!("CPU {} is listed twice or out of order", pair[1].cpu));
            }
        }
        match self.cpus.iter().find(|cpu| cpu.end_ns < cpu.start_ns) {
            Some(cpu) => Err(format!("the span of CPU {} ends before it starts", cpu.cpu)),
            None => Ok(()),
        }
    }

    /// Writes the manifest atomically.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|e| Error::malformed(folder, e))?;
        Ok(atomic_write(&folder.join("manifest.json"), &text)?)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
