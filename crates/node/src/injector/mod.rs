//! Noise for programs: from traces to a schedule that quell-replay burns, and what came of it.

pub mod calibrate;
pub mod compile;
pub mod job;
pub mod preload;
pub mod process;
pub mod reports;
pub mod schedule;
