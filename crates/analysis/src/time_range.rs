//! Ranges of time on one CPU, and how they are moved to see what chance gives.

use quell_recording::{Detour, Interval, Span};
use quell_sim::Draws;

/// Number of shifts by which the chance match is measured.
pub(crate) const SHIFTS: u64 = 8;

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

    /// Length of the intersection.
    pub fn overlap(self, other: Self) -> u64 {
        self.end.min(other.end).saturating_sub(self.start.max(other.start))
    }
}

/// Ranges, moved around the span by the `n`-th shift, in order of time. Multiples of the golden ratio spread the shifts over the span. A
/// random part is added, up to a sixteenth of the span: else all shifts of a period that divides the span by a Fibonacci number would move
/// ranges back to their original position.
pub(crate) fn shifted(busy: &[TimeRange], span: Span, n: u64) -> Vec<TimeRange> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let length = span.length().as_nanos();
    if length == 0 {
        return Vec::new();
    }
    let zero = span.start.as_nanos();
    let golden = ((n + 1) as f64 * GOLDEN).fract() * length as f64;
    let by = golden as u128 + u128::from(Draws::new(0, &[]).below(n, length / 16));
    let moved = busy.iter().map(|s| {
        let at = u128::from(s.start.saturating_sub(zero)) + by;
        let start = zero + (at % u128::from(length)) as u64;
        TimeRange { start, end: start.saturating_add(s.length()) }
    });
    let mut moved: Vec<TimeRange> = moved.collect();
    moved.sort();
    moved
}

#[cfg(test)]
mod tests {
    use quell_recording::Nanos;

    use super::*;

    fn time_range(start: u64, end: u64) -> TimeRange {
        TimeRange { start, end }
    }

    #[test]
    fn a_shift_keeps_lengths_and_order() {
        let span = Span { start: Nanos::from_nanos(1_000), end: Nanos::from_nanos(11_000) };
        let busy = [time_range(1_000, 1_100), time_range(6_000, 6_010), time_range(10_500, 10_700)];
        for n in 0..SHIFTS {
            let moved = shifted(&busy, span, n);
            assert!(moved.is_sorted() && moved.iter().all(|s| s.start >= 1_000 && s.start < 11_000));
            assert_eq!(moved.iter().map(|s| s.length()).sum::<u64>(), 310);
        }
        assert_eq!(shifted(&busy, Span::default(), 0), []);
    }

    #[test]
    fn no_number_of_periods_moves_ranges_back() {
        for periods in [100, 144, 610, 10_946, 28_657] {
            let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(periods * 1_000) };
            let busy: Vec<TimeRange> = (0..periods).map(|n| time_range(n * 1_000, n * 1_000 + 10)).collect();
            let is_back = |n: &u64| shifted(&busy, span, *n).iter().any(|one| one.start % 1_000 < 10);
            let back = (0..8 * SHIFTS).filter(is_back).count();
            assert!(back <= 3, "{back} of {} shifts, with {periods} periods", 8 * SHIFTS);
        }
    }
}
