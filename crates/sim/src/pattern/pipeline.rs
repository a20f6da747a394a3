//! A broadcast along a ring, in segments.

use super::dissemination::{ahead, behind};
use super::params::within;
use super::{Params, Pattern, PatternError, StepOps};
use crate::loggops::Shape;

/// Shapes of a full segment, and of the last one, which may be shorter.
const SEND: u32 = 0;
const RECV: u32 = 2;

/// Maximum number of segments of a message.
const MAX_SEGMENTS: u64 = 1 << 24;

/// The pipelined ring: the root sends a message in segments to the rank after it, and each rank forwards a segment
/// while it receives the next; the last rank before the root only receives.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    ranks: u32,
    root: u32,
    segments: u32,
    shapes: [Shape; 4],
}

impl Pipeline {
    /// A message of `bytes`, in segments of `segment_bytes`.
    pub(super) fn new(params: &Params) -> Result<Self, PatternError> {
        let segment = params.segment_bytes;
        let segments = params.bytes.div_ceil(segment).max(1);
        if segments > MAX_SEGMENTS {
            let least = params.bytes.div_ceil(MAX_SEGMENTS);
            within("segment bytes", segment, least, super::MAX_BYTES)?;
        }
        let last = params.bytes - (segments - 1) * segment;
        let [send, recv] =
            [Shape::send, Shape::recv].map(|shape| [segment, last].map(|bytes| shape(bytes, 0)));
        let shapes = [send[0], send[1], recv[0], recv[1]];
        Ok(Self { ranks: params.ranks, root: params.root, segments: segments as u32, shapes })
    }

    /// Which of the two shapes a segment has.
    #[inline]
    fn kind(&self, segment: u32) -> u32 {
        u32::from(segment + 1 == self.segments)
    }
}

impl Pattern for Pipeline {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        if self.ranks > 1 { self.segments + 1 } else { 0 }
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let place = behind(rank, self.root, self.ranks);
        if step > 0 && place + 1 < self.ranks {
            ops.send(ahead(rank, 1, self.ranks), SEND + self.kind(step - 1));
        }
        if step < self.segments && place > 0 {
            ops.recv(behind(rank, 1, self.ranks), RECV + self.kind(step));
        }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let sends = u64::from(self.ranks - 1) * u64::from(self.segments);
        Some((2 * sends, sends))
    }
}
