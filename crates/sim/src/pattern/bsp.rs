//! Bulk-synchronous loops: work, then a collective.

use super::ops::Part;
use super::{AnyPattern, Params, Pattern, PatternError, StepOps, UniformStep};
use crate::loggops::Shape;

/// Work on every rank, then another pattern: a superstep of the bulk-synchronous model (Valiant, "A bridging model for
/// parallel computation", 1990).
#[derive(Clone, Debug)]
pub(super) struct Bsp {
    inner: Box<AnyPattern>,
    work: bool,
    shapes: Vec<Shape>,
}

impl Bsp {
    /// Work of `work_ns`, then `inner`.
    pub(super) fn new(params: &Params, inner: AnyPattern) -> Result<Self, PatternError> {
        if inner.lanes() > 1 {
            let (outer, inner) = ("bsp", params.inner.clone().unwrap_or_default());
            return Err(PatternError::Inner { outer, inner, instead: "a collective or a halo exchange" });
        }
        let shapes = [&[Shape::calc(params.work_ns)], inner.shapes()].concat();
        Ok(Self { inner: Box::new(inner), work: params.work_ns > 0, shapes })
    }
}

impl Pattern for Bsp {
    fn ranks(&self) -> u32 {
        self.inner.ranks()
    }

    fn cpus(&self) -> u32 {
        self.inner.cpus()
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, rank: u32, _: u32) -> u32 {
        1 + self.inner.steps(rank, 0)
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        if step > 0 {
            ops.within(Part::shapes_from(1), |ops| self.inner.step(rank, 0, step - 1, ops));
        } else if self.work {
            ops.calc(0);
        }
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        let Some(step) = step.checked_sub(1) else {
            return Some(if self.work { UniformStep::Calc(0) } else { UniformStep::Idle });
        };
        Some(match self.inner.uniform_step(step)? {
            UniformStep::Idle => UniformStep::Idle,
            UniformStep::Calc(shape) => UniformStep::Calc(shape + 1),
            UniformStep::Exchange { peers, sent, received } => {
                UniformStep::Exchange { peers, sent: sent + 1, received: received + 1 }
            }
        })
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let (operations, sends) = self.inner.totals()?;
        Some((operations.checked_add(u64::from(self.work) * u64::from(self.ranks()))?, sends))
    }
}
