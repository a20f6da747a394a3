//! Progress of long computations, and how to stop them.

use std::ops::ControlFlow;

/// Called with the work that is done and the total, from any thread. It may stop the computation, which ends within some tenths of a second.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// Ignores the progress and never stops.
pub const NO_PROGRESS: Progress<'static> = &|_, _| ControlFlow::Continue(());

/// The progress callback stopped the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was stopped before its end")]
pub struct Stopped;
