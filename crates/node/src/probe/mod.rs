//! The probes: bound loops that observe detours from user space, on all chosen CPUs at the same time.
//!
//! [`record`] runs them and writes what they find into a recording; [`stream`] hands it to any other [`Sink`]. Each CPU has a thread that
//! only reads the clock ([`loops`]) and a buffer whose pages are present before the run ([`ring`]). One writer empties the buffers
//! ([`session`]). It runs on a CPU that is not probed, if there is one. Where every CPU is probed its own time is
//! measured too, and the detours that it caused are marked ([`own`]).

mod bench;
mod loops;
mod memory;
mod own;
mod ring;
mod row_source;
mod session;
mod sink;
mod stops;
mod thread;
mod writer;

use std::io;

use quell_recording::{Cpu, Error, Method, Nanos};

use crate::machine::CpuError;

pub use bench::{LoopBench, bench_loop};
pub use row_source::{Alone, RowSource};
pub use session::{first_manifest, record, stream};
pub use sink::Sink;

/// The gap above which a turn of the loop counts as a detour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A length of time.
    Absolute(Nanos),
    /// A multiple of the shortest turn, or of the clock's step where that is longer (De et al. 2008, §III-B use 10 shortest turns).
    TimesMinimum(f64),
}

/// What to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The CPUs, sorted and checked.
    pub cpus: Vec<Cpu>,
    /// The measuring method.
    pub method: Method,
    /// Threshold of the detour method.
    pub threshold: Threshold,
    /// Quantum of FWQ and FTQ.
    pub quantum: Nanos,
    /// The run ends after this time.
    pub duration: Option<Nanos>,
    /// The run ends once this many rows were found, on all CPUs together.
    pub count: Option<u64>,
    /// SCHED_FIFO priority of the probes.
    pub realtime: Option<u8>,
    /// The command line, for the manifest.
    pub command: Vec<String>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Time since the start.
    pub elapsed: Nanos,
    /// Rows found so far.
    pub rows: u64,
    /// Rows lost so far, including those of the kernel recorder.
    pub lost: u64,
}

/// Why a run failed, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A CPU cannot be probed.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// There is not enough memory for the buffers.
    #[error("no memory for the buffer of CPU {cpu} (probe fewer CPUs at a time with --cpus)")]
    Buffer {
        /// The CPU.
        cpu: Cpu,
        /// The system's error.
        source: io::Error,
    },
    /// There is not enough memory for what the memory method loads.
    #[error(
        "the memory method needs {needed_mib} MiB of free memory, and there are {free_mib}: end other programs, or raise the memory limit of \
         this job or container"
    )]
    Memory {
        /// MiB that must be free.
        needed_mib: usize,
        /// MiB that are free.
        free_mib: usize,
    },
    /// Real-time priority was refused.
    #[error("real-time priority was refused: {0} (it needs root or CAP_SYS_NICE; run without --realtime)")]
    Realtime(io::Error),
    /// Real-time priority was requested without a safeguard.
    #[error("{0}")]
    Unguarded(&'static str),
    /// The thread for a CPU could not be started.
    #[error(
        "the thread for CPU {cpu} cannot be started (probe fewer CPUs at a time, or raise the limit of processes)"
    )]
    Spawn {
        /// The CPU.
        cpu: Cpu,
        /// The system's error.
        source: io::Error,
    },
    /// A thread could not be bound to its CPU.
    #[error("cannot bind the probe to CPU {cpu}")]
    Pin {
        /// The CPU.
        cpu: Cpu,
        /// The system's error.
        source: io::Error,
    },
    /// The recording could not be created.
    #[error(transparent)]
    Recording(#[from] Error),
    /// Writing failed during the run; what was written before is readable.
    #[error("the recording ended early, after {elapsed}; {kept} rows up to then are kept and can be read")]
    Write {
        /// Time since the start.
        elapsed: Nanos,
        /// Rows that are on disk.
        kept: u64,
        /// The system's error.
        source: Error,
    },
}
