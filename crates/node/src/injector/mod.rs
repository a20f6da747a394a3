//! Noise for programs: from traces to a schedule that quell-replay burns, and what came of it; and quell's own phases under noise.

pub mod calibrate;
pub mod compile;
pub mod job;
mod median;
pub mod phases;
pub mod preload;
pub mod process;
pub mod reports;
pub mod schedule;
