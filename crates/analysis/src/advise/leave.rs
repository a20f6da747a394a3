//! Leaves some CPUs of each node to the system: the cost, and the smallest number of ranks at which it pays off.
//!
//! Jones, Brenner & Fier ("Impacts of Operating Systems on the Scalability of Parallel Applications", LLNL 2003) ran 15 tasks on nodes
//! of 16 CPUs. Here the nodes and the total work of the job stay the same, so each remaining rank has more work, unless the ranks of a node
//! leave CPUs free anyway, as where each drives a GPU.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Nanos, SourceKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::base::share;
use super::proposals::is_worth;
use crate::predict::{JobNoise, Options, PredictError, Sample};
use crate::whatif::{AttributedNoise, Job, Kind, Ran};

/// Which numbers of CPUs to consider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Numbers of CPUs that each node leaves to the system; those that leave none to the job are passed over.
    pub counts: Vec<u64>,
    /// Ranks on each node; as many as it has CPUs if not given.
    pub ranks_per_node: Option<u64>,
}

impl Default for Leaving {
    fn default() -> Self {
        Self { counts: vec![1], ranks_per_node: None }
    }
}

/// One scale with some CPUs of each node left to the system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct LeaveScale {
    /// Number of ranks of the job that leaves no CPU.
    #[column]
    pub ranks: u64,
    /// Number of ranks of the job that leaves CPUs free, on the same nodes.
    #[column(title = "ranks, CPUs left", page)]
    pub ranks_left: u64,
    /// The time of a phase of the first job, in percent of the quantum: 100 plus the slowdown.
    #[column(title = "none left, time %", points)]
    pub full_percent: f64,
    /// The time of a phase of the other job, whose ranks do the work of all, in percent of the same quantum. Each CPU keeps its noise.
    #[column(title = "left", points)]
    pub left_percent: f64,
    /// The same if tasks and device interrupts move to the free CPUs.
    #[column(title = "left, daemons moved there", points)]
    pub left_moved_percent: f64,
    /// 95 % confidence interval of what that saves, from pairs of runs: the first time less this one, in percent of the quantum.
    #[column(title = "saves, 95 %", points)]
    pub saved_moved_ci95_percent: Option<[f64; 2]>,
}

/// The effect of leaving a number of CPUs of each node to the system: the first ones of its list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeaveChoice {
    /// Number of CPUs that are left.
    pub left: u64,
    /// The CPUs that the job keeps, as in `1-7`; null if nodes differ.
    pub on_cpus: Option<String>,
    /// One entry for each scale that fills all its nodes.
    pub scales: Vec<LeaveScale>,
    /// The smallest of these scales from which it pays off if noise stays where it is; null if it never does.
    pub pays_from_ranks: Option<u64>,
    /// The same if movable noise moves to the free CPUs.
    pub pays_moved_from_ranks: Option<u64>,
}

/// The effect of leaving CPUs of each node to the system.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Leave {
    /// Number of CPUs of a node.
    pub cpus: u64,
    /// Number of ranks on a node of the job that leaves none.
    pub ranks_per_node: u64,
    /// One entry for each number of CPUs.
    pub choices: Vec<LeaveChoice>,
    /// The number of CPUs to leave, with movable noise moved, for the largest scale: the fewest with which no other number certainly saves 0.5 %
    /// more; 0 if none certainly saves as much.
    pub best: u64,
}

/// Whether the kernel can run it on any CPU, or can be configured to.
fn is_movable(kind: &Kind) -> bool {
    kind.source.as_ref().is_some_and(|source| matches!(source.kind(), SourceKind::Task | SourceKind::Irq))
}

/// The effect of leaving the first CPUs of each node free; `whole` is the job that leaves none. `None` for nodes of one CPU or of different sizes, for scales that do
/// not fill their nodes, and for schedules, whose number of ranks is fixed.
pub(super) fn leave(
    nodes: &[AttributedNoise],
    job: &Job<'_>,
    whole: &Ran,
    leaving: &Leaving,
) -> Result<Option<Leave>, PredictError> {
    let Job::Phases(options) = job else { return Ok(None) };
    let cpus = nodes.first().map_or(0, |node| node.cpus().count() as u64);
    if cpus < 2 || nodes.iter().any(|node| node.cpus().count() as u64 != cpus) {
        return Ok(None);
    }
    let per_node = leaving.ranks_per_node.unwrap_or(cpus).clamp(1, cpus);
    // Nodes that are not full have a free CPU already.
    let full: Vec<usize> = (0..options.ranks.len()).filter(|&at| options.ranks[at] % per_node == 0).collect();
    if full.is_empty() {
        return Ok(None);
    }
    let all: Vec<u64> = full.iter().map(|&at| options.ranks[at]).collect();
    let mut choices = Vec::new();
    let mut lasts: Vec<Sample> = Vec::new();
    for &left in leaving.counts.iter().filter(|left| (1..cpus).contains(*left)) {
        let place = (per_node, cpus - left, left);
        let silent: Vec<f64> = full.iter().map(|&at| whole.samples[at].silent_ns).collect();
        let as_is = times(nodes, options, (&all, &silent), place, false)?;
        let moved = times(nodes, options, (&all, &silent), place, true)?;
        let scale = |at: usize| LeaveScale {
            ranks: all[at],
            ranks_left: share(all[at], per_node, cpus - left).ranks,
            full_percent: 100.0 + whole.costs[full[at]].slowdown_percent,
            left_percent: 100.0 + as_is[at].slowdown_percent(),
            left_moved_percent: 100.0 + moved[at].slowdown_percent(),
            saved_moved_ci95_percent: whole.samples[full[at]].gain(&moved[at]).ci95,
        };
        let scales: Vec<LeaveScale> = (0..all.len()).map(scale).collect();
        lasts.extend(moved.into_iter().next_back());
        choices.push(LeaveChoice {
            left,
            on_cpus: kept(nodes, left),
            pays_from_ranks: pays(&scales, &|scale| scale.left_percent),
            pays_moved_from_ranks: pays(&scales, &|scale| scale.left_moved_percent),
            scales,
        });
    }
    if choices.is_empty() {
        return Ok(None);
    }
    let lefts: Vec<u64> = choices.iter().map(|choice| choice.left).collect();
    let none = full.last().map(|&at| &whole.samples[at]);
    let best = none.map_or(0, |none| fewest(none, &lefts, &lasts));
    Ok(Some(Leave { cpus, ranks_per_node: per_node, choices, best }))
}

/// The fewest CPUs that save something certain over leaving `none`, and with which no other number certainly saves more.
fn fewest(none: &Sample, lefts: &[u64], with: &[Sample]) -> u64 {
    let as_good = |one: &Sample| !with.iter().any(|other| is_worth(one, other));
    let good = lefts.iter().zip(with).filter(|(_, one)| is_worth(none, one) && as_good(one));
    good.map(|(left, _)| *left).min().unwrap_or(0)
}

/// A phase at each number of ranks, against the time without noise of the job that leaves none, for `(ranks per node, CPUs for them, CPUs
/// left)`.
fn times(
    nodes: &[AttributedNoise],
    options: &Options,
    (ranks, silent_ns): (&[u64], &[f64]),
    (per_node, room, left): (u64, u64, u64),
    moved: bool,
) -> Result<Vec<Sample>, PredictError> {
    let used = per_node.min(room) as usize;
    let noise: Vec<_> = nodes
        .iter()
        .map(|node| {
            let cpus: Vec<_> = node.cpus().skip(left as usize).take(used).collect();
            let node = node.on(&cpus);
            match moved {
                false => node.noise(),
                true => node.weighed(|kind| if is_movable(&node.kinds()[kind]) { 0.0 } else { 1.0 }).noise(),
            }
        })
        .collect();
    let share = share(per_node, per_node, room);
    let quantum = Nanos::from_nanos_f64(options.quantum.as_nanos() as f64 * share.work);
    let job = Job::Phases(Options {
        ranks: ranks.iter().map(|ranks| ranks / per_node * share.ranks).collect(),
        quantum: quantum.unwrap_or(options.quantum),
        // Only what is compared needs an interval.
        replicates: if moved { options.replicates } else { 0 },
        ..options.clone()
    });
    let ran = job.run(JobNoise::from_nodes(&noise))?;
    Ok(ran.samples.into_iter().zip(silent_ns).map(|(sample, silent)| sample.against(*silent)).collect())
}

/// The CPUs that the job keeps, if all nodes have the same.
fn kept(nodes: &[AttributedNoise], left: u64) -> Option<String> {
    let of = |node: &AttributedNoise| node.cpus().skip(left as usize).collect::<Vec<_>>();
    let first = of(nodes.first()?);
    nodes.iter().all(|node| of(node) == first).then(|| quell_recording::format_cpu_list(&first))
}

/// The smallest scale from which on a job is quicker that leaves CPUs.
fn pays(scales: &[LeaveScale], of: &dyn Fn(&LeaveScale) -> f64) -> Option<u64> {
    let from = scales.iter().rposition(|scale| of(scale) >= scale.full_percent).map_or(0, |last| last + 1);
    scales.get(from).map(|scale| scale.ranks)
}
