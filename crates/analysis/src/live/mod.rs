//! Noise while it happens: rows in, one [`Frame`] an interval out, with bounded memory over any time.
//!
//! The join is that of [`crate::attribution`], over the rows of each interval alone.

mod document;
mod gather;
mod join;
mod table;
#[cfg(test)]
mod tests;

pub use document::{CpuNow, Culprit, Figures, Frame, LongestDetour, Overhead, SourceNow};
pub use gather::Gatherer;
