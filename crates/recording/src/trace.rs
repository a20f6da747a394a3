//! The noise of a CPU as the program on it saw it: detours, and quanta of fixed work or fixed time.

use crate::{Cpu, Nanos};

/// One interval in which a CPU was taken from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// When it began, relative to the zero of its recording.
    pub start: Nanos,
    /// How long the program had to wait: the gap between two clock readings, less the probe's own loop.
    pub duration: Nanos,
    /// Whether quell's own writing caused it. Such a detour stays in the file, but is excluded from all statistics
    /// and predictions.
    pub own: bool,
}

impl Detour {
    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}

/// The time in which a CPU was observed, relative to the zero of its recording.
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

/// The detours of one CPU in order of their start, and the time in which it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The CPU.
    pub cpu: Cpu,
    /// The time of its observation.
    pub span: Span,
    /// Its detours, ordered by start; none overlaps the next, all lie within the span.
    pub detours: Vec<Detour>,
}

impl Trace {
    /// The detours that are noise: all but quell's own.
    pub fn noise(&self) -> impl Iterator<Item = &Detour> {
        self.detours.iter().filter(|detour| !detour.own)
    }

    /// The time in which noise could be observed: the span less the time that quell itself took.
    pub fn observed(&self) -> Nanos {
        let own = self.detours.iter().filter(|d| d.own).fold(Nanos::ZERO, |sum, d| sum + d.duration);
        self.span.length() - own
    }
}

/// One quantum of the FWQ, FTQ or memory probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantum {
    /// When it began, relative to the zero of its recording.
    pub start: Nanos,
    /// Its duration, which varies in FWQ.
    pub duration: Nanos,
    /// Units of work done in it, which vary in FTQ; of the memory probe the number of the level in the manifest.
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
