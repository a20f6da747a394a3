//! What took a CPU in a range of time: the culprits of a long quantum, of a slow operation, of a late rank.
//!
//! A CPU's intervals are flattened once ([`Busy::from_intervals`]); each query after that is a binary search. Nested intervals count
//! net: an interrupt's time is its own, and not that of the task that it interrupted. The hypervisor's time is known per
//! window but not per instant, so it is a candidate only for time that nothing else explains.

use std::cmp::Reverse;

use quell_recording::{Interval, Intervals, Source};

use crate::attribution::activity::{Segment, busy, innermost};
use crate::attribution::steal;
use crate::time_range::TimeRange;

/// What one source took in a range of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The source.
    pub source: Source,
    /// The task's own id (Linux's thread id) if the source is a task; 0 otherwise.
    pub pid: u32,
    /// Time that it took within the range, net of what interrupted it. For [`Source::Steal`] the maximum that it may
    /// have taken.
    pub net_ns: u64,
    /// The longest net time of one of its intervals within the range; for [`Source::Steal`] as [`Self::net_ns`], of one window.
    pub longest_ns: u64,
    /// When that interval began, which may be before the range.
    pub longest_start_ns: u64,
}

/// A range of time that lasted longer than it should have, and what took the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blamed {
    /// What took time in it, by time.
    pub shares: Vec<Share>,
    /// The part of the missing time that they explain.
    pub explained_ns: u64,
    /// The part that is not attributed.
    pub left_ns: u64,
}

/// What took one CPU from the program at each instant, indexed for queries.
#[derive(Debug)]
pub struct Busy<'a> {
    intervals: &'a [Interval],
    /// In order of time and without overlaps; the program's own runs are not included.
    segments: Vec<Segment>,
    /// The hypervisor's windows, and how much it took in each; in order of time and without overlaps.
    stolen: Vec<(TimeRange, u64)>,
}

impl<'a> Busy<'a> {
    /// Indexes one CPU's intervals. `own` returns whether an id is that of one of the program's own tasks: a recording of a whole CPU
    /// holds their runs too, and those are not noise.
    pub fn from_intervals(intervals: &'a Intervals, own: &dyn Fn(u32) -> bool) -> Self {
        let intervals = intervals.intervals.as_slice();
        let mut segments = innermost(intervals);
        segments.retain(|segment| {
            let one = &intervals[segment.interval];
            !(matches!(one.source, Source::Task(_)) && own(one.pid))
        });
        Self { intervals, segments, stolen: steal::windows(intervals) }
    }

    /// The ranges within `span` in which the kernel or another task worked, in order and not touching.
    pub(crate) fn time_ranges(&self, span: TimeRange) -> Vec<TimeRange> {
        let clip = |time_range: TimeRange| TimeRange {
            start: time_range.start.max(span.start),
            end: time_range.end.min(span.end),
        };
        let clipped = busy(&self.segments).into_iter().map(clip);
        clipped.filter(|time_range| time_range.start < time_range.end).collect()
    }

    /// What took the CPU from `from_ns` up to `to_ns`, by time.
    pub fn taken_in(&self, from_ns: u64, to_ns: u64) -> Vec<Share> {
        self.explain(from_ns, to_ns, to_ns.saturating_sub(from_ns)).shares
    }

    /// As [`Self::taken_in`], if only `missing_ns` of the range are known to be missing: the hypervisor gets
    /// at most what the other sources leave of that.
    pub fn explain(&self, from_ns: u64, to_ns: u64, missing_ns: u64) -> Blamed {
        let time_range = TimeRange { start: from_ns, end: to_ns };
        let mut shares = self.seen_in(time_range);
        let seen = shares.iter().fold(0, |sum: u64, share| sum.saturating_add(share.net_ns));
        let open = missing_ns.min(time_range.length()).saturating_sub(seen);
        shares.extend(self.stolen_in(time_range, open));
        shares.sort_by(|a, b| {
            (Reverse(a.net_ns), &a.source, a.pid).cmp(&(Reverse(b.net_ns), &b.source, b.pid))
        });
        let taken = shares.iter().fold(0, |sum: u64, share| sum.saturating_add(share.net_ns));
        let explained_ns = taken.min(missing_ns);
        Blamed { shares, explained_ns, left_ns: missing_ns - explained_ns }
    }

    /// The shares of the sources that the kernel recorded, unsorted.
    fn seen_in(&self, time_range: TimeRange) -> Vec<Share> {
        let first = self.segments.partition_point(|segment| segment.time_range.end <= time_range.start);
        let within =
            self.segments[first..].iter().take_while(|segment| segment.time_range.start < time_range.end);
        let mut parts: Vec<(usize, u64)> =
            within.map(|segment| (segment.interval, segment.time_range.overlap(time_range))).collect();
        // An interval that was interrupted has several segments.
        parts.sort_unstable();
        let mut shares: Vec<Share> = Vec::new();
        for parts_of_interval in parts.chunk_by(|a, b| a.0 == b.0) {
            let ns = parts_of_interval.iter().map(|part| part.1).sum();
            add(&mut shares, &self.intervals[parts_of_interval[0].0], ns);
        }
        shares
    }

    /// The hypervisor's share: what it took in windows that overlap the range, up to the time that is still unexplained.
    fn stolen_in(&self, time_range: TimeRange, open: u64) -> Option<Share> {
        let first = self.stolen.partition_point(|(window, _)| window.end <= time_range.start);
        let within = self.stolen[first..].iter().take_while(|(window, _)| window.start < time_range.end);
        let most = within.map(|&(window, ns)| (ns.min(window.overlap(time_range)), window.start));
        let (mut sum, mut longest) = (0u64, (0, 0));
        for (ns, start) in most {
            sum = sum.saturating_add(ns);
            if ns > longest.0 {
                longest = (ns, start);
            }
        }
        let net_ns = sum.min(open);
        let (ns, longest_start_ns) = longest;
        let share =
            Share { source: Source::Steal, pid: 0, net_ns, longest_ns: ns.min(net_ns), longest_start_ns };
        (net_ns > 0).then_some(share)
    }
}

fn add(shares: &mut Vec<Share>, one: &Interval, ns: u64) {
    let start = one.start.as_nanos();
    let same = |share: &&mut Share| share.source == one.source && share.pid == one.pid;
    match shares.iter_mut().find(same) {
        Some(share) => {
            share.net_ns += ns;
            if ns > share.longest_ns {
                (share.longest_ns, share.longest_start_ns) = (ns, start);
            }
        }
        None => shares.push(Share {
            source: one.source.clone(),
            pid: one.pid,
            net_ns: ns,
            longest_ns: ns,
            longest_start_ns: start,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::fixture::{softirq, steal, task, tick};
    use proptest::prelude::*;
    use quell_recording::{Cpu, SourceKind};

    fn intervals_of_one_cpu(intervals: Vec<Interval>) -> Intervals {
        Intervals { cpu: Cpu(1), intervals }
    }

    fn named(shares: &[Share]) -> Vec<(String, u32, u64)> {
        shares.iter().map(|share| (share.source.to_string(), share.pid, share.net_ns)).collect()
    }

    /// Rank 7 computes from 0 to 1,000 and from 1,300 on; in between a daemon runs, and a tick interrupts both.
    fn busy_node() -> Intervals {
        intervals_of_one_cpu(vec![
            task("quell-bench", 7, 0, 1_000),
            tick(500, 20),
            softirq("TIMER", 520, 5),
            task("daemon", 9, 1_000, 300),
            tick(1_100, 40),
            task("quell-bench", 7, 1_300, 700),
            tick(1_500, 30),
        ])
    }

    #[test]
    fn nested_time_is_net_and_the_own_task_is_left_out() {
        let node = busy_node();
        let busy = Busy::from_intervals(&node, &|pid| pid == 7);
        let expected =
            [("task:daemon".into(), 9, 260), ("tick".into(), 0, 90), ("softirq:TIMER".into(), 0, 5)];
        assert_eq!(named(&busy.taken_in(0, 2_000)), expected);
        let shares = busy.taken_in(0, 2_000);
        assert_eq!((shares[0].longest_ns, shares[0].longest_start_ns), (260, 1_000));
        assert_eq!((shares[1].longest_ns, shares[1].longest_start_ns), (40, 1_100));
    }

    #[test]
    fn a_range_gets_only_what_lies_in_it() {
        let node = busy_node();
        let busy = Busy::from_intervals(&node, &|pid| pid == 7);
        assert_eq!(
            named(&busy.taken_in(1_120, 1_150)),
            [("tick".into(), 0, 20), ("task:daemon".into(), 9, 10)]
        );
        assert_eq!(named(&busy.taken_in(530, 1_000)), []);
        assert_eq!(named(&busy.taken_in(1_500, 1_500)), []);
        assert_eq!(named(&busy.taken_in(1_600, 1_500)), []);
    }

    #[test]
    fn the_hypervisor_is_blamed_for_no_more_than_is_left() {
        let node = intervals_of_one_cpu(vec![steal(0, 4_000, 900), tick(100, 200), steal(4_000, 4_000, 50)]);
        let busy = Busy::from_intervals(&node, &|_| false);
        let blamed = busy.explain(0, 2_000, 500);
        assert_eq!(named(&blamed.shares), [("steal".into(), 0, 300), ("tick".into(), 0, 200)]);
        assert_eq!((blamed.explained_ns, blamed.left_ns), (500, 0));
        // Both windows overlap the range, and together cannot explain it.
        let blamed = busy.explain(3_900, 5_000, 400);
        assert_eq!(named(&blamed.shares), [("steal".into(), 0, 150)]);
        assert_eq!((blamed.shares[0].longest_ns, blamed.shares[0].longest_start_ns), (100, 0));
        assert_eq!((blamed.explained_ns, blamed.left_ns), (150, 250));
        assert_eq!(busy.explain(100, 300, 150).explained_ns, 150, "more was taken than is missing");
    }

    proptest! {
        #[test]
        fn every_share_is_what_the_instants_say(
            rows in prop::collection::vec((0u64..400, 0u64..150, 0usize..5), 0..25),
            from in 0u64..500, length in 0u64..300,
        ) {
            let one = |&(start, length, kind): &(u64, u64, usize)| match kind {
                0 => tick(start, length),
                1 => softirq("RCU", start, length),
                2 => task("own", 7, start, length),
                3 => task("other", 9, start, length),
                _ => steal(start, length, length / 2),
            };
            let mut intervals: Vec<_> = rows.iter().map(one).collect();
            intervals.sort_by_key(|i| i.start);
            let flat = innermost(&intervals);
            let node = intervals_of_one_cpu(intervals.clone());
            let shares = Busy::from_intervals(&node, &|pid| pid == 7).taken_in(from, from + length);
            for share in shares.iter().filter(|share| share.source.kind() != SourceKind::Steal) {
                let is_it = |s: &&Segment| intervals[s.interval].source == share.source;
                let at = |t: u64| flat.iter().filter(is_it).any(|s| s.time_range.start <= t && t < s.time_range.end);
                prop_assert_eq!(share.net_ns, (from..from + length).filter(|&t| at(t)).count() as u64);
                prop_assert!(share.longest_ns <= share.net_ns && share.pid != 7);
            }
            prop_assert!(shares.is_sorted_by(|a, b| a.net_ns >= b.net_ns));
            prop_assert!(shares.iter().map(|share| share.net_ns).sum::<u64>() <= length);
        }
    }
}
