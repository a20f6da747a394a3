//! The activity of a CPU's kernel at each instant: nested intervals, flattened.

use std::cmp::Reverse;

use quell_recording::{Interval, SourceKind};

use crate::time_range::TimeRange;

/// A range in which one interval is the innermost: this time is its own, net of what interrupted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub time_range: TimeRange,
    /// Index in the CPU's list of intervals.
    pub interval: usize,
}

/// The innermost interval at each instant, in order of time, without overlaps. Steal windows are omitted:
/// the position of the stolen time in them is not known.
///
/// The interval that began last is the innermost (of two that began together, the one that ends first). If a
/// damaged table has intervals that partly overlap, the later one gets the time that both claim.
pub(crate) fn innermost(intervals: &[Interval]) -> Vec<Segment> {
    let mut order: Vec<usize> =
        (0..intervals.len()).filter(|&i| intervals[i].source.kind() != SourceKind::Steal).collect();
    order.sort_by_key(|&i| {
        let one = &intervals[i];
        (one.start, Reverse(one.end()), Reverse(one.source.kind()), &one.source, one.pid)
    });
    let mut sweep = Sweep { at: 0, segments: Vec::with_capacity(order.len()) };
    let mut running: Vec<(u64, usize)> = Vec::new();
    for index in order {
        let TimeRange { start, end } = TimeRange::from_interval(&intervals[index]);
        while let Some(&(until, inner)) = running.last() {
            if until > start {
                sweep.give(inner, start);
                break;
            }
            sweep.give(inner, until);
            running.pop();
        }
        sweep.at = sweep.at.max(start);
        running.push((end, index));
    }
    while let Some((until, inner)) = running.pop() {
        sweep.give(inner, until);
    }
    sweep.segments
}

struct Sweep {
    /// All time before this point is assigned.
    at: u64,
    segments: Vec<Segment>,
}

impl Sweep {
    fn give(&mut self, interval: usize, until: u64) {
        if until > self.at {
            self.segments.push(Segment { time_range: TimeRange { start: self.at, end: until }, interval });
            self.at = until;
        }
    }
}

/// The ranges in which the kernel, or another task, worked without a pause.
pub(crate) fn busy(segments: &[Segment]) -> Vec<TimeRange> {
    let mut busy: Vec<TimeRange> = Vec::new();
    for &Segment { time_range, .. } in segments {
        match busy.last_mut() {
            Some(last) if last.end >= time_range.start => last.end = last.end.max(time_range.end),
            _ => busy.push(time_range),
        }
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{interval, softirq, task, tick};
    use super::*;
    use proptest::prelude::*;
    use quell_recording::{Nanos, Source};

    #[test]
    fn nested_time_belongs_to_the_innermost() {
        let all = [task("x", 5, 0, 100), softirq("TIMER", 10, 50), tick(20, 10), tick(200, 5)];
        let flat: Vec<(u64, u64, usize)> =
            innermost(&all).iter().map(|s| (s.time_range.start, s.time_range.end, s.interval)).collect();
        assert_eq!(flat, [(0, 10, 0), (10, 20, 1), (20, 30, 2), (30, 60, 1), (60, 100, 0), (200, 205, 3)]);
        let busy: Vec<_> = busy(&innermost(&all)).iter().map(|s| (s.start, s.end)).collect();
        assert_eq!(busy, [(0, 100), (200, 205)]);
    }

    #[test]
    fn steal_has_no_place() {
        let mut steal = interval(Source::Steal, 0, 1_000);
        steal.net = Nanos::from_nanos(10);
        assert_eq!(innermost(&[steal]), []);
    }

    proptest! {
        #[test]
        fn each_instant_has_one_owner(rows in prop::collection::vec((0u64..500, 0u64..200), 0..40)) {
            let mut all: Vec<_> = rows.iter().map(|&(start, length)| tick(start, length)).collect();
            all.sort_by_key(|i| i.start);
            let flat = innermost(&all);
            prop_assert!(flat.windows(2).all(|p| p[0].time_range.end <= p[1].time_range.start));
            for instant in 0..700 {
                let within = |s: TimeRange| s.start <= instant && instant < s.end;
                let covered = all.iter().any(|i| within(TimeRange::from_interval(i)));
                let owner = flat.iter().find(|s| within(s.time_range));
                prop_assert_eq!(covered, owner.is_some());
                prop_assert!(owner.is_none_or(|s| within(TimeRange::from_interval(&all[s.interval]))));
            }
        }
    }
}
