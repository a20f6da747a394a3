//! The position of every rank, for callers that run them all instead of asking for the slowest.

use super::fleet::{Member, Starts};
use super::layout::Layout;
use super::{Job, Node};
use crate::draws::Draws;

/// The position of a rank at the beginning of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the given node whose noise its node has.
    pub kind: usize,
    /// Index of its CPU on that node.
    pub cpu: usize,
    /// Its position in that CPU's trace, in nanoseconds from the trace's beginning.
    pub at: u64,
}

/// The places of all ranks of a job in one chain, the same as [`Program`](super::Program) uses.
#[derive(Clone, Debug)]
pub struct Places {
    job: Job,
    common: Draws,
    periods: Vec<u64>,
    /// The nodes in order: kind, number of CPUs in use, and position.
    nodes: Vec<(usize, usize, Member)>,
}

impl Places {
    /// Places the nodes of a job for one chain; they take the given nodes' noise round-robin.
    pub fn new(nodes: &[Node], job: &Job, chain: u64) -> Self {
        let sizes: Vec<usize> = nodes.iter().map(|node| node.clocks().len()).collect();
        let periods: Vec<u64> = nodes.iter().map(|node| node.clocks()[0].period()).collect();
        let mut placed: Vec<(u64, usize, usize)> = Vec::new();
        for (kind, layout) in Layout::per_node(job.ranks, &sizes).iter().enumerate() {
            placed.extend(layout.nodes().map(|node| (node, kind, sizes[kind])));
            placed.extend(layout.partial.map(|(node, cpus)| (node, kind, cpus)));
        }
        placed.sort_unstable();
        let starts = Starts::new(job, chain);
        let member = |(node, kind, cpus)| (kind, cpus, starts.member(node, periods[kind]));
        let nodes = placed.into_iter().map(member).collect();
        Self { job: *job, common: job.places(chain), periods, nodes }
    }

    /// The place at which each rank begins a phase of this chain, if the phases before it took `elapsed` nanoseconds.
    pub fn at(&self, phase: u64, elapsed: u128) -> impl Iterator<Item = Place> {
        self.nodes.iter().flat_map(move |&(kind, cpus, member)| {
            let period = self.periods[kind];
            let (place, elapsed) = self.job.common_place(&self.common, phase, elapsed, period);
            let at = member.at(place, elapsed, period);
            (0..cpus).map(move |cpu| Place { kind, cpu, at })
        })
    }
}
