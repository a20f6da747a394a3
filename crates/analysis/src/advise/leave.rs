//! A CPU of each node left to the system: what it costs, and from how many ranks on it pays.
//!
//! Jones, Brenner & Fier ("Impacts of Operating Systems on the Scalability of Parallel Applications", LLNL 2003) ran 15 tasks on nodes
//! of 16 CPUs. The nodes and the work of the job stay the same here, so that each rank left has more to do.

use quell_recording::columns::{Columns, describe};
use quell_recording::{Nanos, SourceKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::predict::{Options, PredictError};
use crate::whatif::{AttributedNoise, Job, Kind, Ran};

/// One scale with a CPU of each node left alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct LeaveScale {
    /// Ranks of the job that fills its nodes.
    #[column]
    pub ranks: u64,
    /// Ranks of the job that does not, on as many nodes.
    #[column(title = "ranks, one CPU left", page)]
    pub ranks_left: u64,
    /// The time of a phase of the full job, in percent of the quantum: 100 and the slowdown.
    #[column(title = "full nodes, time %", points)]
    pub full_percent: f64,
    /// That of the other, whose ranks do the work of all, in percent of the same quantum, with each CPU's noise as it is.
    #[column(title = "one left", points)]
    pub left_percent: f64,
    /// The same if tasks and devices' interrupts go to the CPU that is left alone.
    #[column(title = "one left, daemons on it", points)]
    pub left_moved_percent: f64,
}

/// A CPU left to the system.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Leave {
    /// CPUs of a node.
    pub cpus: u64,
    /// One entry for each scale that fills whole nodes.
    pub scales: Vec<LeaveScale>,
    /// The least of these scales from which on it pays if noise stays where it is; null where it never does.
    pub pays_from_ranks: Option<u64>,
    /// The same if noise that can move does.
    pub pays_moved_from_ranks: Option<u64>,
}

/// Whether the kernel runs it wherever there is room, or can be told to.
fn is_movable(kind: &Kind) -> bool {
    kind.source.as_ref().is_some_and(|source| matches!(source.kind(), SourceKind::Task | SourceKind::Irq))
}

/// What comes of leaving the first CPU of each node alone; `None` for nodes of one CPU or of several sizes, for scales that fill no
/// whole nodes, and for schedules, whose ranks are given.
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
    // Of nodes that are not full a CPU is left already.
    let full: Vec<usize> = (0..options.ranks.len()).filter(|&at| options.ranks[at] % cpus == 0).collect();
    if full.is_empty() {
        return Ok(None);
    }
    let ranks_left = |ranks: u64| ranks / cpus * (cpus - 1);
    let quantum = options.quantum.as_nanos() as f64 * cpus as f64 / (cpus - 1) as f64;
    let options = Options {
        // Each scale by itself: two may have as many ranks left.
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
        Job::Phases(options.clone()).run(&noise, None, crate::GO_ON)
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
