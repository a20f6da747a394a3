//! Prefix reduction.

use super::dissemination::rounds;
use super::{Params, Pattern, StepOps};
use crate::loggops::Shape;

const SEND: u32 = 0;
const RECV: u32 = 1;
const REDUCE: u32 = 2;

/// Scan by recursive doubling, as MPICH's: in round k ranks whose numbers differ in bit k exchange what they have
/// combined; a rank without a partner skips the round. Works for any number of ranks, in ⌈log₂ P⌉ rounds.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    ranks: u32,
    rounds: u32,
    /// 1 if each round has a second step of local reduction.
    reduces: u32,
    shapes: [Shape; 3],
}

impl Scan {
    /// A vector of `bytes`.
    pub(super) fn new(params: &Params) -> Self {
        let work = params.reduce_per_byte.time(params.bytes);
        let shapes = [Shape::send(params.bytes, 0), Shape::recv(params.bytes, 0), Shape::calc(work)];
        Self { ranks: params.ranks, rounds: rounds(params.ranks), reduces: u32::from(work > 0), shapes }
    }
}

impl Pattern for Scan {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        self.rounds << self.reduces
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let partner = rank ^ (1 << (step >> self.reduces));
        if partner >= self.ranks {
            return;
        }
        if step & self.reduces != 0 {
            ops.calc(REDUCE);
        } else {
            ops.exchange(partner, SEND, partner, RECV);
        }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let ranks = u64::from(self.ranks);
        let in_round = |round: u32| {
            let (bit, period) = (1 << round, 2 << round);
            // Pairs in full groups of 2ᵏ⁺¹ ranks, and the complete pairs of the last group.
            2 * (ranks / period * bit + (ranks % period).saturating_sub(bit))
        };
        let sends = (0..self.rounds).map(in_round).sum::<u64>();
        Some((sends * (2 + u64::from(self.reduces)), sends))
    }
}
