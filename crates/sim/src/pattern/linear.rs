//! Linear scatter and gather: the root sends to, or receives from, one rank after the other.

use super::{Params, Pattern, StepOps};
use crate::loggops::Shape;

/// Linear scatter or gather, as in Open MPI's basic collectives: the root serves the other ranks in the order of
/// their numbers, each when the previous one is done.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    ranks: u32,
    root: u32,
    scatter: bool,
    shapes: [Shape; 2],
}

const SEND: u32 = 0;
const RECV: u32 = 1;

impl Linear {
    /// The root has a block of `bytes` for each other rank.
    pub(super) fn scatter(params: &Params) -> Self {
        Self::new(params, true)
    }

    /// Each other rank has a block of `bytes` for the root.
    pub(super) fn gather(params: &Params) -> Self {
        Self::new(params, false)
    }

    fn new(params: &Params, scatter: bool) -> Self {
        let shapes = [Shape::send(params.bytes, 0), Shape::recv(params.bytes, 0)];
        Self { ranks: params.ranks, root: params.root, scatter, shapes }
    }
}

impl Pattern for Linear {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, rank: u32, _: u32) -> u32 {
        if rank == self.root { self.ranks - 1 } else { 1 }
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let sends = self.scatter == (rank == self.root);
        let peer = if rank != self.root { self.root } else { step + u32::from(step >= self.root) };
        if sends { ops.send(peer, SEND) } else { ops.recv(peer, RECV) }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let sends = u64::from(self.ranks - 1);
        Some((2 * sends, sends))
    }
}
