//! What a CPU suffered, as the program on it saw it: detours, and quanta of fixed work or fixed time.

use crate::{Cpu, Nanos};

/// One interval in which a CPU was taken from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// When it began, counted from the zero of its recording.
    pub start: Nanos,
    /// How long the program had to wait: the gap between two clock readings, less the probe's own loop.
    pub duration: Nanos,
    /// Whether quell's own writing caused it. Such a detour is kept in the file, and out of every statistic
    /// and prediction.
    pub own: bool,
}

impl Detour {
    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}

/// The stretch of time in which a CPU was observed, counted from the zero of its recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First instant observed.
    pub start: Nanos,
    /// Last instant observed.
    pub end: Nanos,
}

impl Span {
    /// How long the CPU was observed.
    pub fn length(&self) -> Nanos {
        self.end - self.start
    }
}

/// The detours of one CPU in order of their start, and the time in which they were looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The CPU.
    pub cpu: Cpu,
    /// When it was observed.
    pub span: Span,
    /// Its detours, ordered by start; none overlaps the next, all lie within the span.
    pub detours: Vec<Detour>,
}

impl Trace {
    /// The detours that are noise: all but quell's own.
    pub fn noise(&self) -> impl Iterator<Item = &Detour> {
        self.detours.iter().filter(|detour| !detour.own)
    }

    /// The time in which noise could be seen: the span, less what quell itself took.
    pub fn observed(&self) -> Nanos {
        let own = self.detours.iter().filter(|d| d.own).fold(Nanos::ZERO, |sum, d| sum + d.duration);
        self.span.length() - own
    }
}

/// One quantum of the FWQ or FTQ probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantum {
    /// When it began, counted from the zero of its recording.
    pub start: Nanos,
    /// How long it took: what varies in FWQ.
    pub duration: Nanos,
    /// Units of work done in it: what varies in FTQ.
    pub work: u64,
}

/// The quanta of one CPU in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quanta {
    /// The CPU.
    pub cpu: Cpu,
    /// Its quanta, ordered by start.
    pub quanta: Vec<Quantum>,
}
