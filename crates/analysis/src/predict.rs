//! Predicts what the noise of recorded nodes costs a bulk-synchronous program at any scale.
//!
//! The program and its slowdown are those of De, Kothari & Mann, "A Trace-driven Emulation Framework to Predict
//! Scalability of Large Clusters in Presence of OS Jitter" (IEEE Cluster 2008), §III-A and eq. 3; it runs on the
//! simulator of `quell-sim` instead of a jitter-free machine. If messages end a phase (`messages`), they use its
//! LogGOPS engine.

mod assemble;
mod document;
mod interval;
mod messages;
mod noise;
mod redraw;
mod repeats;
mod resample;
mod sample;
mod support;
mod tail;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use quell_recording::Nanos;
use quell_sim::loggops::RunError;
use quell_sim::pattern::PatternError;
use quell_sim::{BspError, Draws, Job, Node, Program, Run, SyncMode};
use rayon::prelude::*;

use crate::{Progress, Stopped};

pub use document::{MessageFacts, MessageProgress, NoiseSource, Point, Prediction, SCHEMA, SyncName};
pub(crate) use interval::half_width_of_mean;
pub use messages::Messages;
pub(crate) use messages::culprits_of_messages;
pub use noise::NodeNoise;
use noise::WINDOWS_PER_RANK;
pub(crate) use redraw::Redraw;
pub use repeats::Origin;
pub(crate) use repeats::few_recordings;
pub(crate) use sample::{Difference, Sample};
pub(crate) use support::Support;

/// Default number of resampled runs per point.
pub const REPLICATES: u64 = 40;
/// Minimum number of replicates for a 95 % interval. That many run unless a single one is too expensive.
const FEWEST_REPLICATES: u64 = 40;
/// Maximum cost of all replicates, if it allows enough of them, in detours rebuilt plus nodes placed or queried:
/// about [`NS_OF_EFFORT`] of CPU time each.
const EFFORT: u64 = 30_000_000;
const NS_OF_EFFORT: u64 = 300;
/// Number of ranks whose phases a scale runs at least where all nodes are at one place.
const ALIKE: u64 = 4;
/// Maximum cost of one replicate.
const EFFORT_OF_ONE: u64 = 100_000_000;
/// Maximum number of detours of the traces of replicates that run at the same time: some 100 bytes of memory each.
const MOST_TOGETHER: u64 = 10_000_000;
/// Where the number of phases is not asked for: maximum number of phases of all ranks together for each window of the traces, of which
/// there is one per quantum and CPU. More would tell no more than the traces do: chance adds a tenth to the variance that they leave open.
const PHASES_PER_WINDOW: u64 = 10;
/// The same of a replicate. Chance adds a half to the variance, and is taken out of the interval.
const REPLICATED_PER_WINDOW: u64 = 2;
/// Minimum number of phases of a replicate: those of two chains, whose difference is what chance adds.
const FEWEST_PHASES: u64 = 100;
/// The same of these numbers of ranks, for the gain of a small source next to a large one. With fewer a phase takes longer, because its slowest rank
/// is not found at once; with more, placing the nodes of a chain takes longer than its phases.
const MORE_PHASES: u64 = 500;
const MORE_PHASES_OF: std::ops::Range<u64> = 1 << 8..1 << 14;

/// The options of a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The scales, in ranks (one per CPU).
    pub ranks: Vec<u64>,
    /// Noise-free work per phase and rank.
    pub quantum: Nanos,
    /// How the nodes' noise lines up.
    pub sync: SyncMode,
    /// Number of phases per scale.
    pub phases: u64,
    /// Scales of few ranks run more phases, until all their ranks together have run this many, or ten times the quanta that the traces
    /// hold: a rare detour seldom strikes few ranks. 0 for [`Self::phases`] at every scale. Without messages only.
    pub rank_phases: u64,
    /// With messages: the divisor of the effort per scale that a single prediction may spend. 1 for the full effort.
    pub effort_divisor: u64,
    /// Equal seeds give equal predictions, bit for bit.
    pub seed: u64,
    /// Number of resampled runs for the confidence intervals, see [`REPLICATES`]; 0 for none.
    pub replicates: u64,
    /// The messages that end a phase; `None` if all ranks wait for the slowest at no cost.
    pub messages: Option<Messages>,
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
            effort_divisor: 1,
            seed: 1,
            replicates: REPLICATES,
            messages: None,
        }
    }

    /// Number of ranks that draw a phase on their own: where all nodes are at one place, more ranks are no more draws.
    fn draws(&self, ranks: u64) -> u64 {
        if self.sync == SyncMode::None { ranks.max(1) } else { ranks.clamp(1, ALIKE) }
    }

    /// Number of phases of all ranks together that scales of few ranks run at least: limited for each window of the traces.
    fn rank_phases(&self, nodes: &[NodeNoise], per_window: u64) -> u64 {
        let windows = nodes.iter().map(|node| node.windows(self.quantum)).fold(0, u64::saturating_add);
        self.rank_phases.min(windows.saturating_mul(per_window))
    }

    /// One job per scale, on these nodes.
    pub(crate) fn jobs(&self, nodes: &[NodeNoise]) -> Result<Vec<Job>, PredictError> {
        let rank_phases = self.rank_phases(nodes, PHASES_PER_WINDOW);
        let phases = |ranks: u64| self.phases.max(rank_phases / self.draws(ranks));
        let job = |&ranks| Job { ranks, phases: phases(ranks), sync: self.sync, seed: self.seed };
        let jobs: Vec<Job> = self.ranks.iter().map(job).collect();
        if jobs.is_empty() {
            return Err(PredictError::NoRanks);
        }
        jobs.iter().try_for_each(Job::check)?;
        Ok(jobs)
    }

    /// The jobs of a replicate: with fewer phases where more would only tell more exactly what the traces leave open.
    fn replicated(&self, nodes: &[NodeNoise], jobs: &[Job]) -> Vec<Job> {
        let rank_phases = self.rank_phases(nodes, REPLICATED_PER_WINDOW);
        let fewest = |job: &Job| {
            if MORE_PHASES_OF.contains(&job.ranks) { MORE_PHASES } else { FEWEST_PHASES }
        };
        let phases = |job: &Job| job.phases.min((rank_phases / self.draws(job.ranks)).max(fewest(job)));
        // What chance adds is not known of a run in one chain.
        let is_shorter = |job: &Job| self.rank_phases > 0 && !job.drifts();
        let of = |job: &Job| Job { phases: if is_shorter(job) { phases(job) } else { job.phases }, ..*job };
        jobs.iter().map(of).collect()
    }
}

/// Why nothing can be predicted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// No scale is given.
    #[error("no number of ranks is given; name at least one, such as 1024")]
    NoRanks,
    /// Drift in a prediction with messages.
    #[error(
        "node clocks cannot drift where messages end a phase; leave the drift out, or ask for the operation `max`"
    )]
    Drift,
    /// Co-scheduled noise in a prediction with messages.
    #[error(
        "where messages end a phase all noise of a node is co-scheduled or none is; ask for the operation `max`, or for sync mode `phase`"
    )]
    Common,
    /// The messages cannot be made.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The messages cannot be simulated.
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
        /// The scale.
        ranks: u64,
        /// Number of events of a phase.
        events: u64,
        /// Maximum number of events of a phase.
        most: u64,
    },
    /// The progress callback stopped the prediction.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The program or the job cannot run.
    #[error(transparent)]
    Job(#[from] BspError),
    /// A phase that no trace is long enough to show.
    #[error(
        "{name} spans {span}, less than one quantum of {quantum}, so it holds no phase of that length; record for longer, or \
         choose a shorter quantum"
    )]
    SpanBelowQuantum {
        /// The source's name.
        name: String,
        /// Its length.
        span: Nanos,
        /// Length of a quantum.
        quantum: Nanos,
    },
    /// The traces of one source do not make a node.
    #[error("{name}: {reason}")]
    Noise {
        /// The source's name.
        name: String,
        /// What is wrong with it, and what to do.
        reason: BspError,
    },
}

/// Predicts the slowdown at each scale. Nodes of the job take the given nodes' noise round-robin.
///
/// `progress` is called with the number of runs (with messages, of events) that are done and the total, from any thread; it may stop the run.
///
/// # Confidence
/// Each replicate cuts every node's traces into blocks, the same for all CPUs, draws as many with replacement
/// (moving blocks: Künsch, "The Jackknife and the Bootstrap for General Stationary Observations", Annals of
/// Statistics 17, 1989; wrapped around the end: Politis & Romano 1992), places the ranks anew and runs every scale.
/// Each block begins where the last detours are as old as at the end of the block before it (matched blocks: Carlstein et al., Bernoulli 4,
/// 1998), and the longest detours get durations from a generalised Pareto tail that is fitted to them (Pickands, Annals of Statistics 3, 1975;
/// Hosking & Wallis, Technometrics 29, 1987). Without such a tail, or with a heavy one, there is on average one more detour as long as the longest
/// (Garwood, Biometrika 28, 1936).
///
/// Where several recordings are of one node, the replicate draws from them, too, as far as they differ more than their lengths explain: what changes
/// from one recording to the next is in none of them. Different nodes stay in their places.
///
/// The interval is the percentile interval of the replicates' slowdowns (Efron 1981), narrowed around their median by the share of their
/// variance that comes from the limited number of phases, and widened to contain the prediction. It is absent where its upper end is
/// more than ten times its lower one, which means that the traces do not resolve the slowdown. Beyond
/// [`Prediction::supported_ranks`] the slowdown may exceed every interval.
///
/// # Errors
/// For options out of bounds and for traces that do not make a node; a trace without detours is valid.
pub fn predict(
    nodes: &[NodeNoise],
    options: &Options,
    progress: Progress<'_>,
) -> Result<Prediction, PredictError> {
    Ok(sample(JobNoise::from_nodes(nodes), options, progress)?.0)
}

/// As [`predict`], with additional noise that strikes all nodes at the same time, whatever the mode of the other noise.
///
/// # Errors
/// As for [`predict`]; and if messages end a phase, which do not support such noise.
pub fn predict_in_step(
    nodes: &[NodeNoise],
    common: &NodeNoise,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Prediction, PredictError> {
    Ok(sample(JobNoise { common: Some(common), ..JobNoise::from_nodes(nodes) }, options, progress)?.0)
}

/// The noise of a job's nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobNoise<'a> {
    pub nodes: &'a [NodeNoise],
    /// Noise that all nodes have at the same time, whatever the mode of the other noise; messages do not support it.
    pub common: Option<&'a NodeNoise>,
    /// The recorded nodes, in which resampled blocks are chosen. Nodes that are changed in several ways are resampled alike, so that
    /// their differences are paired.
    pub recorded: &'a [NodeNoise],
}

impl<'a> JobNoise<'a> {
    /// Nodes as they were recorded.
    pub(crate) fn from_nodes(nodes: &'a [NodeNoise]) -> Self {
        Self { nodes, common: None, recorded: nodes }
    }
}

/// As [`predict`], with the runs behind each point.
///
/// # Errors
/// As for [`predict`].
pub(crate) fn sample(
    noise: JobNoise<'_>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<(Prediction, Vec<Sample>), PredictError> {
    let JobNoise { nodes, common, .. } = noise;
    let jobs = options.jobs(nodes)?;
    nodes.iter().try_for_each(|node| check_span(node, options.quantum))?;
    if let Some(messages) = &options.messages {
        return match common {
            Some(_) => Err(PredictError::Common),
            None => messages::predict(noise, options, messages, progress),
        };
    }
    let program = program(clocks(nodes)?, common.map(clock).transpose()?, options.quantum)?;
    let replicated = options.replicated(nodes, &jobs);
    let affordable = affordable_replicates(nodes, &replicated, options.replicates);
    let total = jobs.len() as u64 * (affordable + 1);
    let done = AtomicU64::new(0);
    let tick = || match progress(done.fetch_add(1, Ordering::Relaxed) + 1, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(PredictError::Stopped(Stopped)),
    };

    let chains = run_all(&program, &jobs, &tick)?;
    drop(program);
    let replicates = replicates(noise, options, &replicated, affordable, &tick)?;
    let silent_ns = options.quantum.as_nanos() as f64;
    let runs: Vec<Run> = chains.iter().map(|chains| Run::average(chains)).collect();
    let of_scale = |(scale, chains): (usize, &Vec<Run>)| {
        let means = |chains: &[Run]| chains.iter().map(Run::mean_ns).collect();
        let resampled = replicates.iter().map(|scales| Some(means(&scales.as_ref()?[scale])));
        let chain = |job: &Job| job.phases as f64 / job.chains() as f64;
        let longer = chain(&replicated[scale]) / chain(&jobs[scale]);
        Sample { silent_ns, recorded_ns: means(chains), resampled_ns: resampled.collect(), longer }
    };
    let samples: Vec<Sample> = chains.iter().enumerate().map(of_scale).collect();
    let replicates = replicates.iter().flatten().count() as u64;
    Ok((assemble::write(nodes, options, (&runs, &samples), (replicates, affordable)), samples))
}

/// A trace that is shorter than a quantum and has noise shows no phase; without noise all phases are alike.
fn check_span(node: &NodeNoise, quantum: Nanos) -> Result<(), PredictError> {
    match node.span() {
        Ok(span) if quantum > span.length() && node.detours() > 0 => {
            let (name, span) = (node.name.clone(), span.length());
            Err(PredictError::SpanBelowQuantum { name, span, quantum })
        }
        _ => Ok(()),
    }
}

fn program(nodes: Vec<Node>, common: Option<Node>, quantum: Nanos) -> Result<Program, BspError> {
    let program = Program::new(nodes, quantum)?;
    Ok(match common {
        Some(common) => program.with_common(common),
        None => program,
    })
}

/// Called when a run is done; fails if that stops the prediction.
type Tick<'a> = &'a (dyn Fn() -> Result<(), PredictError> + Sync);

/// The chains of the resampled runs, as many together as memory bears.
fn replicates(
    noise: JobNoise<'_>,
    options: &Options,
    jobs: &[Job],
    count: u64,
    tick: Tick<'_>,
) -> Result<Vec<Option<Vec<Vec<Run>>>>, PredictError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let redraw = Redraw::new(noise, options.quantum)?;
    let detours: u64 = noise.nodes.iter().map(NodeNoise::detours).sum();
    let together = (MOST_TOGETHER / detours.max(1)).clamp(1, count);
    let mut all = Vec::new();
    for first in (0..count).step_by(together as usize) {
        let some = first..count.min(first + together);
        let made = some.into_par_iter().map(|number| replicate(&redraw, options, jobs, number, tick));
        all.append(&mut made.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(all)
}

/// The chains of one resampled run of every scale; `None` if the draw left no useful time at all.
fn replicate(
    redraw: &Redraw,
    options: &Options,
    jobs: &[Job],
    number: u64,
    tick: Tick<'_>,
) -> Result<Option<Vec<Vec<Run>>>, PredictError> {
    let Some((nodes, common)) = redraw.draw(options.seed, number) else {
        jobs.iter().try_for_each(|_| tick())?;
        return Ok(None);
    };
    let seed = Draws::new(options.seed, &[stream::SEEDS]).at(number);
    let jobs: Vec<Job> = jobs.iter().map(|job| Job { seed, ..*job }).collect();
    Ok(Some(run_all(&program(nodes, common, options.quantum)?, &jobs, tick)?))
}

/// The names of the random streams under the prediction's seed, different from those of the simulator.
pub(crate) mod stream {
    pub(crate) const BLOCKS: u64 = 100;
    pub(super) const SEEDS: u64 = 101;
    pub(crate) const BATCHES: u64 = 102;
    pub(super) const PHASES: u64 = 103;
    pub(super) const PLACES: u64 = 104;
    pub(super) const SKEWS: u64 = 105;
    pub(super) const RECORDINGS: u64 = 106;
}

fn clocks(nodes: &[NodeNoise]) -> Result<Vec<Node>, PredictError> {
    nodes.iter().map(clock).collect()
}

pub(crate) fn clock(node: &NodeNoise) -> Result<Node, PredictError> {
    Node::new(&node.traces).map_err(|reason| PredictError::Noise { name: node.name.clone(), reason })
}

/// The chains of each job.
fn run_all(program: &Program, jobs: &[Job], tick: Tick<'_>) -> Result<Vec<Vec<Run>>, PredictError> {
    // With all nodes at one place, one run stands for those of more ranks.
    let key = |job: &Job| Job { ranks: job.ranks.min(program.distinct_ranks()), ..*job };
    let same = |job: &Job| jobs.iter().position(|first| key(first) == key(job));
    let is_first = |at: usize| same(&jobs[at]) == Some(at);
    let run = |(at, job): (usize, &Job)| {
        let run =
            (job.sync != SyncMode::Phase || is_first(at)).then(|| program.run_chains(job)).transpose()?;
        tick()?;
        Ok(run)
    };
    let runs: Vec<Option<Vec<Run>>> =
        jobs.par_iter().enumerate().map(run).collect::<Result<_, PredictError>>()?;
    let of = |(job, run): (&Job, &Option<Vec<Run>>)| {
        run.clone().or_else(|| runs[same(job)?].clone()).unwrap_or_default()
    };
    Ok(jobs.iter().zip(&runs).map(of).collect())
}

/// Approximate CPU time of a prediction, in nanoseconds: estimated from counts.
///
/// # Errors
/// As [`predict`], for options out of bounds.
pub fn cost_ns(nodes: &[NodeNoise], options: &Options) -> Result<u64, PredictError> {
    let jobs = options.jobs(nodes)?;
    match &options.messages {
        Some(messages) => messages::cost_ns(nodes, options, messages),
        None => {
            let replicated = options.replicated(nodes, &jobs);
            let replicates = affordable_replicates(nodes, &replicated, options.replicates);
            let all = effort(nodes, &replicated).saturating_mul(replicates);
            Ok(effort(nodes, &jobs).saturating_add(all).saturating_mul(NS_OF_EFFORT))
        }
    }
}

/// Number of replicates to run: as requested if that is cheap, fewer for huge traces and scales, and none
/// if a single one would take half a minute of CPU time.
fn affordable_replicates(nodes: &[NodeNoise], jobs: &[Job], asked: u64) -> u64 {
    let cost = effort(nodes, jobs);
    if cost > EFFORT_OF_ONE { 0 } else { asked.min((EFFORT / cost).max(FEWEST_REPLICATES)) }
}

/// Cost of one run of all scales, in detours plus nodes placed or queried.
fn effort(nodes: &[NodeNoise], jobs: &[Job]) -> u64 {
    let detours: u64 = nodes.iter().map(NodeNoise::detours).sum();
    // Each chain places every node once; a drifting node is queried in every phase.
    let placed = |job: &Job| job.ranks.saturating_mul(if job.drifts() { job.phases } else { job.chains() });
    jobs.iter().map(placed).fold(detours.max(1), u64::saturating_add)
}

#[cfg(test)]
mod tests;
