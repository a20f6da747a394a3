//! Cuts detours into consecutive segments, each with the source that took it.

use quell_recording::{Interval, Nanos, Source};
use rayon::prelude::*;

use super::activity::Segment;
use super::blame::Blame;
use super::kind::{Kind, Kinds, UNATTRIBUTED};
use super::{JoinedRecording, Side};
use crate::time_range::TimeRange;

/// A segment of a detour and what took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttributedSegment {
    pub start: Nanos,
    pub ns: u64,
    /// The number of a kind.
    pub kind: u32,
    /// The kind of the interval beneath, if that also counts this time as its own: it would take the time if the other were not there.
    pub under: Option<u32>,
}

impl AttributedSegment {
    pub(crate) fn end(self) -> Nanos {
        self.start + Nanos::from_nanos(self.ns)
    }
}

impl JoinedRecording<'_> {
    /// The kinds, and for each of the recording's traces the segments of the detours, in order. The segments fill the detours:
    /// each begins where the previous one ends, and they have the lengths that the attribution gives them. Time that is not attributed, or
    /// that the hypervisor took, is placed where the kernel was not seen working.
    pub(crate) fn attributed_segments(self) -> (Vec<Kind>, Vec<Vec<AttributedSegment>>) {
        let sides: Vec<(Kinds, Vec<AttributedSegment>)> =
            self.sides.into_par_iter().map(|side| segments_of(&side)).collect();
        // In order of appearance, one trace after the other, so that the numbers do not depend on the number of threads.
        let mut kinds = known_kinds();
        let renumbered = sides.into_iter().map(|(names, mut segments)| {
            let numbers: Vec<u32> = names.into_vec().into_iter().map(|kind| kinds.number(kind)).collect();
            for segment in &mut segments {
                segment.kind = numbers[segment.kind as usize];
                segment.under = segment.under.map(|kind| numbers[kind as usize]);
            }
            segments
        });
        let segments = renumbered.collect();
        (kinds.into_vec(), segments)
    }
}

const STOLEN: u32 = 0;
const NOT_ATTRIBUTED: u32 = 1;

/// The kinds without an interval: [`STOLEN`], then [`NOT_ATTRIBUTED`].
fn known_kinds() -> Kinds {
    let mut kinds = Kinds::default();
    kinds.number(Kind::named(&Source::Steal.to_string()));
    kinds.number(Kind::named(UNATTRIBUTED));
    kinds
}

fn segments_of(side: &Side<'_>) -> (Kinds, Vec<AttributedSegment>) {
    let mut filled = Filled::new(side.intervals);
    let mut first = 0;
    let segments = &side.joined.segments;
    let claims = claims(segments, side.intervals);
    for (blame, &window) in side.joined.blames.iter().zip(&side.joined.windows) {
        while segments.get(first).is_some_and(|one| one.time_range.end <= window.start) {
            first += 1;
        }
        let near = segments[first..].iter().take_while(|one| one.time_range.start < window.end);
        filled.fill((blame, window), &near.collect::<Vec<_>>(), &claims);
    }
    (filled.kinds, filled.segments)
}

/// The owner of a segment.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// The source of the interval with this index in its CPU's list.
    Interval(usize),
    /// A kind without an interval.
    Kind(u32),
}

/// The detours of one CPU that are cut so far.
struct Filled<'a> {
    intervals: &'a [Interval],
    kinds: Kinds,
    /// The kind of each interval that has had a part so far.
    kinds_of: Vec<Option<u32>>,
    segments: Vec<AttributedSegment>,
}

impl<'a> Filled<'a> {
    fn new(intervals: &'a [Interval]) -> Self {
        let (kinds, kinds_of) = (known_kinds(), vec![None; intervals.len()]);
        Self { intervals, kinds, kinds_of, segments: Vec::new() }
    }

    fn kind_of(&mut self, interval: usize) -> u32 {
        let kind = || self.kinds.number(Kind::from_interval(&self.intervals[interval]));
        *self.kinds_of[interval].get_or_insert_with(kind)
    }

    /// Adds a segment, unless it is empty; returns the time at which it ends.
    fn push(&mut self, start: Nanos, ns: u64, owner: Owner, under: Option<usize>) -> Nanos {
        if ns > 0 {
            let kind = match owner {
                Owner::Interval(interval) => self.kind_of(interval),
                Owner::Kind(kind) => kind,
            };
            let under = under.map(|interval| self.kind_of(interval));
            self.segments.push(AttributedSegment { start, ns, kind, under });
        }
        start + Nanos::from_nanos(ns)
    }

    /// Cuts one detour into segments.
    fn fill(&mut self, (blame, window): (&Blame, TimeRange), near: &[&Segment], claims: &[usize]) {
        let intervals = self.intervals;
        let part_of = |segment: &Segment| {
            let one = &intervals[segment.interval];
            let same = |interval: usize| {
                intervals[interval].source == one.source && intervals[interval].pid == one.pid
            };
            blame.parts.iter().position(|part| same(part.interval))
        };
        let parts: Vec<Option<usize>> = near.iter().map(|segment| part_of(segment)).collect();
        // For each part, the overlap of its segments with the window, and the time that is not yet assigned.
        let mut overlaps = vec![0u64; blame.parts.len()];
        for (segment, part) in near.iter().zip(&parts) {
            if let Some(part) = part {
                overlaps[*part] += segment.time_range.overlap(window);
            }
        }
        let mut rest: Vec<(u64, u64)> =
            blame.parts.iter().zip(&overlaps).map(|(part, overlap)| (part.ns, *overlap)).collect();
        let mut others =
            [(Owner::Kind(STOLEN), blame.stolen_ns), (Owner::Kind(NOT_ATTRIBUTED), blame.left_ns)];
        let mut at = blame.detour.start;
        // `claims` is sorted; those that matter here are those of the nearby segments.
        let near_claims: Vec<usize> = near
            .iter()
            .map(|segment| segment.interval)
            .filter(|interval| claims.binary_search(interval).is_ok())
            .collect();
        for (segment, part) in near.iter().zip(&parts) {
            let Some(part) = *part else { continue };
            for (owner, left) in &mut others {
                let gap = segment.time_range.start.saturating_sub(at.as_nanos()).min(*left);
                *left -= gap;
                at = self.push(at, gap, *owner, None);
            }
            let overlap = segment.time_range.overlap(window);
            let (left, of) = &mut rest[part];
            // The last of a part's segments gets the remainder of rounding.
            let ns =
                if *of > 0 { (u128::from(*left) * u128::from(overlap) / u128::from(*of)) as u64 } else { 0 };
            (*left, *of) = (*left - ns, of.saturating_sub(overlap));
            let beneath = |&&outer: &&usize| {
                let outside = TimeRange::from_interval(&intervals[outer]);
                outer != segment.interval
                    && outside.overlap(segment.time_range) == segment.time_range.length()
            };
            let under = near_claims.iter().find(beneath).copied();
            at = self.push(at, ns, Owner::Interval(segment.interval), under);
        }
        // Parts whose segments lie outside of the window.
        for (part, (left, _)) in blame.parts.iter().zip(rest) {
            at = self.push(at, left, Owner::Interval(part.interval), None);
        }
        for (owner, left) in others {
            at = self.push(at, left, owner, None);
        }
    }
}

/// Intervals whose net time exceeds the time in which they were the innermost, because nested intervals were not subtracted from it.
/// The kernel recorder makes none of these; imported tables may have them.
fn claims(segments: &[Segment], intervals: &[Interval]) -> Vec<usize> {
    let mut own = vec![0u64; intervals.len()];
    for segment in segments {
        own[segment.interval] = own[segment.interval].saturating_add(segment.time_range.length());
    }
    let more = |&interval: &usize| {
        let (own, net) = (own[interval], intervals[interval].net.as_nanos());
        own > 0 && net > own.saturating_add(own / 1_000)
    };
    (0..intervals.len()).filter(more).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use proptest::prelude::*;
    use quell_recording::Recording;

    use super::super::fixture::{detour, recording, steal, task, tick, trace};
    use super::*;

    /// The segments of the first CPU, and the names of all kinds.
    fn cut(recording: &Recording) -> (Vec<AttributedSegment>, Vec<String>) {
        let (kinds, mut segments) = JoinedRecording::new(recording).attributed_segments();
        (segments.remove(0), kinds.iter().map(|kind| kind.family.to_string()).collect())
    }

    #[test]
    fn a_task_between_ticks_is_cut_around_them() {
        let intervals = vec![task("daemon", 7, 1_000, 10_000), tick(2_000, 500), tick(6_000, 500)];
        // The task's net time excludes what interrupted it.
        let made = recording(vec![trace(100_000, vec![detour(900, 10_200)])], vec![intervals]);
        let (segments, names) = cut(&made);
        let sum: u64 = segments.iter().map(|one| one.ns).sum();
        assert_eq!(sum, 10_200);
        let of = |name: &str| {
            let with_name = segments.iter().filter(|one| names[one.kind as usize] == name);
            with_name.map(|one| (one.start.as_nanos(), one.ns)).collect::<Vec<_>>()
        };
        assert_eq!(of("tick"), [(2_000, 500), (6_000, 500)]);
        assert_eq!(of("task:daemon").len(), 3);
        assert_eq!(of(UNATTRIBUTED), [(900, 100), (11_000, 100)]);
        // In order of appearance, after the two without an interval.
        assert_eq!(names, ["steal", UNATTRIBUTED, "task:daemon", "tick"]);
    }

    #[test]
    fn time_that_two_claim_would_be_the_outer_ones() {
        let net = |one: Interval, ns| Interval { net: Nanos::from_nanos(ns), ..one };
        let under = |outer_ns| {
            let intervals = vec![net(task("daemon", 7, 1_000, 10_000), outer_ns), tick(2_000, 500)];
            let made = recording(vec![trace(100_000, vec![detour(1_000, 10_000)])], vec![intervals]);
            let (segments, names) = cut(&made);
            let tick = segments.into_iter().find(|one| names[one.kind as usize] == "tick").unwrap();
            tick.under.map(|kind| names[kind as usize].clone())
        };
        assert_eq!(under(10_000).as_deref(), Some("task:daemon"));
        assert_eq!(under(9_500), None);
    }

    proptest! {
        #[test]
        fn segments_fill_each_detour(
            detours in proptest::collection::vec((0u64..2_000, 1u64..3_000), 1..20),
            ticks in proptest::collection::vec((0u64..40_000, 1u64..900), 0..30),
            stolen in 0u64..3_000,
        ) {
            let mut at = 0;
            let mut all = Vec::new();
            for (gap, length) in detours {
                all.push(detour(at + gap, length));
                at += gap + length;
            }
            let mut intervals: Vec<_> = ticks.into_iter().map(|(start, length)| tick(start, length)).collect();
            intervals.push(steal(0, 40_000, stolen));
            intervals.sort_by_key(|one| one.start);
            let made = recording(vec![trace(at + 1, all.clone())], vec![intervals]);
            let mut segments = cut(&made).0.into_iter().peekable();
            for detour in all {
                let mut free = detour.start;
                while let Some(one) = segments.next_if(|one| one.start < detour.end()) {
                    prop_assert_eq!(one.start, free);
                    free += Nanos::from_nanos(one.ns);
                }
                prop_assert_eq!(free, detour.end());
            }
            prop_assert!(segments.next().is_none());
        }
    }
}
