//! A pattern as a schedule.

use std::convert::Infallible;

use super::{Pattern, Steps, UnrollTo, unroll};
use crate::goal::{BuildError, Schedule, ScheduleBuilder};
use crate::loggops::{Program, Shape};

impl UnrollTo for ScheduleBuilder {
    type Error = Infallible;

    fn begin_rank(&mut self, _: u32) -> Result<(), Infallible> {
        self.begin_rank();
        Ok(())
    }

    fn op(&mut self, shape: &Shape, peer: u32) -> Result<(), Infallible> {
        self.op(*shape, peer);
        Ok(())
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), Infallible> {
        self.requires(op, on);
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        self.end_rank();
        Ok(())
    }
}

/// All operations of all iterations of a pattern, as a GOAL schedule in memory.
///
/// # Errors
/// For a pattern without operations, such as a collective of one rank, and for more operations than a rank can have.
pub fn schedule<P: Pattern>(steps: &Steps<P>) -> Result<Schedule, BuildError> {
    let mut builder = ScheduleBuilder::new(steps.ranks());
    let Ok(()) = unroll(steps, &mut builder);
    builder.finish()
}
