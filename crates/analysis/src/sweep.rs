//! Sweeps: the points of a plan's axes, cut into chunks that depend on nothing but the plan.
//!
//! A plan is a TOML file of axes. Their cartesian product is the list of points, less what has no effect: the bytes of a
//! message where there are no messages make no points of their own. Which axes there are, and what has an effect where, is the verb's
//! affair ([`Form`]); this module reads, multiplies and counts. Nothing here computes a point.

mod axis;
mod points;
mod read;

pub use axis::{Axis, AxisKind, Form, Known, Paths, Sets, Value, Word};
pub use points::{Plan, Point, Unit};
pub use read::SweepError;

/// The most points that a plan may have.
pub const MOST_POINTS: u64 = 10_000_000;
/// The most values of one axis.
pub const MOST_VALUES: usize = 100_000;
/// The longest text of a plan, in bytes.
pub const MOST_BYTES: usize = 8 << 20;
/// So many files a dataset has at most; larger plans have more points in each.
const MOST_CHUNKS: u64 = 8_192;

#[cfg(test)]
mod tests;
