//! Allreduce by recursive doubling.

use super::fold::{Fold, Role, Round};
use super::{Params, Pattern, Peers, StepOps, UniformStep};
use crate::loggops::Shape;

const SEND: u32 = 0;
const RECV: u32 = 1;
const REDUCE: u32 = 2;

/// Allreduce by recursive doubling (Thakur, Rabenseifner & Gropp 2005, §4.5): in round k ranks whose numbers differ in
/// bit k exchange and combine all `bytes`. For numbers of ranks that are not powers of two see [`Fold`].
#[derive(Clone, Debug)]
pub(super) struct RecursiveDoubling {
    ranks: u32,
    fold: Fold,
    /// 1 if each round has a second step of local reduction.
    reduces: u32,
    shapes: [Shape; 3],
}

impl RecursiveDoubling {
    /// A vector of `bytes`.
    pub(super) fn new(params: &Params) -> Self {
        let work = params.reduce_per_byte.time(params.bytes);
        let shapes = [Shape::send(params.bytes, 0), Shape::recv(params.bytes, 0), Shape::calc(work)];
        let (fold, reduces) = (Fold::new(params.ranks), u32::from(work > 0));
        Self { ranks: params.ranks, fold, reduces, shapes }
    }
}

impl Pattern for RecursiveDoubling {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        self.fold.with_ends(self.fold.rounds) << self.reduces
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let round = self.fold.round(step >> self.reduces, self.fold.rounds);
        let combines = step & self.reduces != 0;
        match (self.fold.role(rank), round) {
            (Role::In { .. }, Round::Inside(_)) if combines => ops.calc(REDUCE),
            (Role::In { number, .. }, Round::Inside(k)) => {
                let partner = self.fold.rank(number ^ (1 << k));
                ops.exchange(partner, SEND, partner, RECV);
            }
            (role, round) => role.at_end(round, combines, [SEND, RECV, REDUCE], ops),
        }
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        // With a rest, ranks before and after the rounds do different things.
        (self.fold.rest == 0).then_some(match step & self.reduces {
            0 => UniformStep::Exchange {
                peers: Peers::Xor(1 << (step >> self.reduces)),
                sent: SEND,
                received: RECV,
            },
            _ => UniformStep::Calc(REDUCE),
        })
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let rest = u64::from(self.fold.rest);
        let exchanged = u64::from(self.fold.inside()) * u64::from(self.fold.rounds);
        let sends = exchanged + 2 * rest;
        Some((2 * sends + u64::from(self.reduces) * (exchanged + rest), sends))
    }
}
