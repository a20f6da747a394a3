//! How far long work is, and stopping it.

use std::ops::ControlFlow;

/// Is told how much of how much is done, from any thread, and may stop the work: within some tenths of a second nothing more is done.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// Looks at nothing and stops nothing.
pub const GO_ON: Progress<'static> = &|_, _| ControlFlow::Continue(());

/// The work was stopped by who looked at its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was stopped before its end")]
pub struct Stopped;
