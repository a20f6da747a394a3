//! Sweeps: the points of a plan's axes, cut into chunks that depend only on the plan.
//!
//! A plan is a TOML file of axes. Its points are their cartesian product, without those that differ only in axes without effect: the bytes
//! of a message make no points where there are no messages. The verb defines the axes, and which of them has an effect where
//! ([`SweepSpec`]); this module reads, multiplies and counts. Nothing here computes a point.

mod axis;
mod points;
mod read;

pub use axis::{Axis, AxisKind, Known, Paths, Sets, SweepSpec, SweepValue, Value};
pub use points::{Plan, Point, Unit};
pub use read::SweepError;

/// Maximum number of points of a plan.
pub const MOST_POINTS: u64 = 10_000_000;
/// Maximum number of values of one axis.
pub const MOST_VALUES: usize = 100_000;
/// Maximum length of a plan's text, in bytes.
pub const MOST_BYTES: usize = 8 << 20;
/// Maximum number of files of a dataset; larger plans have more points in each.
const MOST_CHUNKS: u64 = 8_192;

#[cfg(test)]
mod tests;
