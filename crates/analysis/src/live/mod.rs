//! Noise while it happens: rows in, one [`Frame`] an interval out, with bounded memory over any time.
//!
//! The join is that of [`crate::attribution`], over the rows of each interval alone.

mod counters;
mod document;
mod gather;
mod join;
mod openmetrics;
mod table;
#[cfg(test)]
mod tests;
mod whole;

pub use counters::Counters;
pub use document::{CpuNow, Culprit, Figures, Frame, LongestDetour, Overhead, SourceNow};
pub use gather::Gatherer;
pub use openmetrics::{CONTENT_TYPE, openmetrics};
