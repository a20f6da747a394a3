//! Broadcast, reduce, scatter and gather along a binomial tree.

use super::dissemination::{ahead, behind, rounds};
use super::{Params, Pattern, PatternError, StepOps};
use crate::loggops::Shape;

/// Shapes of a level of the tree: of whole subtrees, and of the one that the number of ranks cuts short.
const SEND: u32 = 0;
const RECV: u32 = 2;
const REDUCE: u32 = 4;
const PER_LEVEL: u32 = 5;

/// A binomial tree as MPICH's (Thakur, Rabenseifner & Gropp 2005, §4): numbered from the root, the parent of v is v without its
/// lowest bit, and the subtree of v is the ranks from v on. Going down, a rank receives from its parent and then sends to
/// its children, the largest subtree first; going up it receives from its children, the smallest first, and then sends
/// to its parent. Each message follows when the previous one is done. Works for any number of ranks.
#[derive(Clone, Debug)]
pub(super) struct Binomial {
    ranks: u32,
    root: u32,
    levels: u32,
    down: bool,
    /// 1 where each receive has a second step of local reduction.
    reduces: u32,
    shapes: Vec<Shape>,
}

impl Binomial {
    /// The root sends `bytes` to all.
    pub(super) fn bcast(params: &Params) -> Self {
        Self::new(params, true, |_| params.bytes, false)
    }

    /// Combines vectors of `bytes` on the root.
    pub(super) fn reduce(params: &Params) -> Self {
        Self::new(params, false, |_| params.bytes, params.reduces())
    }

    /// The root has a block of `bytes` for each rank; a message carries the blocks of a subtree.
    pub(super) fn scatter(params: &Params) -> Result<Self, PatternError> {
        params.check_blocks()?;
        Ok(Self::new(params, true, |blocks| blocks * params.bytes, false))
    }

    /// Each rank has a block of `bytes` for the root; a message carries the blocks of a subtree.
    pub(super) fn gather(params: &Params) -> Result<Self, PatternError> {
        params.check_blocks()?;
        Ok(Self::new(params, false, |blocks| blocks * params.bytes, false))
    }

    fn new(params: &Params, down: bool, bytes: impl Fn(u64) -> u64, reduces: bool) -> Self {
        let (ranks, levels) = (params.ranks, rounds(params.ranks));
        let level = |level: u32| {
            let whole = bytes(1 << level);
            let short = bytes(u64::from(ranks % (1 << level)));
            let work = params.reduce_per_byte.time(whole);
            let [send, recv] =
                [Shape::send, Shape::recv].map(|shape| [whole, short].map(|size| shape(size, 0)));
            [send[0], send[1], recv[0], recv[1], Shape::calc(work)]
        };
        let shapes = (0..levels).flat_map(level).collect();
        Self { ranks, root: params.root, levels, down, reduces: u32::from(reduces), shapes }
    }

    /// The number of levels below a rank. Its child on level l is 2ˡ after it.
    #[inline]
    fn below(&self, place: u32) -> u32 {
        if place == 0 { self.levels } else { place.trailing_zeros() }
    }

    /// The shape of the message between a rank and its child 2ˡ after it.
    #[inline]
    fn shape(&self, level: u32, child: u32) -> u32 {
        level * PER_LEVEL + u32::from(child + (1 << level) > self.ranks)
    }

    /// The message to or from the parent.
    #[inline]
    fn to_parent(&self, place: u32, ops: &mut StepOps<'_>) {
        let level = place.trailing_zeros();
        let parent = ahead(place - (1 << level), self.root, self.ranks);
        let shape = self.shape(level, place);
        if self.down { ops.recv(parent, RECV + shape) } else { ops.send(parent, SEND + shape) }
    }

    /// The message to or from the child of a level, if there is one.
    #[inline]
    fn to_child(&self, place: u32, level: u32, combines: bool, ops: &mut StepOps<'_>) {
        let child = place + (1 << level);
        if child >= self.ranks {
            return;
        }
        let (rank, shape) = (ahead(child, self.root, self.ranks), self.shape(level, child));
        match (self.down, combines) {
            (true, _) => ops.send(rank, SEND + shape),
            (false, false) => ops.recv(rank, RECV + shape),
            (false, true) => ops.calc(REDUCE + level * PER_LEVEL),
        }
    }
}

impl Pattern for Binomial {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, rank: u32, _: u32) -> u32 {
        let place = behind(rank, self.root, self.ranks);
        (self.below(place) << self.reduces) + u32::from(place > 0)
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let place = behind(rank, self.root, self.ranks);
        let below = self.below(place);
        if self.down {
            // The parent comes first; the root does not have one.
            match (step + u32::from(place == 0)).checked_sub(1) {
                None => self.to_parent(place, ops),
                Some(child) => self.to_child(place, below - 1 - child, false, ops),
            }
        } else if step < below << self.reduces {
            self.to_child(place, step >> self.reduces, step & self.reduces != 0, ops);
        } else {
            self.to_parent(place, ops);
        }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let sends = u64::from(self.ranks - 1);
        Some((sends * (2 + u64::from(self.reduces)), sends))
    }
}
