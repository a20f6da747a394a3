//! What the noise of recorded nodes costs a bulk-synchronous program at any scale.
//!
//! The program and its slowdown are those of De, Kothari & Mann, "A Trace-driven Emulation Framework to Predict
//! Scalability of Large Clusters in Presence of OS Jitter" (IEEE Cluster 2008), §III-A and eq. 3; it runs on the
//! simulator of `quell-sim` instead of a jitter-free machine. Where messages end a phase (`network`), they go over its
//! LogGOPS engine.

mod assemble;
mod document;
mod network;
mod noise;
mod resample;
mod sample;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use quell_recording::Nanos;
use quell_sim::loggops::RunError;
use quell_sim::pattern::PatternError;
use quell_sim::{BspError, Draws, Job, Node, Program, Run, SyncMode};
use rayon::prelude::*;

use crate::{Progress, Stopped};

pub use document::{NetFacts, NetworkFacts, NoiseSource, Point, Prediction, SCHEMA, SyncName};
pub use network::Network;
pub(crate) use network::culprits_of_messages;
pub(crate) use network::interval::{half_width, half_width_of_mean};
pub use noise::NodeNoise;
pub(crate) use resample::Blocks;
pub(crate) use sample::{Difference, Sample};

/// Resampled runs per point, unless the options say otherwise.
pub const REPLICATES: u64 = 40;
/// Fewer make no interval of 95 %, so that many run unless one alone is too costly.
const FEWEST_REPLICATES: u64 = 40;
/// What all replicates may cost where that leaves enough of them, in detours rebuilt plus nodes placed or asked:
/// about [`NS_OF_EFFORT`] of CPU time each.
const EFFORT: u64 = 30_000_000;
const NS_OF_EFFORT: u64 = 300;
/// What one replicate may cost at most.
const EFFORT_OF_ONE: u64 = 100_000_000;

/// What to predict.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The scales, in ranks (one per CPU).
    pub ranks: Vec<u64>,
    /// Work per phase and rank.
    pub quantum: Nanos,
    /// How the nodes' noise lines up.
    pub sync: SyncMode,
    /// Phases per scale.
    pub phases: u64,
    /// Scales of few ranks run more phases, until all their ranks have done so many together: a rare detour seldom strikes
    /// few ranks. 0 for [`Self::phases`] at every scale. Without messages only.
    pub rank_phases: u64,
    /// With messages: by so much less is done at each scale than a prediction by itself may cost. 1 for all of it.
    pub thrift: u64,
    /// Equal seeds give equal predictions, bit for bit.
    pub seed: u64,
    /// Resampled runs for the confidence intervals, see [`REPLICATES`]; 0 for none.
    pub replicates: u64,
    /// The messages that end a phase; `None` where all ranks wait for the slowest at no cost.
    pub network: Option<Network>,
}

impl Options {
    /// One millisecond of work per phase, 1,000 phases, unsynchronised nodes, at these scales.
    pub fn new(ranks: Vec<u64>) -> Self {
        Self {
            ranks,
            quantum: Nanos::from_nanos(1_000_000),
            sync: SyncMode::None,
            phases: 1_000,
            rank_phases: 0,
            thrift: 1,
            seed: 1,
            replicates: REPLICATES,
            network: None,
        }
    }

    /// One job per scale.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, PredictError> {
        let phases = |ranks: u64| self.phases.max(self.rank_phases / ranks.max(1));
        let job = |&ranks| Job { ranks, phases: phases(ranks), sync: self.sync, seed: self.seed };
        let jobs: Vec<Job> = self.ranks.iter().map(job).collect();
        if jobs.is_empty() {
            return Err(PredictError::NoRanks);
        }
        jobs.iter().try_for_each(Job::check)?;
        Ok(jobs)
    }
}

/// Why nothing can be predicted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// No scale was asked for.
    #[error("no number of ranks is given; name at least one, such as 1024")]
    NoRanks,
    /// Drift over a network.
    #[error(
        "node clocks cannot drift where messages end a phase; leave the drift out, or ask for the operation `max`"
    )]
    Drift,
    /// Noise that all nodes have at the same time, over a network.
    #[error(
        "where messages end a phase all noise of a node is co-scheduled or none is; ask for the operation `max`, or for sync mode `phase`"
    )]
    Common,
    /// The messages cannot be made.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The messages cannot be played.
    #[error(transparent)]
    Network(#[from] RunError),
    /// The messages of one phase are too many.
    #[error(
        "a phase of `{op}` on {ranks} ranks is {events} events, more than the {most} that can be simulated in reasonable \
         time; ask for fewer ranks"
    )]
    TooLarge {
        /// The pattern.
        op: String,
        /// At this scale.
        ranks: u64,
        /// So many.
        events: u64,
        /// So many would do.
        most: u64,
    },
    /// Stopped by who looked at its progress.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The program or the job cannot run.
    #[error(transparent)]
    Job(#[from] BspError),
    /// The traces of one source make no node.
    #[error("{name}: {reason}")]
    Noise {
        /// The source's name.
        name: String,
        /// What is wrong with it, and what to do.
        reason: BspError,
    },
}

/// Predicts the slowdown at each scale. Nodes of the job take the given nodes' noise in turn.
///
/// `progress` is told how many of how many runs (with messages, of how many events) are done, from any thread, and may stop it.
///
/// # Confidence
/// Each replicate cuts every node's traces into blocks, all CPUs alike, draws as many anew with replacement
/// (moving blocks: Künsch, "The Jackknife and the Bootstrap for General Stationary Observations", Annals of
/// Statistics 17, 1989; taken round the end: Politis & Romano 1992), places the ranks anew and runs every scale.
/// The interval runs between the 2.5 % and 97.5 % points of the replicates' slowdowns, moved so that their median is
/// the prediction; and at least over Student's interval of the mean of the run's eight chains, which is what chance leaves in it where
/// hardly a replicate differs from the others. No resampling can draw a detour that was not recorded: what lies past
/// [`Prediction::supported_ranks`] may be worse than any interval says. With messages see [`Network`].
///
/// # Errors
/// For options out of bounds and for traces that make no node; a trace without detours is fine.
pub fn predict(
    nodes: &[NodeNoise],
    options: &Options,
    progress: Progress<'_>,
) -> Result<Prediction, PredictError> {
    Ok(sample(nodes, None, options, progress)?.0)
}

/// As [`predict`], with noise that strikes all nodes at the same time beside, whatever the mode of the others'.
///
/// # Errors
/// As for [`predict`]; and where messages end a phase, which have no such noise.
pub fn predict_in_step(
    nodes: &[NodeNoise],
    common: &NodeNoise,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Prediction, PredictError> {
    Ok(sample(nodes, Some(common), options, progress)?.0)
}

/// As [`predict`], with the runs behind each point. `common` strikes all nodes at the same time, whatever the mode of the others'
/// noise; messages have none.
///
/// # Errors
/// As for [`predict`].
pub(crate) fn sample(
    nodes: &[NodeNoise],
    common: Option<&NodeNoise>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<(Prediction, Vec<Sample>), PredictError> {
    let jobs = options.jobs()?;
    if let Some(network) = &options.network {
        return match common {
            Some(_) => Err(PredictError::Common),
            None => network::predict(nodes, options, network, progress),
        };
    }
    let program = program(clocks(nodes)?, common.map(clock).transpose()?, options.quantum)?;
    let affordable = affordable_replicates(nodes, &jobs, options.replicates);
    let total = jobs.len() as u64 * (affordable + 1);
    let done = AtomicU64::new(0);
    let tick = || match progress(done.fetch_add(1, Ordering::Relaxed) + 1, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(PredictError::Stopped(Stopped)),
    };

    let chains = run_all(&program, &jobs, &tick)?;
    drop(program);
    let mut replicates = Vec::new();
    for number in 0..affordable {
        replicates.push(replicate(nodes, common, options, &jobs, number, &tick)?);
    }
    let silent_ns = options.quantum.as_nanos() as f64;
    let runs: Vec<Run> = chains.iter().map(|chains| Run::of(chains)).collect();
    let of_scale = |(scale, chains): (usize, &Vec<Run>)| {
        let resampled = replicates.iter().map(|runs| Some(runs.as_ref()?[scale].mean_ns()));
        Sample {
            silent_ns,
            noisy_ns: vec![runs[scale].mean_ns()],
            chains_ns: chains.iter().map(Run::mean_ns).collect(),
            resampled_ns: resampled.collect(),
            longer: 1.0,
        }
    };
    let samples: Vec<Sample> = chains.iter().enumerate().map(of_scale).collect();
    let replicates = replicates.iter().flatten().count() as u64;
    Ok((assemble::write(nodes, options, (&runs, &samples), (replicates, affordable)), samples))
}

fn program(nodes: Vec<Node>, common: Option<Node>, quantum: Nanos) -> Result<Program, BspError> {
    let program = Program::new(nodes, quantum)?;
    Ok(match common {
        Some(common) => program.with_common(common),
        None => program,
    })
}

/// Told that a run is done; fails where that stops the prediction.
type Tick<'a> = &'a (dyn Fn() -> Result<(), PredictError> + Sync);

/// One resampled run of every scale; `None` where the draw left no useful time at all.
fn replicate(
    nodes: &[NodeNoise],
    common: Option<&NodeNoise>,
    options: &Options,
    jobs: &[Job],
    number: u64,
    tick: Tick<'_>,
) -> Result<Option<Vec<Run>>, PredictError> {
    let anew = |(source, node): (usize, &NodeNoise)| {
        let blocks = Blocks::of(node, options.quantum)?;
        Node::new(&blocks.resample(node, &Draws::new(options.seed, &[stream::BLOCKS, number, source as u64])))
    };
    // What is common was part of the first node, and keeps to its blocks.
    let common = common.map(|common| anew((0, common))).transpose();
    let resampled = nodes.par_iter().enumerate().map(anew).collect::<Result<Vec<_>, _>>();
    let (Ok(resampled), Ok(common)) = (resampled, common) else {
        jobs.iter().try_for_each(|_| tick())?;
        return Ok(None);
    };
    let seed = Draws::new(options.seed, &[stream::SEEDS]).at(number);
    let jobs: Vec<Job> = jobs.iter().map(|job| Job { seed, ..*job }).collect();
    let chains = run_all(&program(resampled, common, options.quantum)?, &jobs, tick)?;
    Ok(Some(chains.iter().map(|chains| Run::of(chains)).collect()))
}

/// The names of the random streams under the prediction's seed, apart from those of the simulator.
pub(crate) mod stream {
    pub(crate) const BLOCKS: u64 = 100;
    pub(super) const SEEDS: u64 = 101;
    pub(crate) const BATCHES: u64 = 102;
    pub(super) const PHASES: u64 = 103;
    pub(super) const PLACES: u64 = 104;
    pub(super) const SKEWS: u64 = 105;
}

fn clocks(nodes: &[NodeNoise]) -> Result<Vec<Node>, PredictError> {
    nodes.iter().map(clock).collect()
}

pub(crate) fn clock(node: &NodeNoise) -> Result<Node, PredictError> {
    Node::new(&node.traces).map_err(|reason| PredictError::Noise { name: node.name.clone(), reason })
}

/// The chains of each job.
fn run_all(program: &Program, jobs: &[Job], tick: Tick<'_>) -> Result<Vec<Vec<Run>>, PredictError> {
    let run = |job| {
        let run = program.run_chains(job)?;
        tick()?;
        Ok(run)
    };
    jobs.par_iter().map(run).collect()
}

/// About how much CPU time a prediction takes, in nanoseconds: counted, not timed.
///
/// # Errors
/// As [`predict`], for options out of bounds.
pub fn cost_ns(nodes: &[NodeNoise], options: &Options) -> Result<u64, PredictError> {
    let jobs = options.jobs()?;
    match &options.network {
        Some(network) => network::cost_ns(options, network),
        None => {
            let replicates = affordable_replicates(nodes, &jobs, options.replicates);
            Ok(effort(nodes, &jobs).saturating_mul(replicates + 1).saturating_mul(NS_OF_EFFORT))
        }
    }
}

/// How many replicates to run: as many as asked for where that is cheap, fewer for huge traces and scales, and none
/// where a single one would take half a minute of CPU time.
fn affordable_replicates(nodes: &[NodeNoise], jobs: &[Job], asked: u64) -> u64 {
    let cost = effort(nodes, jobs);
    if cost > EFFORT_OF_ONE { 0 } else { asked.min((EFFORT / cost).max(FEWEST_REPLICATES)) }
}

/// What one run of all scales costs, in detours plus nodes placed or asked.
fn effort(nodes: &[NodeNoise], jobs: &[Job]) -> u64 {
    let detours: u64 = nodes.iter().map(NodeNoise::detours).sum();
    // Each chain places every node once; a drifting node is asked in every phase.
    let placed = |job: &Job| job.ranks.saturating_mul(if job.drifts() { job.phases } else { job.chains() });
    jobs.iter().map(placed).fold(detours.max(1), u64::saturating_add)
}
