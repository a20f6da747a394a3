//! Pure simulation: what a trace of detours does to a program that runs under it.
//!
//! A [`ProgressClock`] turns one CPU's trace into useful time and back; everything that delays work goes through
//! it. A [`Program`] is the bulk-synchronous program of De et al. on any number of ranks. A [`Model`] makes
//! traces from a description where there is no recording. No operating system, no wall clock, no global random
//! state: equal inputs and seed give equal bits, on any number of threads.

mod bsp;
mod clock;
mod draws;
pub mod goal;
pub mod loggops;
mod model;
pub mod pattern;
mod sorted;

pub use bsp::{BspError, DelayedPhase, Job, MAX_RANKS, Node, Place, Places, Program, Run, SyncMode};
pub use clock::{ClockError, ProgressClock};
pub use draws::Draws;
pub use model::{MAX_DETOURS, Model, ModelError};
