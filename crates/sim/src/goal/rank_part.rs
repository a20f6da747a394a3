//! How the operations and dependencies of a rank are stored.

use std::borrow::Cow;

use crate::loggops::Kind;

/// Marks an edge whose dependent waits for the start of an operation, not for its end.
pub(super) const AT_START: u32 = 1 << 31;
/// The number of the dependent in an edge.
pub(super) const DEPENDENT: u32 = AT_START - 1;

/// One operation, without the data that it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    pub(super) peer: u32,
    pub(super) shape: u32,
    /// Index after its last edge among those of its rank. The edges begin where those of the operation before it end.
    pub(super) edges_end: u32,
}

/// Where the operations and edges of a rank begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) ops: u64,
    pub(super) edges: u64,
}

/// The part of a schedule that belongs to one rank.
pub(super) struct RankPart<'a> {
    pub(super) ops: &'a [Op],
    pub(super) edges: Cow<'a, [u32]>,
}

impl RankPart<'_> {
    /// The dependents of an operation, with [`AT_START`] where they wait for its start.
    pub(super) fn edges_of(&self, op: usize) -> &[u32] {
        let begin = if op == 0 { 0 } else { self.ops[op - 1].edges_end };
        &self.edges[begin as usize..self.ops[op].edges_end as usize]
    }

    /// As [`edges_of`](Self::edges_of), split into the dependents of its end and those of its start.
    pub(super) fn edges_by_kind(&self, op: usize) -> (&[u32], &[u32]) {
        let edges = self.edges_of(op);
        edges.split_at(edges.partition_point(|edge| edge & AT_START == 0))
    }

    /// Number of dependencies of each operation.
    pub(super) fn needs(&self) -> Vec<u32> {
        let mut needs = vec![0u32; self.ops.len()];
        for edge in self.edges.iter() {
            needs[(edge & DEPENDENT) as usize] += 1;
        }
        needs
    }
}

/// Whether an operation of this kind names a peer.
pub(super) fn has_peer(kind: Kind) -> bool {
    kind != Kind::Calc
}
