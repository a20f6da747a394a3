//! The join: the share of each source in each detour, and the time that is not attributed.

use quell_recording::{Detour, Interval, SourceKind, Trace};

use super::activity::{Segment, busy, innermost};
use super::blame::{Blame, Part};
use super::steal;
use crate::time_range::TimeRange;

/// The join of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    pub blames: Vec<Blame>,
    /// The flattened activity of the kernel.
    pub segments: Vec<Segment>,
    /// Ranges of kernel work.
    pub busy: Vec<TimeRange>,
    /// The range in which each of [`Self::blames`] searched for intervals.
    pub windows: Vec<TimeRange>,
}

/// Attributes each detour of `trace` to `intervals` of the same CPU. Both are ordered by start.
pub(super) fn join(trace: &Trace, intervals: &[Interval], tolerance_ns: u64) -> Joined {
    let segments = innermost(intervals);
    let busy = busy(&segments);
    let mut blames = Vec::new();
    let mut windows = Vec::new();
    let mut first = 0;
    for (detour, window) in trace.detours.iter().zip(match_windows(&trace.detours, tolerance_ns)) {
        if detour.own {
            continue;
        }
        while segments.get(first).is_some_and(|s| s.time_range.end <= window.start) {
            first += 1;
        }
        let near = segments[first..].iter().take_while(|s| s.time_range.start < window.end);
        blames.push(blame(*detour, window, near, intervals));
        windows.push(window);
    }
    steal::distribute(&mut blames, &windows, intervals);
    Joined { blames, segments, busy, windows }
}

/// The range in which each detour searches for its intervals: itself and the tolerance on both sides, but at most half
/// of the way to the next detour, so that no instant is searched twice.
fn match_windows(detours: &[Detour], tolerance_ns: u64) -> impl Iterator<Item = TimeRange> {
    let half = |from: u64, to: u64| from + to.saturating_sub(from) / 2;
    detours.iter().enumerate().map(move |(i, detour)| {
        let (start, end) = (detour.start.as_nanos(), detour.end().as_nanos());
        let after = i.checked_sub(1).map_or(0, |i| half(detours[i].end().as_nanos(), start));
        let before = detours.get(i + 1).map_or(u64::MAX, |next| half(end, next.start.as_nanos()));
        TimeRange {
            start: start.saturating_sub(tolerance_ns).max(after),
            end: end.saturating_add(tolerance_ns).min(before),
        }
    })
}

fn blame<'a>(
    detour: Detour,
    window: TimeRange,
    near: impl Iterator<Item = &'a Segment>,
    intervals: &[Interval],
) -> Blame {
    let mut parts: Vec<Part> = Vec::new();
    let mut met_task = false;
    for segment in near {
        let (one, ns) = (&intervals[segment.interval], segment.time_range.overlap(window));
        met_task |= one.source.kind() == SourceKind::Task;
        let same = |part: &&mut Part| {
            let other = &intervals[part.interval];
            other.source == one.source && other.pid == one.pid
        };
        match parts.iter_mut().find(same) {
            Some(part) => part.ns += ns,
            None => parts.push(Part { interval: segment.interval, ns }),
        }
    }
    let met = !parts.is_empty();
    let duration = detour.duration.as_nanos();
    scale_to_duration(&mut parts, duration);
    let left_ns = duration - parts.iter().map(|part| part.ns).sum::<u64>();
    Blame { detour, parts, stolen_ns: 0, left_ns, met, met_task }
}

/// If the intervals took more than the detour lasted, each is reduced in proportion, because it is not known which end of which
/// clock was wrong. What rounding leaves goes, ns by ns, to those that it took most from, so that none gets more than it had.
fn scale_to_duration(parts: &mut [Part], duration: u64) {
    let total: u128 = parts.iter().map(|part| u128::from(part.ns)).sum();
    if total <= u128::from(duration) {
        return;
    }
    let mut rounded: Vec<(u128, &mut Part)> = Vec::with_capacity(parts.len());
    let mut left = duration;
    for part in parts.iter_mut() {
        let share = u128::from(part.ns) * u128::from(duration);
        part.ns = (share / total) as u64;
        left -= part.ns;
        rounded.push((share % total, part));
    }
    rounded.sort_by_key(|(rest, _)| std::cmp::Reverse(*rest));
    // Each lost less than 1 ns, so fewer are left than there are parts.
    for (_, part) in rounded.into_iter().take(left as usize) {
        part.ns += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{detour, softirq, task, tick, trace};
    use super::*;
    use proptest::prelude::*;

    fn taken(blame: &Blame, intervals: &[Interval]) -> Vec<(String, u64)> {
        blame.parts.iter().map(|p| (intervals[p.interval].source.to_string(), p.ns)).collect()
    }

    #[test]
    fn a_detour_is_shared_out_net_of_nesting() {
        let intervals = [task("burner", 7, 1_000, 200), softirq("RCU", 1_020, 50), tick(1_030, 10)];
        let joined = join(&trace(10_000, vec![detour(990, 230), detour(5_000, 300)]), &intervals, 0);
        let [first, second] = &joined.blames[..] else { panic!("{joined:?}") };
        let expected = [("task:burner".into(), 150), ("softirq:RCU".into(), 40), ("tick".into(), 10)];
        assert_eq!((taken(first, &intervals), first.left_ns, first.met_task), (expected.into(), 30, true));
        assert_eq!((second.parts.len(), second.left_ns, second.met), (0, 300, false));
    }

    #[test]
    fn what_sticks_out_is_taken_in_proportion() {
        let intervals = [tick(90, 60), softirq("TIMER", 150, 60)];
        let joined = join(&trace(1_000, vec![detour(100, 100)]), &intervals, 20);
        assert_eq!(joined.blames[0].parts.iter().map(|p| p.ns).collect::<Vec<_>>(), [50, 50]);
        assert_eq!(joined.blames[0].left_ns, 0);
    }

    #[test]
    fn rounding_gives_no_source_more_than_it_had() {
        // 66 + 125 + 1 ns in a detour of 191: rounded down they are 65, 124 and 0.
        let intervals = [tick(0, 66), softirq("RCU", 66, 125), softirq("TIMER", 191, 1)];
        let joined = join(&trace(1_000, vec![detour(0, 191)]), &intervals, 1);
        assert_eq!(joined.blames[0].parts.iter().map(|p| p.ns).collect::<Vec<_>>(), [66, 124, 1]);
    }

    #[test]
    fn an_interval_between_two_detours_is_never_taken_twice() {
        let intervals = [tick(110, 8)];
        let joined = join(&trace(1_000, vec![detour(100, 10), detour(120, 10)]), &intervals, 50);
        assert_eq!(joined.blames.iter().map(Blame::attributed_ns).sum::<u64>(), 8);
    }

    #[test]
    fn detours_of_quell_itself_are_left_out() {
        let mut own = detour(100, 10);
        own.own = true;
        assert!(join(&trace(1_000, vec![own]), &[tick(100, 10)], 0).blames.is_empty());
    }

    fn rows() -> impl Strategy<Value = (Vec<Detour>, Vec<Interval>)> {
        let detours = prop::collection::vec((1u64..300, 1u64..200, prop::bool::weighted(0.1)), 0..30);
        let intervals = prop::collection::vec((0u64..6_000, 0u64..400, 0usize..5), 0..30);
        (detours, intervals).prop_map(|(gaps, rows)| {
            let mut at = 0;
            let detours = gaps.into_iter().map(|(gap, length, own)| {
                let one = Detour { own, ..detour(at + gap, length) };
                at += gap + length;
                one
            });
            let intervals = rows.into_iter().map(|(start, length, kind)| match kind {
                0 => tick(start, length),
                1 => softirq("TIMER", start, length),
                2 => softirq("RCU", start, length),
                3 => task("other", 4, start, length),
                _ => super::super::fixture::steal(start, length, length / 3),
            });
            let mut intervals: Vec<_> = intervals.collect();
            intervals.sort_by_key(|i| i.start);
            (detours.collect(), intervals)
        })
    }

    proptest! {
        #[test]
        fn every_ns_is_accounted_for_once((detours, intervals) in rows(), tolerance in 0u64..100) {
            let joined = join(&trace(100_000, detours), &intervals, tolerance);
            let mut per_interval: std::collections::BTreeMap<_, u64> = Default::default();
            for blame in &joined.blames {
                let parts: u64 = blame.parts.iter().map(|p| p.ns).sum();
                prop_assert_eq!(parts + blame.stolen_ns + blame.left_ns, blame.detour.duration.as_nanos());
                for part in &blame.parts {
                    let one = &intervals[part.interval];
                    *per_interval.entry((one.source.clone(), one.pid)).or_default() += part.ns;
                }
            }
            // No source gets more time than its intervals have, and the hypervisor no more than it took.
            for (key, blamed) in per_interval {
                let flat = joined.segments.iter().filter(|s| {
                    (intervals[s.interval].source.clone(), intervals[s.interval].pid) == key
                });
                prop_assert!(blamed <= flat.map(|s| s.time_range.length()).sum::<u64>());
            }
            let stolen: u64 = joined.blames.iter().map(|b| b.stolen_ns).sum();
            let steal = intervals.iter().filter(|i| i.source.kind() == SourceKind::Steal);
            prop_assert!(stolen <= steal.map(|i| i.net.as_nanos()).sum::<u64>());
        }

        #[test]
        fn misalignment_within_the_tolerance_changes_nothing(
            gaps in prop::collection::vec((300u64..900, 60u64..300, 1u64..60), 1..20),
            shift in 0u64..=100,
        ) {
            let mut at = 1_000;
            let (mut detours, mut intervals) = (Vec::new(), Vec::new());
            for (gap, length, work) in gaps {
                at += gap;
                detours.push(detour(at, length));
                intervals.push(tick(at + (length - work) / 2, work));
                at += length;
            }
            let moved: Vec<_> = intervals
                .iter()
                .map(|i| tick(i.start.as_nanos() + shift - 50, i.duration.as_nanos()))
                .collect();
            let trace = trace(at + 10_000, detours);
            prop_assert_eq!(join(&trace, &intervals, 100).blames, join(&trace, &moved, 100).blames);
        }

        #[test]
        fn the_order_of_rows_that_begin_together_does_not_matter((detours, mut intervals) in rows()) {
            let trace = trace(100_000, detours);
            let sums = |intervals: &[Interval]| {
                let joined = join(&trace, intervals, 10);
                joined.blames.iter().map(|b| {
                    let mut parts = taken(b, intervals);
                    parts.sort();
                    (parts, b.left_ns, b.stolen_ns)
                }).collect::<Vec<_>>()
            };
            let before = sums(&intervals);
            intervals.reverse();
            intervals.sort_by_key(|i| i.start);
            prop_assert_eq!(before, sums(&intervals));
        }
    }
}
