//! Ranges of time on one CPU.

use quell_recording::{Detour, Interval};

/// A range of time, in ns of the recording; `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimeRange {
    pub start: u64,
    pub end: u64,
}

impl TimeRange {
    /// The range of an interval, including what interrupted it.
    pub fn from_interval(interval: &Interval) -> Self {
        Self { start: interval.start.as_nanos(), end: interval.end().as_nanos() }
    }

    /// The range of a detour.
    pub fn from_detour(detour: &Detour) -> Self {
        Self { start: detour.start.as_nanos(), end: detour.end().as_nanos() }
    }

    pub fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether both have an instant in common.
    pub fn meets(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Length of the intersection.
    pub fn overlap(self, other: Self) -> u64 {
        self.end.min(other.end).saturating_sub(self.start.max(other.start))
    }
}
