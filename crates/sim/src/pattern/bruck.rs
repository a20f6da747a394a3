//! Bruck's allgather and alltoall.

use super::dissemination::{ahead, behind, rounds};
use super::{Params, Pattern, PatternError, Peers, StepOps, UniformStep};
use crate::loggops::Shape;

/// Bruck's algorithms (Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient algorithms for all-to-all communications in
/// multiport message-passing systems", 1997) in ⌈log₂ P⌉ rounds, for any number of ranks. Rotating the
/// blocks in memory before and after costs nothing here.
#[derive(Clone, Debug)]
pub(super) struct Bruck {
    ranks: u32,
    rounds: u32,
    /// Whether messages go from higher to lower ranks.
    down: bool,
    /// The send and the receive of each round.
    shapes: Vec<Shape>,
}

impl Bruck {
    /// Each rank has a block of `bytes` for all others. In round k it sends the first 2ᵏ blocks that it has, or as many as
    /// are missing, to the rank 2ᵏ before it.
    pub(super) fn allgather(params: &Params) -> Result<Self, PatternError> {
        let ranks = u64::from(params.ranks);
        Self::new(params, true, |round| (1 << round).min(ranks - (1 << round)))
    }

    /// Each rank has a block of `bytes` for each other. In round k it sends the blocks whose remaining distance has bit
    /// k set to the rank 2ᵏ after it.
    pub(super) fn alltoall(params: &Params) -> Result<Self, PatternError> {
        let ranks = u64::from(params.ranks);
        let set = |round: u32| {
            let (bit, period) = (1 << round, 2 << round);
            ranks / period * bit + (ranks % period).saturating_sub(bit)
        };
        Self::new(params, false, set)
    }

    fn new(params: &Params, down: bool, blocks: impl Fn(u32) -> u64) -> Result<Self, PatternError> {
        params.check_blocks()?;
        let rounds = rounds(params.ranks);
        let bytes = (0..rounds).map(|round| blocks(round) * params.bytes);
        let shapes = bytes.flat_map(|bytes| [Shape::send(bytes, 0), Shape::recv(bytes, 0)]).collect();
        Ok(Self { ranks: params.ranks, rounds, down, shapes })
    }
}

impl Pattern for Bruck {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        self.rounds
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let (above, below) = (ahead(rank, 1 << step, self.ranks), behind(rank, 1 << step, self.ranks));
        let (to, from) = if self.down { (below, above) } else { (above, below) };
        ops.exchange(to, 2 * step, from, 2 * step + 1);
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        let distance = if self.down { self.ranks - (1 << step) } else { 1 << step };
        Some(UniformStep::Exchange { peers: Peers::Ahead(distance), sent: 2 * step, received: 2 * step + 1 })
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let sends = u64::from(self.ranks) * u64::from(self.rounds);
        Some((2 * sends, sends))
    }
}
