//! quell's own compute phases under a trace's noise, on this machine's CPUs, for more ranks than it has.
//!
//! After the emulation without barriers of De, Kothari & Mann, "A Trace-driven Emulation Framework to Predict Scalability of
//! Large Clusters in Presence of OS Jitter" (IEEE Cluster 2008), §VI: each rank's compute time qt is measured, and the
//! largest one is the duration of the phase. Ranks do not wait for one another within a phase, so they need not run at the same
//! time: one CPU runs many of them in turn. One thread is bound to each CPU, and the threads share the ranks of a phase among
//! themselves. In contrast to the paper, they wait for each other at its end: the next phase of every rank begins where the slowest
//! rank's ended, so how ranks drift against each other is kept (docs/decisions/2026-11-21-virtual-ranks-share-a-barrier.md).
//!
//! This machine has noise of its own. Each slice of the work shows whether it was disturbed, and whether the core
//! runs at a different speed than before. A disturbed run is repeated. What remains of the own noise is subtracted from qt, and counted.

mod strikes;
mod task;
mod team;
mod work_calibration;

use quell_recording::{Cpu, Nanos};
use quell_replay::ProgressClockView;

pub use team::{Team, emulate};

/// Detours shorter than this cannot be burned one by one, in ns: reading the clock and starting and ending a burn takes about as long.
pub const SHORTEST_BURN_NS: u64 = 100;
/// The shortest quantum with enough slices to distinguish noise from work, in ns.
pub const SHORTEST_QUANTUM_NS: u64 = 20_000;
/// Own noise that a run may have and still be valid, in ns …
const LEAST_LIMIT_NS: f64 = 200.0;
/// … or as a share of the quantum, whichever is larger.
const LIMIT_SHARE: f64 = 0.001;

/// What to emulate, and where.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The CPUs that run it.
    pub cpus: Vec<Cpu>,
    /// Work of a phase, unscaled.
    pub quantum: Nanos,
    /// Factor by which quantum and noise are scaled while they run; all results are divided by it.
    pub scale: f64,
    /// The traces.
    pub tracks: Vec<ProgressClockView<'a>>,
    /// Maximum number of attempts at a run that this machine disturbs.
    pub tries: u32,
}

impl Plan<'_> {
    /// The scaled quantum, in ns.
    pub fn scaled_quantum_ns(&self) -> f64 {
        self.quantum.as_nanos() as f64 * self.scale
    }

    /// The own noise up to which a run is valid, in scaled ns.
    pub fn limit_ns(&self) -> f64 {
        (self.scaled_quantum_ns() * LIMIT_SHARE).max(LEAST_LIMIT_NS)
    }
}

/// A rank at the beginning of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its trace, as an index into [`Plan::tracks`].
    pub track: usize,
    /// Its position in the trace, in ns.
    pub at_ns: u64,
}

/// The result of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase {
    /// MaxQT: the largest compute time of any rank, in ns.
    pub max_ns: f64,
    /// The mean of all ranks' compute times, in ns.
    pub mean_ns: f64,
}

/// What the CPUs measured while they ran ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Number of runs: one per rank and phase.
    pub runs: u64,
    /// Runs that were repeated because of this machine's own noise.
    pub runs_again: u64,
    /// Attempts that were discarded for that reason.
    pub thrown_away: u64,
    /// Runs whose own noise was above the limit on every attempt, which count all the same.
    pub disturbed: u64,
    /// Runs with own noise, which was subtracted from their time …
    pub with_own: u64,
    /// … and the amount subtracted, in unscaled ns.
    pub own_ns: f64,
    /// By how much the runs' times were corrected for the core's speed, up or down, in unscaled ns.
    pub drift_ns: f64,
    /// Durations of the quanta without noise that were run in between, in unscaled ns.
    pub references_ns: Vec<f64>,
}

impl Tally {
    fn join(mut self, other: Self) -> Self {
        self.runs += other.runs;
        self.runs_again += other.runs_again;
        self.thrown_away += other.thrown_away;
        self.disturbed += other.disturbed;
        self.with_own += other.with_own;
        self.own_ns += other.own_ns;
        self.drift_ns += other.drift_ns;
        self.references_ns.extend(other.references_ns);
        self
    }
}

/// Why the emulation failed.
#[derive(Debug, thiserror::Error)]
pub enum PhasesError {
    /// There is no CPU to use.
    #[error("there is no CPU to run phases on")]
    NoCpu,
    /// A thread could not be bound.
    #[error("a thread cannot be bound to CPU {cpu}: {reason}")]
    Pin {
        /// The CPU.
        cpu: Cpu,
        /// The kernel's reason.
        reason: std::io::Error,
    },
    /// A thread panicked.
    #[error("the thread on CPU {0} failed, so its phases are unknown: this is a bug in quell")]
    Broken(Cpu),
}
