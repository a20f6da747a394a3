//! Node-aware allreduce.

use super::binomial::Binomial;
use super::ops::Part;
use super::{AnyPattern, Params, Pattern, PatternError, StepOps};
use crate::loggops::Shape;

/// A node-aware allreduce: within each node a binomial reduce to its first rank, an allreduce of these leaders, and within
/// each node a binomial broadcast (Karonis et al., "Exploiting hierarchy in parallel computer networks to optimize
/// collective operation performance", 2000). LogGOPS has one network, so messages within a node cost the same as those
/// between nodes.
#[derive(Clone, Debug)]
pub(super) struct Hierarchical {
    ranks: u32,
    node_ranks: u32,
    /// Reduce and broadcast in a whole node, and in the last one, which may have fewer ranks.
    whole: [Binomial; 2],
    last: [Binomial; 2],
    leaders: Box<AnyPattern>,
    shapes: Vec<Shape>,
    /// The first shape of: reduce and broadcast in a whole node, both in the last node, the leaders' allreduce.
    first_shape: [u32; 5],
}

/// The part of the pattern that a step belongs to.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Reduce,
    Leaders,
    Broadcast,
}

impl Hierarchical {
    /// A vector of `bytes`; `leaders` is the pattern of the `ranks.div_ceil(node_ranks)` leaders.
    pub(super) fn new(params: &Params, leaders: AnyPattern) -> Self {
        let (ranks, node_ranks) = (params.ranks, params.node_ranks);
        let node = |ranks: u32| {
            let params = Params { ranks, root: 0, ..params.clone() };
            [Binomial::reduce(&params), Binomial::bcast(&params)]
        };
        let whole = node(node_ranks.min(ranks));
        let last = node((ranks - 1) % node_ranks + 1);
        let mut shapes = Vec::new();
        let mut add = |part: &[Shape]| {
            let first = shapes.len() as u32;
            shapes.extend_from_slice(part);
            first
        };
        let [reduce, bcast] = [&whole[0], &whole[1]].map(|part| add(part.shapes()));
        let [last_reduce, last_bcast] = [&last[0], &last[1]].map(|part| add(part.shapes()));
        let first_shape = [reduce, bcast, last_reduce, last_bcast, add(leaders.shapes())];
        Self { ranks, node_ranks, whole, last, leaders: Box::new(leaders), shapes, first_shape }
    }

    /// Number of leaders, one per node.
    pub(super) fn leaders(params: &Params) -> u32 {
        params.ranks.div_ceil(params.node_ranks)
    }

    /// Checks that the leaders' pattern is an allreduce.
    pub(super) fn check_inner(inner: &str) -> Result<(), PatternError> {
        const ALLREDUCES: [&str; 4] =
            ["allreduce", "allreduce-recursive-doubling", "allreduce-rabenseifner", "allreduce-ring"];
        if ALLREDUCES.contains(&inner) {
            return Ok(());
        }
        Err(PatternError::Inner {
            outer: "allreduce-hierarchical",
            inner: inner.to_owned(),
            instead: "allreduce-recursive-doubling, allreduce-rabenseifner or allreduce-ring",
        })
    }

    /// The reduce or broadcast in a rank's node, and its first shape.
    #[inline]
    fn in_node(&self, node: u32, broadcast: bool) -> (&Binomial, u32) {
        let part = usize::from(broadcast);
        if node == (self.ranks - 1) / self.node_ranks {
            (&self.last[part], self.first_shape[2 + part])
        } else {
            (&self.whole[part], self.first_shape[part])
        }
    }

    /// Number of steps that a rank has in the leaders' allreduce.
    #[inline]
    fn leading(&self, node: u32, place: u32) -> u32 {
        if place == 0 { self.leaders.steps(node, 0) } else { 0 }
    }

    /// The part that a step belongs to, and the number of the step in it.
    #[inline]
    fn phase(&self, node: u32, place: u32, step: u32) -> (Phase, u32) {
        let reduce = self.in_node(node, false).0.steps(place, 0);
        let leading = self.leading(node, place);
        match step {
            _ if step < reduce => (Phase::Reduce, step),
            _ if step < reduce + leading => (Phase::Leaders, step - reduce),
            _ => (Phase::Broadcast, step - reduce - leading),
        }
    }
}

impl Pattern for Hierarchical {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    fn steps(&self, rank: u32, _: u32) -> u32 {
        let (node, place) = (rank / self.node_ranks, rank % self.node_ranks);
        let in_node = [false, true].map(|broadcast| self.in_node(node, broadcast).0.steps(place, 0));
        in_node[0] + self.leading(node, place) + in_node[1]
    }

    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let (node, place) = (rank / self.node_ranks, rank % self.node_ranks);
        let (phase, step) = self.phase(node, place, step);
        if let Phase::Leaders = phase {
            let part = Part { first_rank: 0, stride: self.node_ranks, first_shape: self.first_shape[4] };
            return ops.within(part, |ops| self.leaders.step(node, 0, step, ops));
        }
        let (pattern, first_shape) = self.in_node(node, matches!(phase, Phase::Broadcast));
        let part = Part { first_rank: rank - place, stride: 1, first_shape };
        ops.within(part, |ops| pattern.step(place, 0, step, ops));
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let last = (self.ranks - 1) / self.node_ranks;
        let (mut operations, mut sends) = self.leaders.totals()?;
        for (parts, nodes) in [(&self.whole, last), (&self.last, 1)] {
            for part in parts {
                let (node_operations, sends_of_node) = part.totals()?;
                operations += node_operations * u64::from(nodes);
                sends += sends_of_node * u64::from(nodes);
            }
        }
        Some((operations, sends))
    }
}
