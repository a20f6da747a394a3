//! `manifest.json`: everything about a recording that is not a row.

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cpu, Error, MpiFacts, Nanos, Span, Warning, atomic_write, warning};

/// The recording format that this crate writes. Readers accept every older one.
///
/// 2 added the tables `intervals` and `threads`, the method `kernel` and the manifest's `sources`. 3 added the method `phases`, whose
/// `quanta` have a rank, and the manifest's `mpi`. 4 added the method `histogram` with the table `histograms`. 5 made each of the
/// manifest's `warnings` a code with facts, where older ones have sentences.
pub const FORMAT_VERSION: u32 = 5;

/// What every manifest says in `format`.
const FORMAT: &str = "quell.recording";

/// How far the recording got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Still being made, or its writer was killed: the tables end at their last flush.
    Recording,
    /// Ended as asked.
    Complete,
    /// Ended early by a signal; all that was seen is kept.
    Interrupted,
    /// Ended early by an error, such as a full disk; what was written is kept.
    Failed,
    /// Made from another tool's file.
    Imported,
}

/// How the noise was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A loop that reads the clock and keeps the gaps (the selfish detour benchmark).
    Detour,
    /// Fixed work quanta: how long does the same work take?
    Fwq,
    /// Fixed time quanta: how much work fits into the same time?
    Ftq,
    /// No probe: only what the kernel saw.
    Kernel,
    /// Phases of an MPI program, with what the kernel saw.
    Phases,
    /// Another tool's counts of how long: neither order nor starts are known.
    Histogram,
}

impl Method {
    /// What such a recording holds, in words.
    pub fn holds(self) -> &'static str {
        match self {
            Self::Detour => "detours",
            Self::Fwq => "fwq quanta",
            Self::Ftq => "ftq quanta",
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

/// The probe's own loop on one CPU: what an undisturbed turn takes, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct LoopFacts {
    /// Turns in the whole run.
    #[column(title = "turns", page)]
    pub iterations: u64,
    /// Mean over the run, detours left out.
    pub mean_ns: f64,
    /// Shortest.
    pub min_ns: f64,
    /// Median.
    #[column(title = "p50", page)]
    pub p50_ns: f64,
    /// 99 of 100 are at most this.
    #[column(title = "p99", page)]
    pub p99_ns: f64,
    /// 999 of 1,000 are at most this.
    #[column(title = "p99.9", page)]
    pub p99_9_ns: f64,
}

/// What one of the kernel recorder's programs cost, by the kernel's own account (`bpf_stats`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCost {
    /// The program's name.
    pub program: String,
    /// How often it ran, on any CPU.
    pub runs: u64,
    /// Time in it, in ns, with the kernel's own taking of time.
    pub ns: u64,
}

/// What the kernel recorder did beside, or in place of, the probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourcesFacts {
    /// Why sources are not known; absent where they were recorded.
    pub unknown_because: Option<String>,
    /// Kinds of event that this kernel cannot tell, with what that means.
    pub missing: Vec<String>,
    /// Where a virtual machine's stolen time was read: `run queue`, which keeps the kernel's reading of the hypervisor's count
    /// at each tick, in ns; absent where it was not.
    pub steal: Option<String>,
    /// Intervals that did not fit into the buffer and were dropped, all CPUs together.
    pub lost: u64,
    /// Threads of the command that could not be followed for want of room.
    pub lost_threads: u64,
    /// The process that was followed with all its children; absent where CPUs were watched.
    pub command_pid: Option<u32>,
    /// The command's own exit code, where it ended by itself.
    pub command_exit_code: Option<i32>,
    /// quell's own process: what it took is no noise of the node.
    pub own_pid: Option<u32>,
    /// What each program cost; absent where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Vec<ProgramCost>>,
}

/// One recorded CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// The CPU.
    pub cpu: Cpu,
    /// Physical core, where the kernel tells.
    pub core: Option<u32>,
    /// Package (socket), where the kernel tells.
    pub package: Option<u32>,
    /// NUMA node, where the kernel tells.
    pub numa_node: Option<u32>,
    /// When it was observed, from the recording's zero.
    pub start_ns: Nanos,
    /// End of the observation.
    pub end_ns: Nanos,
    /// The shortest detour that the probe can tell from its own loop: how far 999 of 1,000 undisturbed turns
    /// stray from the median, and one step of the clock. Absent where it was not measured.
    pub resolution_ns: Option<f64>,
    /// The probe's loop, for the detour method.
    pub probe_loop: Option<LoopFacts>,
    /// Rows that did not fit into the buffer and were dropped.
    pub lost: u64,
    /// Detours or quanta in the tables; known when the recording has ended. Where a table is missing, this tells.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Intervals in the table; known when the recording has ended.
    #[serde(default)]
    pub intervals: Option<u64>,
}

impl CpuFacts {
    /// Facts of a CPU of which only the span is known.
    pub fn of_span(cpu: Cpu, span: Span) -> Self {
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
            rows: None,
            intervals: None,
        }
    }

    /// When it was observed.
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
    /// How far it got.
    pub state: State,
    /// Why it failed, or where it came from.
    pub note: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Kernel release and build.
    pub kernel: Option<String>,
    /// The processor's own name.
    pub processor: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// Wall-clock time of the recording's zero, ns since 1970.
    pub zero_unix_ns: Option<u64>,
    /// CLOCK_MONOTONIC at the recording's zero, in ns: joins these rows with the kernel's.
    pub zero_monotonic_ns: Option<u64>,
    /// How the noise was looked for.
    pub method: Method,
    /// The clock.
    pub clock: Option<ClockFacts>,
    /// Gaps above this were recorded.
    pub threshold_ns: Option<f64>,
    /// Length of a quantum as asked for, for FWQ and FTQ.
    pub quantum_ns: Option<Nanos>,
    /// What the kernel recorder did; absent where it was not asked for.
    #[serde(default)]
    pub sources: Option<SourcesFacts>,
    /// The MPI program whose phases these are; absent for every other method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiFacts>,
    /// Hosts of the ranks where another tool's file held those of several; empty for what quell records, where a recording is of
    /// one host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rank_hosts: BTreeMap<u32, String>,
    /// Whether the rows came as a histogram: then their order and their starts mean nothing, only how long they took.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unordered: bool,
    /// The recorded CPUs, ordered.
    pub cpus: Vec<CpuFacts>,
    /// What a reader of the figures must know.
    #[serde(deserialize_with = "warning::typed_or_sentences")]
    pub warnings: Vec<Warning>,
}

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
            sources: None,
            mpi: None,
            rank_hosts: BTreeMap::new(),
            unordered: false,
            cpus: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The host of a rank, where it is known.
    pub fn host_of(&self, rank: u32) -> Option<&str> {
        self.rank_hosts.get(&rank).or(self.host.as_ref()).map(String::as_str)
    }

    /// Rows lost over all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.lost))
    }

    /// Reads and checks `manifest.json` of the recording in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
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
        let text = fs::read(&path)?;
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

    /// What the type system does not hold.
    fn check(&self) -> Result<(), String> {
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

    /// Writes the manifest, whole or not at all.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|e| Error::malformed(folder, e))?;
        Ok(atomic_write(&folder.join("manifest.json"), &text)?)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
