//! A step of data-parallel training.

use super::ops::Part;
use super::ring::Ring;
use super::{Params, Pattern, PatternError, StepOps};
use crate::loggops::Shape;

const COMPUTE: u32 = 0;
const COMMUNICATE: u32 = 1;

const FORWARD: u32 = 0;
const BACKWARD: u32 = 1;
const OPTIMIZER: u32 = 2;
/// Index of the first shape of the two rings.
const LARGER: u32 = 3;

/// A step of synchronous data-parallel training, with gradients in buckets that are reduced while the backward pass still
/// runs (Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", 2020, §3.2). CPU 0 does the
/// forward pass, the backward pass bucket by bucket and, when all is reduced, the optimizer's step. CPU 1 reduces each bucket
/// by a ring allreduce, in order, as soon as its gradients are ready.
#[derive(Clone, Debug)]
pub(super) struct Training {
    buckets: u32,
    /// Number of buckets that are one byte larger than the others; they come first.
    larger: u32,
    /// The allreduce of a bucket that is one byte larger, and that of the others.
    rings: [Ring; 2],
    works: [bool; 3],
    shapes: Vec<Shape>,
}

impl Training {
    /// Gradients of `bytes` in `buckets`. A third of `work_ns` is the forward pass and the rest the backward pass in equal
    /// parts, because a backward pass usually takes twice as long.
    pub(super) fn new(params: &Params) -> Result<Self, PatternError> {
        let buckets = u64::from(params.buckets);
        let (bytes, larger) = (params.bytes / buckets, (params.bytes % buckets) as u32);
        let rings =
            [bytes + 1, bytes].map(|bytes| Ring::allreduce(&Params { bytes, ..params.clone() }).on_cpu(1));
        let steps = buckets * u64::from(rings[0].steps(0, 0));
        if steps > u64::from(u32::MAX) {
            let instead = "fewer buckets or ranks";
            return Err(PatternError::Steps { pattern: "training-step", steps, instead });
        }
        let forward = params.work_ns / 3;
        let backward = (params.work_ns - forward) / buckets;
        let work = [forward, backward, params.optimizer_ns];
        let shapes = [&work.map(Shape::calc), rings[0].shapes(), rings[1].shapes()].concat();
        Ok(Self { buckets: params.buckets, larger, rings, works: work.map(|ns| ns > 0), shapes })
    }

    /// Number of steps of the allreduce of a bucket.
    #[inline]
    fn bucket_bytes(&self) -> u32 {
        self.rings[0].steps(0, 0)
    }

    fn compute(&self, step: u32, ops: &mut StepOps<'_>) {
        let work = match step {
            0 => FORWARD,
            _ if step <= self.buckets => BACKWARD,
            _ => OPTIMIZER,
        };
        if work == OPTIMIZER
            && let Some(last) = (self.buckets * self.bucket_bytes()).checked_sub(1)
        {
            ops.after(COMMUNICATE, last);
        }
        if self.works[work as usize] {
            ops.calc(work);
        }
    }

    fn communicate(&self, rank: u32, step: u32, ops: &mut StepOps<'_>) {
        let (bucket, step) = (step / self.bucket_bytes(), step % self.bucket_bytes());
        if step == 0 {
            ops.after(COMPUTE, bucket + 1);
        }
        let smaller = bucket >= self.larger;
        let ring = &self.rings[usize::from(smaller)];
        let first_shape = LARGER + if smaller { ring.shapes().len() as u32 } else { 0 };
        ops.within(Part::shapes_from(first_shape), |ops| ring.step(rank, 0, step, ops));
    }
}

impl Pattern for Training {
    fn ranks(&self) -> u32 {
        self.rings[0].ranks()
    }

    fn cpus(&self) -> u32 {
        2
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    fn lanes(&self) -> u32 {
        2
    }

    #[inline]
    fn steps(&self, _: u32, lane: u32) -> u32 {
        if lane == COMPUTE { self.buckets + 2 } else { self.buckets * self.bucket_bytes() }
    }

    #[inline]
    fn step(&self, rank: u32, lane: u32, step: u32, ops: &mut StepOps<'_>) {
        if lane == COMPUTE { self.compute(step, ops) } else { self.communicate(rank, step, ops) }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let (operations, sends) = self.rings[0].totals()?;
        let buckets = u64::from(self.buckets);
        let [forward, backward, optimizer] = self.works.map(u64::from);
        let works = u64::from(self.ranks()) * (forward + backward * buckets + optimizer);
        Some((operations.checked_mul(buckets)?.checked_add(works)?, sends.checked_mul(buckets)?))
    }
}
