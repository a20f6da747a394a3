//! The join of one interval's rows. Each row is dropped as soon as no detour can need it.

use std::collections::VecDeque;
use std::path::PathBuf;

use quell_recording::{
    Cpu, Detour, Interval, Intervals, Manifest, Method, Nanos, Recording, Source, Span, State, Trace,
};

use crate::attribution::{Blame, blames};

/// Maximum offset between the clocks of probe and kernel.
const SLACK: Nanos = Nanos::from_nanos(2_000);
/// Maximum number of intervals that wait on one CPU for their detour; older ones are dropped.
pub(super) const MOST_WAITING: usize = 1 << 16;

/// Rows on one CPU that are not joined yet.
#[derive(Debug, Default)]
struct Waiting {
    detours: Vec<Detour>,
    /// As they arrived, nearly in order of their end.
    intervals: VecDeque<Interval>,
    /// Time up to which detours have arrived.
    joined: Nanos,
}

/// Rows of all CPUs that are not joined yet.
#[derive(Debug)]
pub(super) struct Joiner {
    cpus: Vec<Cpu>,
    waiting: Vec<Waiting>,
}

impl Joiner {
    pub fn new(cpus: &[Cpu]) -> Self {
        Self { cpus: cpus.to_vec(), waiting: cpus.iter().map(|_| Waiting::default()).collect() }
    }

    pub fn detour(&mut self, index: usize, detour: Detour) {
        self.waiting[index].detours.push(detour);
    }

    pub fn interval(&mut self, index: usize, interval: Interval) {
        let intervals = &mut self.waiting[index].intervals;
        if intervals.len() >= MOST_WAITING {
            intervals.pop_front();
        }
        intervals.push_back(interval);
    }

    /// Number of detours that wait.
    pub fn detours(&self) -> usize {
        self.waiting.iter().map(|one| one.detours.len()).sum()
    }

    /// Attributes all detours that have arrived, and passes the index of each CPU with its blames and intervals to `each`.
    ///
    /// Intervals after a CPU's last detour keep waiting, because they may lie in a detour that has not ended.
    pub fn join(&mut self, mut each: impl FnMut(usize, &[Blame], &[Interval])) {
        let recording = self.recording();
        for (index, (_, blames)) in blames(&recording).into_iter().enumerate() {
            each(index, &blames, &recording.intervals[index].intervals);
        }
        for (waiting, trace) in self.waiting.iter_mut().zip(recording.traces) {
            let Some(last) = trace.detours.last() else { continue };
            waiting.joined = last.end();
            // The stolen time of a window was distributed to its detours, and must not be distributed again.
            let waits = |one: &Interval| one.source != Source::Steal && one.end() + SLACK > last.end();
            waiting.intervals.retain(waits);
        }
    }

    /// Makes a small recording of the waiting rows. Removes the detours.
    fn recording(&mut self) -> Recording {
        let mut manifest = Manifest::new(Method::Detour, State::Complete);
        manifest.sources = Some(Default::default());
        let (mut traces, mut all) = (Vec::new(), Vec::new());
        for (&cpu, waiting) in self.cpus.iter().zip(&mut self.waiting) {
            let mut intervals: Vec<Interval> = waiting.intervals.iter().cloned().collect();
            intervals.sort_by_key(|one| one.start);
            let detours = std::mem::take(&mut waiting.detours);
            let end = detours.last().map_or(waiting.joined, Detour::end);
            traces.push(Trace { cpu, span: Span { start: waiting.joined, end }, detours });
            all.push(Intervals { cpu, intervals });
        }
        let path = PathBuf::new();
        let (quanta, threads, histograms) = (Vec::new(), Vec::new(), Vec::new());
        Recording { path, manifest, traces, quanta, intervals: all, threads, histograms }
    }
}
