//! quell's own compute phases under a trace's noise, on this machine's CPUs, for more ranks than it has.
//!
//! The emulation without barriers of De, Kothari & Mann, "A Trace-driven Emulation Framework to Predict Scalability of
//! Large Clusters in Presence of OS Jitter" (IEEE Cluster 2008), §VI: each rank's compute time qt is measured, and the
//! slowest rank's is the phase's. Ranks that do not wait for one another within a phase need not run at once, so one CPU
//! runs many of them in turn. One thread is bound to each CPU; threads share the ranks of a phase out among them, and wait
//! for each other at its end.
//!
//! This machine is not free of noise either. Each slice of the work tells whether it was disturbed, and whether the core
//! runs at another speed than before; a disturbed run is done again, and what is left is taken out of qt, and counted.

mod pacer;
mod strikes;
mod task;
mod team;

use quell_recording::{Cpu, Nanos};
use quell_replay::Track;

pub use team::{Team, emulate};

/// Shorter detours cannot be burned one by one, in ns: the clock's readings and a burn's beginning and end are about so long.
pub const SHORTEST_BURN_NS: u64 = 100;
/// The shortest quantum that holds enough slices to tell noise from work, in ns.
pub const SHORTEST_QUANTUM_NS: u64 = 20_000;
/// Own noise that a run may have and still count, in ns …
const LEAST_LIMIT_NS: f64 = 200.0;
/// … or as a share of the quantum, whichever is more.
const LIMIT_SHARE: f64 = 0.001;

/// What to run, on what.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The CPUs that run it.
    pub cpus: Vec<Cpu>,
    /// Work of a phase, as it is to be reported.
    pub quantum: Nanos,
    /// What quantum and noise are stretched by while they run; all that is reported is as if it were 1.
    pub scale: f64,
    /// The traces.
    pub tracks: Vec<Track<'a>>,
    /// A run is done at most so often until this machine leaves it alone.
    pub tries: u32,
}

impl Plan<'_> {
    /// The quantum as it runs, in ns.
    pub fn stretched_ns(&self) -> f64 {
        self.quantum.as_nanos() as f64 * self.scale
    }

    /// The own noise with which a run still counts, in ns as it runs.
    pub fn limit_ns(&self) -> f64 {
        (self.stretched_ns() * LIMIT_SHARE).max(LEAST_LIMIT_NS)
    }
}

/// A rank at the beginning of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its trace, by its place in [`Plan::tracks`].
    pub track: usize,
    /// Where it stands in it, in ns.
    pub at_ns: u64,
}

/// What a phase came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase {
    /// MaxQT: the compute time of the slowest rank, in ns.
    pub max_ns: f64,
    /// The mean of all ranks' compute times, in ns.
    pub mean_ns: f64,
}

/// What the CPUs saw while ranks ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Phases of single ranks.
    pub runs: u64,
    /// Those that were run more than once, for this machine's own noise.
    pub runs_again: u64,
    /// How many runs were thrown away for it.
    pub thrown_away: u64,
    /// Runs that count although their own noise was above the limit on every try.
    pub disturbed: u64,
    /// Runs with own noise, that was taken out of their time …
    pub with_own: u64,
    /// … how much of it, in ns as if unscaled.
    pub own_ns: f64,
    /// How much the runs' times were changed for the core's speed, in ns as if unscaled, whether up or down.
    pub drift_ns: f64,
    /// The lengths of quanta without noise that were run in between, in ns as if unscaled.
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

/// Why nothing was emulated.
#[derive(Debug, thiserror::Error)]
pub enum PhasesError {
    /// No CPU.
    #[error("there is no CPU to run phases on")]
    NoCpu,
    /// A thread could not be bound.
    #[error("a thread cannot be bound to CPU {cpu}: {reason}")]
    Pin {
        /// To this CPU.
        cpu: Cpu,
        /// The kernel's reason.
        reason: std::io::Error,
    },
    /// A thread panicked.
    #[error(
        "the thread on CPU {0} broke off, so the phases that it ran are not known: this is a mistake in quell"
    )]
    Broken(Cpu),
}
