//! Leaves one CPU of each node to the system: the cost, and the smallest number of ranks at which it pays off.
//!
//! Jones, Brenner & Fier ("Impacts of Operating Systems on the Scalability of Parallel Applications", LLNL 2003) ran 15 tasks on nodes
//! of 16 CPUs. Here the nodes and the total work of the job stay the same, so each remaining rank has more work.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Nanos, SourceKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::predict::{JobNoise, Options, PredictError};
use crate::whatif::{AttributedNoise, Job, Kind, Ran};

/// One scale with one CPU of each node left to the system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct LeaveScale {
    /// Number of ranks of the job that uses all CPUs.
    #[column]
    pub ranks: u64,
    /// Number of ranks of the job that leaves one CPU per node free, on the same nodes.
    #[column(title = "ranks, one CPU left", page)]
    pub ranks_left: u64,
    /// The time of a phase of the full job, in percent of the quantum: 100 plus the slowdown.
    #[column(title = "full nodes, time %", points)]
    pub full_percent: f64,
    /// The time of a phase of the other job, whose ranks do the work of all, in percent of the same quantum. Each CPU keeps its noise.
    #[column(title = "one CPU left", points)]
    pub left_percent: f64,
    /// The same if tasks and device interrupts move to the free CPU.
    #[column(title = "one CPU left, daemons on it", points)]
    pub left_moved_percent: f64,
}

/// The effect of leaving one CPU per node to the system.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Leave {
    /// Number of CPUs of a node.
    pub cpus: u64,
    /// One entry for each scale that fills all its nodes.
    pub scales: Vec<LeaveScale>,
    /// The smallest of these scales from which it pays off if noise stays where it is; null if it never does.
    pub pays_from_ranks: Option<u64>,
    /// The same if movable noise moves to the free CPU.
    pub pays_moved_from_ranks: Option<u64>,
}

/// Whether the kernel can run it on any CPU, or can be configured to.
fn is_movable(kind: &Kind) -> bool {
    kind.source.as_ref().is_some_and(|source| matches!(source.kind(), SourceKind::Task | SourceKind::Irq))
}

/// The effect of leaving the first CPU of each node free. `None` for nodes of one CPU or of different sizes, for scales that do
/// not fill their nodes, and for schedules, whose number of ranks is fixed.
pub(super) fn leave(
    nodes: &[AttributedNoise],
    job: &Job<'_>,
    whole: &Ran,
) -> Result<Option<Leave>, PredictError> {
    let Job::Phases(options) = job else { return Ok(None) };
    let cpus = nodes.first().map_or(0, |node| node.cpus().count() as u64);
    if cpus < 2 || nodes.iter().any(|node| node.cpus().count() as u64 != cpus) {
        return Ok(None);
    }
    let fewer: Vec<AttributedNoise> = nodes.iter().map(|node| node.leaving_first(1)).collect();
    // Nodes that are not full have a free CPU already.
    let full: Vec<usize> = (0..options.ranks.len()).filter(|&at| options.ranks[at] % cpus == 0).collect();
    if full.is_empty() {
        return Ok(None);
    }
    let ranks_left = |ranks: u64| ranks / cpus * (cpus - 1);
    let quantum = options.quantum.as_nanos() as f64 * cpus as f64 / (cpus - 1) as f64;
    let options = Options {
        // Each scale on its own, because two can have the same number of remaining ranks.
        ranks: full.iter().map(|&at| ranks_left(options.ranks[at])).collect(),
        quantum: Nanos::from_nanos_f64(quantum).unwrap_or(options.quantum),
        replicates: 0,
        ..options.clone()
    };
    let quiet = |moved: bool| {
        let noise: Vec<_> = fewer
            .iter()
            .map(|node| match moved {
                false => node.noise(),
                true => node.weighed(|kind| if is_movable(&node.kinds()[kind]) { 0.0 } else { 1.0 }).noise(),
            })
            .collect();
        Job::Phases(options.clone()).run(JobNoise::from_nodes(&noise))
    };
    let (as_is, moved) = (quiet(false)?, quiet(true)?);
    let longer = cpus as f64 / (cpus - 1) as f64;
    let ranks = job.ranks();
    let scale = |(left, &at): (usize, &usize)| LeaveScale {
        ranks: ranks[at],
        ranks_left: options.ranks[left],
        full_percent: 100.0 + whole.costs[at].slowdown_percent,
        left_percent: longer * (100.0 + as_is.costs[left].slowdown_percent),
        left_moved_percent: longer * (100.0 + moved.costs[left].slowdown_percent),
    };
    let scales: Vec<LeaveScale> = full.iter().enumerate().map(scale).collect();
    let pays = |of: &dyn Fn(&LeaveScale) -> f64| {
        let from =
            scales.iter().rposition(|scale| of(scale) >= scale.full_percent).map_or(0, |last| last + 1);
        scales.get(from).map(|scale| scale.ranks)
    };
    Ok(Some(Leave {
        cpus,
        pays_from_ranks: pays(&|scale| scale.left_percent),
        pays_moved_from_ranks: pays(&|scale| scale.left_moved_percent),
        scales,
    }))
}
