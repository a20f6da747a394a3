//! Alltoall by pairwise exchange.

use super::dissemination::{ahead, behind};
use super::{Params, Pattern, Peers, StepOps, UniformStep};
use crate::loggops::Shape;

const SEND: u32 = 0;
const RECV: u32 = 1;

/// Alltoall in P − 1 rounds (Thakur, Rabenseifner & Gropp 2005, §4). If the number of ranks is a power of two, each rank
/// exchanges blocks in round i with the rank whose number is its own XOR i; otherwise it sends to the one
/// i after it and receives from the one i before.
#[derive(Clone, Debug)]
pub(super) struct Pairwise {
    ranks: u32,
    shapes: [Shape; 2],
}

impl Pairwise {
    /// Each rank has a block of `bytes` for each other.
    pub(super) fn new(params: &Params) -> Self {
        Self { ranks: params.ranks, shapes: [Shape::send(params.bytes, 0), Shape::recv(params.bytes, 0)] }
    }
}

impl Pattern for Pairwise {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        self.ranks - 1
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let distance = step + 1;
        let (to, from) = if self.ranks.is_power_of_two() {
            (rank ^ distance, rank ^ distance)
        } else {
            (ahead(rank, distance, self.ranks), behind(rank, distance, self.ranks))
        };
        ops.exchange(to, SEND, from, RECV);
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        let distance = step + 1;
        let both = self.ranks.is_power_of_two();
        let peers = if both { Peers::Xor(distance) } else { Peers::Ahead(distance) };
        Some(UniformStep::Exchange { peers, sent: SEND, received: RECV })
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let sends = u64::from(self.ranks) * u64::from(self.ranks - 1);
        Some((2 * sends, sends))
    }
}
