//! The probes: pinned loops that see detours from user space, all chosen CPUs at once.
//!
//! [`record`] runs them and streams what they find into a recording, [`stream`] into any other [`Sink`]. Each CPU has a thread that only reads the clock
//! ([`loops`]) and a buffer whose pages are there before the run ([`ring`]); one writer empties the buffers
//! ([`session`]). It sits on a CPU that is not probed where there is one. Where every CPU is probed its own time is
//! measured, and the detours that it caused are marked ([`own`]).

mod bench;
mod beside;
mod loops;
mod own;
mod ring;
mod session;
mod sink;
mod thread;
mod writer;

use std::io;

use quell_recording::{Cpu, Error, Method, Nanos};

use crate::machine::CpuError;

pub use bench::{LoopBench, bench_loop};
pub use beside::{Alone, Beside};
pub use session::{first_manifest, record, stream};
pub use sink::Sink;

/// Above which gap a turn of the loop counts as a detour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A length of time.
    Absolute(Nanos),
    /// A multiple of the shortest turn (De et al. 2008, §III-B use 10). Meaningless where the clock is quantised.
    TimesMinimum(f64),
}

/// What to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The CPUs, sorted and checked.
    pub cpus: Vec<Cpu>,
    /// How to look for noise.
    pub method: Method,
    /// For the detour method.
    pub threshold: Threshold,
    /// For FWQ and FTQ.
    pub quantum: Nanos,
    /// Ends after this time.
    pub duration: Option<Nanos>,
    /// Ends when so many rows were found, on all CPUs together.
    pub count: Option<u64>,
    /// SCHED_FIFO priority of the probes.
    pub realtime: Option<u8>,
    /// The command line, for the manifest.
    pub command: Vec<String>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Time since the start.
    pub elapsed: Nanos,
    /// Rows found so far.
    pub rows: u64,
    /// Rows lost so far, those of what runs beside the probes included.
    pub lost: u64,
}

/// Why a run could not be made, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A CPU cannot be probed.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// The buffers do not fit into memory.
    #[error("the buffer for CPU {cpu} cannot be had (probe fewer CPUs at a time with --cpus)")]
    Buffer {
        /// The CPU.
        cpu: Cpu,
        /// The system's reason.
        source: io::Error,
    },
    /// Real-time priority was refused.
    #[error("real-time priority was refused: {0} (it needs root or CAP_SYS_NICE; run without --realtime)")]
    Realtime(io::Error),
    /// Real-time priority without a guard.
    #[error("{0}")]
    Unguarded(&'static str),
    /// The thread for a CPU could not be started.
    #[error(
        "the thread for CPU {cpu} cannot be started (probe fewer CPUs at a time, or raise the limit of processes)"
    )]
    Spawn {
        /// The CPU.
        cpu: Cpu,
        /// The system's reason.
        source: io::Error,
    },
    /// A thread could not be bound to its CPU.
    #[error("CPU {cpu} cannot be bound to")]
    Pin {
        /// The CPU.
        cpu: Cpu,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing could be written at all.
    #[error(transparent)]
    Recording(#[from] Error),
    /// Writing failed on the way; what was written before can be read.
    #[error("the recording ended early, after {elapsed}; {kept} rows up to then are kept and can be read")]
    Write {
        /// Time since the start.
        elapsed: Nanos,
        /// Rows that are safe.
        kept: u64,
        /// The system's reason.
        source: Error,
    },
}
