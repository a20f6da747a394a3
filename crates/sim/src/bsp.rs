//! The bulk-synchronous program of De, Kothari & Mann (2008), on any number of ranks.
//!
//! In each phase every rank does one quantum of work, then all wait for the slowest (§III-A, Algorithm 1; the
//! compute time of §VI, eq. 3). While ranks wait, the noise that strikes them costs nothing: it is absorbed.

mod fleet;
mod layout;
mod node;
mod places;

use quell_recording::Nanos;
use rayon::prelude::*;

use crate::clock::ClockError;
use crate::draws::Draws;
use fleet::Fleet;
use layout::Layout;
pub use node::Node;
use node::{Pace, Slowest};
pub use places::{Place, Places};

/// Maximum number of ranks of a job: more than any machine has, and few enough to hold in memory.
pub const MAX_RANKS: u64 = 1 << 24;
/// Maximum number of phases of a job.
const MAX_PHASES: u64 = 100_000_000;
/// Maximum number of independent runs that the phases are split over, to average over where the nodes start.
const MAX_CHAINS: u64 = 8;
/// Maximum number of strikes that are reported per chain.
const MOST_STRIKES: usize = 1 << 16;
/// Minimum number of phases of a chain: a shorter one yields too little for the cost of its set-up.
const MIN_CHAIN: u64 = 50;
/// Maximum drift, in parts per million: larger values are rejected as measurement errors.
const MAX_DRIFT_PPM: f64 = 100_000.0;

/// How the nodes' noise lines up. Ranks of one node always start at the same place, because their traces were
/// recorded together (De et al. §VI).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SyncMode {
    /// Each node starts at its own place, drawn uniformly from its trace (§V-A).
    None,
    /// All nodes start at the same place, drawn once (§V-B). With zero skew and zero drift they stay in lockstep.
    Start {
        /// Each node starts later by a uniform draw from `0..=skew`.
        skew: Nanos,
        /// Each node's trace runs fast or slow by a uniform draw from `±drift_ppm` parts per million.
        drift_ppm: f64,
    },
    /// All nodes are at the same place, drawn anew in every phase (§V-C).
    Phase,
}

impl SyncMode {
    /// Maximum delay of a node's start after the first node's.
    pub fn skew(self) -> Nanos {
        match self {
            Self::Start { skew, .. } => skew,
            Self::None | Self::Phase => Nanos::ZERO,
        }
    }

    /// Maximum drift of a node's trace, fast or slow, in parts per million.
    pub fn drift_ppm(self) -> f64 {
        match self {
            Self::Start { drift_ppm, .. } => drift_ppm,
            Self::None | Self::Phase => 0.0,
        }
    }
}

/// A job to run: its size, sync mode and seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Ranks, one per CPU; they fill node after node.
    pub ranks: u64,
    /// Phases in total, over all chains.
    pub phases: u64,
    /// How the nodes' noise lines up.
    pub sync: SyncMode,
    /// Equal seeds give equal runs; a larger job under the same seed has the smaller one's nodes, and more.
    pub seed: u64,
}

impl Job {
    /// Whether the job can run at all.
    ///
    /// # Errors
    /// For a number of ranks or phases, or a drift, out of bounds.
    pub fn check(&self) -> Result<(), BspError> {
        if !(1..=MAX_RANKS).contains(&self.ranks) {
            return Err(BspError::Ranks(self.ranks));
        }
        if !(1..=MAX_PHASES).contains(&self.phases) {
            return Err(BspError::Phases(self.phases));
        }
        match self.sync {
            SyncMode::Start { drift_ppm, .. } if !(0.0..=MAX_DRIFT_PPM).contains(&drift_ppm) => {
                Err(BspError::Drift(drift_ppm))
            }
            _ => Ok(()),
        }
    }

    /// Whether the offsets between the nodes change while the job runs.
    pub fn drifts(&self) -> bool {
        matches!(self.sync, SyncMode::Start { drift_ppm, .. } if drift_ppm > 0.0)
    }

    /// Into how many independent runs the phases are split.
    pub fn chains(&self) -> u64 {
        if self.drifts() { 1 } else { (self.phases / MIN_CHAIN).clamp(1, MAX_CHAINS) }
    }

    /// Number of phases of a chain.
    pub fn phases_of(&self, chain: u64) -> u64 {
        self.phases / self.chains() + u64::from(chain < self.phases % self.chains())
    }

    /// The draws of the places that all nodes share in one chain.
    fn places(&self, chain: u64) -> Draws {
        Draws::new(self.seed, &[stream::PLACE, chain])
    }

    /// The place in a trace of this period that all nodes share in a phase, and how far they are past it after `elapsed`.
    fn common_place(&self, places: &Draws, phase: u64, elapsed: u128, period: u64) -> (u64, u128) {
        match self.sync {
            SyncMode::None => (0, elapsed),
            SyncMode::Start { .. } => (places.below(0, period), elapsed),
            SyncMode::Phase => (places.below(phase, period), 0),
        }
    }
}

/// Result of a run: the compute times of all phases. A phase is as long as its slowest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// How many phases ran.
    pub phases: u64,
    /// Sum of their lengths, in nanoseconds.
    pub total_ns: u128,
    /// Length of the longest phase.
    pub longest: Nanos,
}

impl Run {
    /// Combines the chains of a job.
    pub fn average(chains: &[Self]) -> Self {
        chains.iter().fold(Self::default(), |all, chain| all.join(*chain))
    }

    /// The mean length of a phase, in nanoseconds; NaN where none ran.
    pub fn mean_ns(&self) -> f64 {
        self.total_ns as f64 / self.phases as f64
    }

    fn add_phase(mut self, length: u64) -> Self {
        self.phases += 1;
        self.total_ns += u128::from(length);
        self.longest = self.longest.max(Nanos::from_nanos(length));
        self
    }

    fn join(self, other: Self) -> Self {
        Self {
            phases: self.phases + other.phases,
            total_ns: self.total_ns + other.total_ns,
            longest: self.longest.max(other.longest),
        }
    }
}

/// A phase that noise prolonged: its slowest rank, and where in its trace that rank was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedPhase {
    /// Index of the node, among those given, whose noise it had.
    pub kind: usize,
    /// Index of its trace on that node.
    pub cpu: usize,
    /// Where its quantum began, in nanoseconds from the start of the trace, which repeats.
    pub at: u64,
    /// How much longer than the quantum it took, in nanoseconds.
    pub delay: u64,
}

/// Why a program cannot run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BspError {
    /// A trace does not make a progress clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A node without CPUs, or a program without nodes.
    #[error("there is no trace to draw noise from; give at least one recording with one CPU")]
    NoTrace,
    /// The CPUs of one node were never observed at the same time.
    #[error("the traces of one node share no time, so its CPUs cannot run together; record them together")]
    Apart,
    /// The quantum is zero.
    #[error("the quantum is zero, so a phase has no work; give a length such as `1ms`")]
    NoQuantum,
    /// No ranks or more than [`MAX_RANKS`].
    #[error("{0} ranks cannot be simulated; give between 1 and {MAX_RANKS}")]
    Ranks(u64),
    /// No phases, or too many to count.
    #[error("{0} phases cannot be simulated; give between 1 and {MAX_PHASES}")]
    Phases(u64),
    /// The drift is no number, negative or absurd.
    #[error("a drift of {0} ppm is no clock's; give between 0 and {MAX_DRIFT_PPM}")]
    Drift(f64),
}

/// A program with one quantum, on nodes whose noise is known.
#[derive(Clone, Debug)]
pub struct Program {
    paces: Vec<Pace>,
    quantum: u64,
    /// Noise that strikes all nodes at the same time.
    common: Option<Node>,
}

impl Program {
    /// The program with `quantum` nanoseconds of work per phase. Nodes of the job take the given nodes' noise
    /// round-robin.
    ///
    /// # Errors
    /// For a zero quantum, and for no nodes.
    pub fn new(nodes: Vec<Node>, quantum: Nanos) -> Result<Self, BspError> {
        if nodes.is_empty() {
            return Err(BspError::NoTrace);
        }
        let quantum = quantum.as_nanos();
        if quantum == 0 {
            return Err(BspError::NoQuantum);
        }
        let paces = nodes.into_par_iter().map(|node| Pace::new(node, quantum)).collect();
        Ok(Self { paces, quantum, common: None })
    }

    /// Adds noise that strikes every node at the same time, whatever the sync mode of the other noise: co-scheduled
    /// sources.
    ///
    /// Each phase's slowest rank is assumed to meet the worst CPU of that noise. This is exact for nodes of one CPU. For others a
    /// phase is too long by at most the difference between the noise of the node's CPUs.
    #[must_use]
    pub fn with_common(self, common: Node) -> Self {
        Self { common: Some(common), ..self }
    }

    /// Number of ranks that fill a node of each kind. With all nodes at one place ([`SyncMode::Phase`]), more ranks change no phase.
    pub fn distinct_ranks(&self) -> u64 {
        let cpus: usize = self.paces.iter().map(Pace::cpus).sum();
        cpus.max(self.common.as_ref().map_or(0, |common| common.clocks().len())) as u64
    }

    /// Runs a job. Its phases are split over up to eight chains that start at different places and run in parallel; with
    /// drift they run in one chain, because drift grows with time.
    ///
    /// # Errors
    /// As for [`Job::check`].
    pub fn run(&self, job: &Job) -> Result<Run, BspError> {
        Ok(Run::average(&self.run_chains(job)?))
    }

    /// Runs a job and returns its chains, which differ in where the nodes start. [`Run::average`] combines them.
    ///
    /// # Errors
    /// As for [`Job::check`].
    pub fn run_chains(&self, job: &Job) -> Result<Vec<Run>, BspError> {
        job.check()?;
        Ok((0..job.chains()).into_par_iter().map(|chain| self.chain(job, chain, |_| ())).collect())
    }

    /// Runs a job as [`Program::run`] does, and returns each phase that noise prolonged, chain after chain, up to 65,536 per
    /// chain. Noise that is common to all nodes is not included.
    ///
    /// # Errors
    /// As for [`Job::check`].
    pub fn watch(&self, job: &Job) -> Result<(Run, Vec<DelayedPhase>), BspError> {
        job.check()?;
        let watched = |chain| {
            let mut strikes = Vec::new();
            let run = self.chain(job, chain, |strike: DelayedPhase| {
                let reported = strike.delay > 0 && strikes.len() < MOST_STRIKES;
                strikes.extend(reported.then_some(strike));
            });
            (run, strikes)
        };
        let chains: Vec<(Run, Vec<DelayedPhase>)> = (0..job.chains()).into_par_iter().map(watched).collect();
        let runs: Vec<Run> = chains.iter().map(|(run, _)| *run).collect();
        Ok((Run::average(&runs), chains.into_iter().flat_map(|(_, strikes)| strikes).collect()))
    }

    /// Runs one chain: places the nodes anew, then runs phase after phase and passes the slowest rank of each to `tell`.
    fn chain(&self, job: &Job, chain: u64, mut tell: impl FnMut(DelayedPhase)) -> Run {
        let layouts = Layout::per_node(job.ranks, &self.paces.iter().map(Pace::cpus).collect::<Vec<_>>());
        let fleets: Vec<Fleet<'_>> = self
            .paces
            .iter()
            .zip(&layouts)
            .map(|(pace, layout)| Fleet::new(pace, layout, job, chain))
            .collect();
        let places = job.places(chain);
        let mut elapsed = 0u128;
        let mut run = Run::default();
        for phase in 0..job.phases_of(chain) {
            let mut slowest = DelayedPhase { kind: 0, cpu: 0, at: 0, delay: 0 };
            for (kind, fleet) in fleets.iter().enumerate() {
                let (place, elapsed) = job.common_place(&places, phase, elapsed, fleet.period());
                let Slowest { delay, cpu, at } = fleet.slowest(place, elapsed);
                if delay > slowest.delay {
                    slowest = DelayedPhase { kind, cpu, at, delay };
                }
            }
            tell(slowest);
            let work = self.quantum.saturating_add(slowest.delay);
            let length = work.saturating_add(self.common_delay(job, chain, elapsed, work));
            elapsed += u128::from(length);
            run = run.add_phase(length);
        }
        run
    }

    /// Delay that noise common to all nodes adds to `work`, `elapsed` nanoseconds after the start.
    fn common_delay(&self, job: &Job, chain: u64, elapsed: u128, work: u64) -> u64 {
        let Some(common) = &self.common else { return 0 };
        let used = common.clocks().iter().take(usize::try_from(job.ranks).unwrap_or(usize::MAX));
        let delay = |clock: &crate::clock::ProgressClock| {
            let period = clock.period();
            let place = Draws::new(job.seed, &[stream::COMMON, chain]).below(0, period);
            let at = (u128::from(place) + elapsed % u128::from(period)) % u128::from(period);
            clock.delay(at as u64, work)
        };
        used.map(delay).max().unwrap_or(0)
    }
}

/// The names of the random streams under a job's seed.
mod stream {
    pub(super) const PLACE: u64 = 0;
    pub(super) const OFFSET: u64 = 1;
    pub(super) const DRIFT: u64 = 2;
    pub(super) const COMMON: u64 = 3;
}

#[cfg(test)]
mod tests;
