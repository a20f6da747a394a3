//! Rabenseifner's allreduce.

use super::fold::{Fold, Role, Round};
use super::{Params, Pattern, Peers, StepOps, UniformStep};
use crate::loggops::Shape;

/// Shapes of a message of all bytes, followed by those of each round.
const SEND: u32 = 0;
const RECV: u32 = 1;
const REDUCE: u32 = 2;
const FIRST: u32 = 3;
const PER_ROUND: u32 = 9;
/// Number of sizes that each kind has within a round's shapes.
const SIZES: u32 = 3;

/// Rabenseifner's allreduce (Rabenseifner, "Optimization of collective reduction operations", 2004; Thakur, Rabenseifner
/// & Gropp 2005, §4.5): reduce-scatter by recursive halving, then allgather by recursive doubling. In round k of the
/// halving, ranks whose numbers differ in bit k exchange half of what they still combine; the doubling reverses the
/// halving. For numbers of ranks that are not powers of two see [`Fold`]. If `bytes` is not divisible by the power of two,
/// the first chunks are one byte larger.
#[derive(Clone, Debug)]
pub(super) struct Rabenseifner {
    ranks: u32,
    fold: Fold,
    /// Number of chunks that are one byte larger.
    larger: u32,
    /// 1 if each round that combines has a second step of local reduction.
    reduces: u32,
    shapes: Vec<Shape>,
}

impl Rabenseifner {
    /// A vector of `bytes`.
    pub(super) fn new(params: &Params) -> Self {
        let fold = Fold::new(params.ranks);
        let chunks = u64::from(fold.inside());
        let (chunk, larger) = (params.bytes / chunks, params.bytes % chunks);
        let kinds: [&dyn Fn(u64) -> Shape; 3] =
            [&|bytes| Shape::send(bytes, 0), &|bytes| Shape::recv(bytes, 0), &|bytes| {
                Shape::calc(params.reduce_per_byte.time(bytes))
            }];
        let mut shapes: Vec<Shape> = kinds.iter().map(|shape| shape(params.bytes)).collect();
        for round in 0..fold.rounds {
            let half = chunks >> (round + 1);
            let sizes = [half * (chunk + 1), half * chunk, half * chunk + larger % half];
            shapes.extend(kinds.iter().flat_map(|shape| sizes.map(shape)));
        }
        let (larger, reduces) = (larger as u32, u32::from(params.reduces()));
        Self { ranks: params.ranks, fold, larger, reduces, shapes }
    }

    /// Index of the size of the chunks that a rank keeps (`kept`) or hands away in a round of the halving.
    #[inline]
    fn size(&self, number: u32, round: u32, kept: bool) -> u32 {
        let half = self.fold.inside() >> (round + 1);
        // The bits of the number, from the lowest on, select the kept half, from the largest on.
        let own = number.reverse_bits() >> (u32::BITS - self.fold.rounds);
        let first = (own & !(half - 1)) ^ if kept { 0 } else { half };
        if first + half <= self.larger { 0 } else { 1 + u32::from(first < self.larger) }
    }

    /// What a rank that takes part does in a round.
    #[inline]
    fn inside(&self, number: u32, round: u32, combines: bool, ops: &mut StepOps<'_>) {
        let halving = round < self.fold.rounds;
        let bit = if halving { round } else { 2 * self.fold.rounds - 1 - round };
        let (kept, given) = (self.size(number, bit, true), self.size(number, bit, false));
        let shape = FIRST + bit * PER_ROUND;
        if combines {
            if halving {
                ops.calc(shape + REDUCE * SIZES + kept);
            }
            return;
        }
        let partner = self.fold.rank(number ^ (1 << bit));
        let (sent, received) = if halving { (given, kept) } else { (kept, given) };
        ops.exchange(partner, shape + SEND * SIZES + sent, partner, shape + RECV * SIZES + received);
    }
}

impl Pattern for Rabenseifner {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        self.fold.with_ends(2 * self.fold.rounds) << self.reduces
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let round = self.fold.round(step >> self.reduces, 2 * self.fold.rounds);
        let combines = step & self.reduces != 0;
        match (self.fold.role(rank), round) {
            (Role::In { number, .. }, Round::Inside(round)) => self.inside(number, round, combines, ops),
            (role, round) => role.at_end(round, combines, [SEND, RECV, REDUCE], ops),
        }
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        if self.fold.rest > 0 || self.larger > 0 {
            return None;
        }
        let (round, rounds) = (step >> self.reduces, self.fold.rounds);
        let bit = if round < rounds { round } else { 2 * rounds - 1 - round };
        // All chunks have the second of the three sizes.
        let shape = FIRST + bit * PER_ROUND + 1;
        Some(match step & self.reduces {
            0 => UniformStep::Exchange {
                peers: Peers::Xor(1 << bit),
                sent: shape + SEND * SIZES,
                received: shape + RECV * SIZES,
            },
            _ if round < rounds => UniformStep::Calc(shape + REDUCE * SIZES),
            _ => UniformStep::Idle,
        })
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let rest = u64::from(self.fold.rest);
        let combined = u64::from(self.fold.inside()) * u64::from(self.fold.rounds);
        let sends = 2 * combined + 2 * rest;
        Some((2 * sends + u64::from(self.reduces) * (combined + rest), sends))
    }
}
