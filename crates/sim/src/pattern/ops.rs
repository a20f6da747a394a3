//! Collects the operations of a step.

use crate::loggops::ReadyOp;

/// The operations of one step of a pattern.
#[derive(Debug)]
pub struct StepOps<'a> {
    free: &'a mut Vec<ReadyOp>,
    next: u32,
    ready: u64,
    after: Option<(u32, u32)>,
    part: Part,
}

/// Maps the numbers of an inner pattern to those of the whole: its rank r is `first_rank + r·stride`, its shape s is
/// `first_shape + s`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) first_rank: u32,
    pub(super) stride: u32,
    pub(super) first_shape: u32,
}

impl Part {
    /// All ranks keep their numbers.
    pub(super) const WHOLE: Self = Self { first_rank: 0, stride: 1, first_shape: 0 };

    /// All ranks keep their numbers, and the shapes begin at `first_shape`.
    pub(super) fn shapes_from(first_shape: u32) -> Self {
        Self { first_shape, ..Self::WHOLE }
    }
}

impl<'a> StepOps<'a> {
    /// Adds operations to `free`, numbered from `next` and ready at `ready`.
    #[inline]
    pub(super) fn new(free: &'a mut Vec<ReadyOp>, next: u32, ready: u64) -> Self {
        Self { free, next, ready, after: None, part: Part::WHOLE }
    }

    /// Sends a message of a shape to a rank.
    #[inline]
    pub fn send(&mut self, to: u32, shape: u32) {
        self.add(self.whole(to), shape);
    }

    /// Receives a message of a shape from a rank.
    #[inline]
    pub fn recv(&mut self, from: u32, shape: u32) {
        self.add(self.whole(from), shape);
    }

    /// Sends to one rank and receives from another, as [`send`](Self::send) and [`recv`](Self::recv) do.
    #[inline]
    pub fn exchange(&mut self, to: u32, sent: u32, from: u32, received: u32) {
        let send = self.operation(self.whole(to), sent);
        let recv = self.operation(self.whole(from), received);
        self.free.extend([send, recv]);
    }

    /// Works as the shape defines.
    #[inline]
    pub fn calc(&mut self, shape: u32) {
        self.add(0, shape);
    }

    /// Delays the step until a step of the other lane, in the same iteration, is done. Has no effect on a step without
    /// operations.
    #[inline]
    pub fn after(&mut self, lane: u32, step: u32) {
        self.after = Some((lane, step));
    }

    /// Adds the operations of an inner pattern.
    #[inline]
    pub(super) fn within(&mut self, part: Part, inner: impl FnOnce(&mut Self)) {
        let whole = self.part;
        self.part = Part {
            first_rank: self.whole(part.first_rank),
            stride: whole.stride * part.stride,
            first_shape: whole.first_shape + part.first_shape,
        };
        inner(self);
        self.part = whole;
    }

    /// The lane and step that this step comes after, if [`after`](Self::after) set them.
    #[inline]
    pub(super) fn held_by(&self) -> Option<(u32, u32)> {
        self.after
    }

    #[inline]
    fn whole(&self, rank: u32) -> u32 {
        self.part.first_rank + rank * self.part.stride
    }

    #[inline]
    fn add(&mut self, peer: u32, shape: u32) {
        let operation = self.operation(peer, shape);
        self.free.push(operation);
    }

    #[inline]
    fn operation(&mut self, peer: u32, shape: u32) -> ReadyOp {
        let op = self.next;
        // Lane 0 has the numbers below 2³¹, lane 1 those above; each wraps around within its half.
        self.next = (op & LANE) | (op.wrapping_add(1) & !LANE);
        ReadyOp { op, peer, shape: self.part.first_shape + shape, ready: self.ready }
    }
}

/// The bit of an operation's number that encodes its lane.
pub(super) const LANE: u32 = 1 << 31;
