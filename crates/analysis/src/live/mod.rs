//! Noise while it happens: rows go in, and one [`Frame`] per interval comes out, with bounded memory for any duration.
//!
//! The join is that of [`crate::attribution`], over the rows of one interval at a time.

mod counters;
mod document;
mod gather;
mod join;
mod openmetrics;
mod recorded;
mod table;
#[cfg(test)]
mod tests;

pub use counters::Counters;
pub use document::{CpuNow, Culprit, Figures, Frame, LongestDetour, Overhead, SourceNow};
pub use gather::Gatherer;
pub use openmetrics::{CONTENT_TYPE, openmetrics};
