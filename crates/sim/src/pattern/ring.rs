//! Collectives on a ring: reduce-scatter, allgather, and allreduce as one followed by the other.

use super::dissemination::{ahead, behind};
use super::{Params, Pattern, Peers, StepOps, UniformStep};
use crate::loggops::Shape;

/// Shapes of a chunk that is one byte larger than the others, and of one that is not.
const SEND: u32 = 0;
const RECV: u32 = 2;
const REDUCE: u32 = 4;

/// Reduce-scatter and allgather on a ring (Thakur, Rabenseifner & Gropp 2005, §4; Patarasuk & Yuan, "Bandwidth
/// optimal all-reduce algorithms for clusters of workstations", 2009). In each of the P − 1 rounds of a phase every
/// rank sends a chunk to the next rank and receives one from the rank before. Works for any number of ranks; if `bytes` is
/// not divisible by it, the first chunks are one byte larger.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    ranks: u32,
    /// Number of rounds that combine, and of rounds that only forward.
    combining: u32,
    handing: u32,
    /// Number of chunks that are one byte larger.
    larger: u32,
    /// 1 if each round that combines has a second step of local reduction.
    reduces: u32,
    shapes: [Shape; 6],
}

impl Ring {
    /// Combines a vector of `bytes`, and leaves its r-th chunk on rank r.
    pub(super) fn reduce_scatter(params: &Params) -> Self {
        Self::for_vector(params, params.ranks - 1, 0)
    }

    /// Combines a vector of `bytes`, and leaves it on all ranks.
    pub(super) fn allreduce(params: &Params) -> Self {
        Self::for_vector(params, params.ranks - 1, params.ranks - 1)
    }

    /// Each rank has a block of `bytes` for all others.
    pub(super) fn allgather(params: &Params) -> Self {
        Self::new(params, 0, params.ranks - 1, [params.bytes; 2], 0)
    }

    /// The same messages on another CPU.
    pub(super) fn on_cpu(mut self, cpu: u8) -> Self {
        self.shapes = self.shapes.map(|shape| shape.on_cpu(cpu));
        self
    }

    fn for_vector(params: &Params, combining: u32, handing: u32) -> Self {
        let ranks = u64::from(params.ranks);
        let (chunk, larger) = (params.bytes / ranks, (params.bytes % ranks) as u32);
        Self::new(params, combining, handing, [chunk + 1, chunk], larger)
    }

    fn new(params: &Params, combining: u32, handing: u32, chunk: [u64; 2], larger: u32) -> Self {
        let [send, recv, reduce]: [fn(&Params, u64) -> Shape; 3] = [
            |_, bytes| Shape::send(bytes, 0),
            |_, bytes| Shape::recv(bytes, 0),
            |params, bytes| Shape::calc(params.reduce_per_byte.time(bytes)),
        ];
        let both = |shape: fn(&Params, u64) -> Shape| chunk.map(|bytes| shape(params, bytes));
        let [[a, b], [c, d], [e, f]] = [both(send), both(recv), both(reduce)];
        let reduces = u32::from(params.reduces());
        Self { ranks: params.ranks, combining, handing, larger, reduces, shapes: [a, b, c, d, e, f] }
    }

    /// Which of the two shapes a chunk has.
    #[inline]
    fn kind(&self, chunk: u32) -> u32 {
        u32::from(chunk >= self.larger)
    }
}

impl Pattern for Ring {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        (self.combining << self.reduces) + self.handing
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let combining = self.combining << self.reduces;
        // The chunk that a rank sends is this far behind its own number.
        let lag = if step < combining { (step >> self.reduces) + 1 } else { step - combining };
        let received = behind(rank, lag + 1, self.ranks);
        if step < combining && step & self.reduces != 0 {
            return ops.calc(REDUCE + self.kind(received));
        }
        let sent = behind(rank, lag, self.ranks);
        let (next, previous) = (ahead(rank, 1, self.ranks), behind(rank, 1, self.ranks));
        ops.exchange(next, SEND + self.kind(sent), previous, RECV + self.kind(received));
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        let combines = step < self.combining << self.reduces && step & self.reduces != 0;
        // Where some chunks are larger, ranks differ. Chunks of no rank or of all have one shape.
        let kind = self.kind(0);
        let exchange =
            UniformStep::Exchange { peers: Peers::Ahead(1), sent: SEND + kind, received: RECV + kind };
        (self.larger == 0).then_some(if combines { UniformStep::Calc(REDUCE + kind) } else { exchange })
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let ranks = u64::from(self.ranks);
        let sends = ranks * u64::from(self.combining + self.handing);
        let reduced = ranks * u64::from(self.combining) * u64::from(self.reduces);
        Some((2 * sends + reduced, sends))
    }
}
