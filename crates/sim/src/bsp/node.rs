//! One kind of node: its CPUs' clocks, and for one quantum the starts at which it is slowest.

use quell_recording::{Nanos, Span, Trace};

use super::BspError;
use crate::clock::{ProgressClock, WorstStart};
use crate::sorted::Sorted;

/// The slowest rank of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slowest {
    /// How much longer than the quantum it takes, in nanoseconds.
    pub(super) delay: u64,
    /// Index of its CPU on its node.
    pub(super) cpu: usize,
    /// Where in the trace it begins, in nanoseconds.
    pub(super) at: u64,
}

impl Slowest {
    /// The slower of two; of equals the first.
    pub(super) fn or(self, other: Self) -> Self {
        if other.delay > self.delay { other } else { self }
    }
}

/// The clocks of one node's CPUs, on one timeline.
#[derive(Clone, Debug)]
pub struct Node {
    clocks: Vec<ProgressClock>,
}

impl Node {
    /// A node from traces that were recorded on it together, one per CPU.
    ///
    /// All clocks run over the time in which every CPU was observed, the intersection of the spans, so that
    /// detours that struck several CPUs at once still coincide.
    ///
    /// # Errors
    /// For no traces, for spans that do not intersect, and for a trace that does not make a clock.
    pub fn new(traces: &[Trace]) -> Result<Self, BspError> {
        let span = Self::shared_span(traces)?;
        let clocks = traces.iter().map(|trace| ProgressClock::over(trace, span)).collect::<Result<_, _>>()?;
        Ok(Self { clocks })
    }

    /// The clocks, CPU by CPU in the order of the traces.
    pub fn clocks(&self) -> &[ProgressClock] {
        &self.clocks
    }

    /// The time in which every one of the traces was observed.
    ///
    /// # Errors
    /// For no traces, and for spans that do not intersect.
    pub fn shared_span(traces: &[Trace]) -> Result<Span, BspError> {
        let start = traces.iter().map(|trace| trace.span.start).max().ok_or(BspError::NoTrace)?;
        let end = traces.iter().map(|trace| trace.span.end).min().ok_or(BspError::NoTrace)?;
        let apart = start >= end && traces.iter().all(|trace| trace.span.length() > Nanos::ZERO);
        if apart { Err(BspError::Apart) } else { Ok(Span { start, end }) }
    }
}

/// A range of starts whose work ends within the same set of detours.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartRange {
    /// The delay of its first start, in nanoseconds. No other start in it has a longer one.
    pub(super) peak: u64,
    pub(super) first: u64,
    pub(super) length: u64,
    pub(super) cpu: u32,
}

/// Number of the worst ranges that are kept in order: a job that needs more is too small to profit from them.
/// Tests keep few, to cover the case that they run out.
const MOST_RANGES: usize = if cfg!(test) { 100 } else { 1 << 12 };

/// How long one quantum takes on a node, from any start.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub(super) clocks: Vec<ProgressClock>,
    pub(super) quantum: u64,
    /// Per CPU, the starts at which the delay grows.
    pub(super) worst_starts: Vec<Sorted>,
    /// The worst ranges of all CPUs, worst first.
    pub(super) ranges: Vec<StartRange>,
    /// No range that `ranges` omits has a higher peak.
    pub(super) rest_peak: u64,
}

impl Pace {
    pub(super) fn new(node: Node, quantum: u64) -> Self {
        let clocks = node.clocks;
        let mut ranges: Vec<StartRange> = Vec::new();
        let mut of_clock = |(cpu, clock): (usize, &ProgressClock)| {
            let worst = clock.worst_starts(quantum);
            ranges.extend(ranges_between(cpu as u32, clock.period(), &worst));
            Sorted::new(worst.iter().map(|worst| worst.start).collect())
        };
        let worst_starts = clocks.iter().enumerate().map(&mut of_clock).collect();
        let rest_peak = keep_worst(&mut ranges);
        Self { clocks, quantum, worst_starts, ranges, rest_peak }
    }

    /// CPUs per node.
    pub(super) fn cpus(&self) -> usize {
        self.clocks.len()
    }

    /// Length of the traces, after which they repeat, in nanoseconds.
    pub(super) fn period(&self) -> u64 {
        self.clocks[0].period()
    }

    /// The slowest of the first `cpus` CPUs, all starting at `at`.
    pub(super) fn slowest(&self, at: u64, cpus: usize) -> Slowest {
        (0..cpus).map(|cpu| self.slowness(cpu, at)).fold(Slowest::default(), Slowest::or)
    }

    /// The delay of one CPU that starts at `at`.
    pub(super) fn slowness(&self, cpu: usize, at: u64) -> Slowest {
        Slowest { delay: self.clocks[cpu].delay(at, self.quantum), cpu, at }
    }
}

/// Each range runs from one worst start to the next; the last wraps around to the first.
fn ranges_between(cpu: u32, period: u64, worst: &[WorstStart]) -> impl Iterator<Item = StartRange> {
    let wrapped = worst.first().map(|first| first.start + period);
    let next = worst.iter().map(|worst| worst.start).skip(1).chain(wrapped);
    let range = move |(worst, next): (&WorstStart, u64)| StartRange {
        peak: worst.delay,
        first: worst.start,
        length: next - worst.start,
        cpu,
    };
    worst.iter().zip(next).map(range)
}

/// Sorts the worst ranges to the front, drops the rest and returns their highest peak.
fn keep_worst(ranges: &mut Vec<StartRange>) -> u64 {
    let worst_first = |s: &StartRange| (std::cmp::Reverse(s.peak), s.cpu, s.first);
    let mut rest_peak = 0;
    if ranges.len() > MOST_RANGES {
        let (_, best_of_rest, _) = ranges.select_nth_unstable_by_key(MOST_RANGES, worst_first);
        rest_peak = best_of_rest.peak;
        ranges.truncate(MOST_RANGES);
        ranges.shrink_to_fit();
    }
    ranges.sort_unstable_by_key(worst_first);
    rest_peak
}
