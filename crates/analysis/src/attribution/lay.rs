//! Detours laid out in time: which part of each was whose, one behind the other.

use quell_recording::{Cpu, Interval, Nanos, Recording};
use rayon::prelude::*;

use super::activity::{Segment, Stretch};
use super::blame::Blame;
use super::{Side, join_all, measure_tolerance};

/// Who had a part of a detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The source of the interval with this place in its CPU's list.
    Interval(usize),
    /// The hypervisor.
    Steal,
    /// Nobody that is known.
    Nobody,
}

/// A part of a detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Laid {
    pub start: Nanos,
    pub ns: u64,
    pub by: By,
    /// The interval beneath, where that counts this time as its own as well: it would have it, were the other not there.
    pub under: Option<usize>,
}

/// The parts of each CPU's detours, in order. They fill the detours: each begins where the one before ends, and they have the
/// lengths that the attribution gives them. What nobody explains, or the hypervisor took, lies where the kernel was seen at no work.
pub(crate) fn laid_out(recording: &Recording) -> Vec<(Cpu, Vec<Laid>)> {
    let tolerance = measure_tolerance(recording);
    let of_side = |side: &Side<'_>| {
        let mut laid = Vec::new();
        let mut first = 0;
        let segments = &side.joined.segments;
        let claims = claims(segments, side.intervals);
        for (blame, &window) in side.joined.blames.iter().zip(&side.joined.windows) {
            while segments.get(first).is_some_and(|one| one.stretch.end <= window.start) {
                first += 1;
            }
            let near = segments[first..].iter().take_while(|one| one.stretch.start < window.end);
            lay((blame, window), &near.collect::<Vec<_>>(), side.intervals, &claims, &mut laid);
        }
        (side.cpu, laid)
    };
    join_all(recording, tolerance).par_iter().map(of_side).collect()
}

/// Lays one detour out behind what is laid out already.
fn lay(
    (blame, window): (&Blame, Stretch),
    near: &[&Segment],
    intervals: &[Interval],
    claims: &[usize],
    laid: &mut Vec<Laid>,
) {
    let part_of = |segment: &Segment| {
        let one = &intervals[segment.interval];
        let same =
            |interval: usize| intervals[interval].source == one.source && intervals[interval].pid == one.pid;
        blame.parts.iter().position(|part| same(part.interval))
    };
    let parts: Vec<Option<usize>> = near.iter().map(|segment| part_of(segment)).collect();
    // Of each part, what its segments have in the window, and what of it was not given out yet.
    let mut overlaps = vec![0u64; blame.parts.len()];
    for (segment, part) in near.iter().zip(&parts) {
        if let Some(part) = part {
            overlaps[*part] += segment.stretch.overlap(window);
        }
    }
    let mut rest: Vec<(u64, u64)> =
        blame.parts.iter().zip(&overlaps).map(|(part, overlap)| (part.ns, *overlap)).collect();
    let mut nobodys = [(By::Steal, blame.stolen_ns), (By::Nobody, blame.left_ns)];
    let mut at = blame.detour.start;
    // In order, so those that matter here are those that the segments name.
    let near_claims: Vec<usize> = near
        .iter()
        .map(|segment| segment.interval)
        .filter(|interval| claims.binary_search(interval).is_ok())
        .collect();
    let mut put = |by, ns: u64, under: Option<usize>| {
        if ns > 0 {
            laid.push(Laid { start: at, ns, by, under });
            at += Nanos::from_nanos(ns);
        }
        at.as_nanos()
    };
    let mut end = put(By::Nobody, 0, None);
    for (segment, part) in near.iter().zip(&parts) {
        let Some(part) = *part else { continue };
        for (by, left) in &mut nobodys {
            let gap = segment.stretch.start.saturating_sub(end).min(*left);
            *left -= gap;
            end = put(*by, gap, None);
        }
        let overlap = segment.stretch.overlap(window);
        let (left, of) = &mut rest[part];
        // The last of a part's segments gets what rounding left.
        let ns = if *of > 0 { (u128::from(*left) * u128::from(overlap) / u128::from(*of)) as u64 } else { 0 };
        (*left, *of) = (*left - ns, of.saturating_sub(overlap));
        let beneath = |&&outer: &&usize| {
            let outside = Stretch::of(&intervals[outer]);
            outer != segment.interval && outside.overlap(segment.stretch) == segment.stretch.length()
        };
        end = put(By::Interval(segment.interval), ns, near_claims.iter().find(beneath).copied());
    }
    // A part whose segments the window does not reach.
    for (part, (left, _)) in blame.parts.iter().zip(rest) {
        put(By::Interval(part.interval), left, None);
    }
    for (by, left) in nobodys {
        put(by, left, None);
    }
}

/// Intervals whose net time is more than the time in which they were the innermost: it was not lessened by what was nested in them.
/// The kernel's recorder makes none such; tables of other origin may have them.
fn claims(segments: &[Segment], intervals: &[Interval]) -> Vec<usize> {
    let mut own = vec![0u64; intervals.len()];
    for segment in segments {
        own[segment.interval] = own[segment.interval].saturating_add(segment.stretch.length());
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

    use super::super::fixture::{detour, recording, steal, task, tick, trace};
    use super::*;

    fn parts(laid: &[Laid]) -> Vec<(u64, u64, By)> {
        laid.iter().map(|one| (one.start.as_nanos(), one.ns, one.by)).collect()
    }

    #[test]
    fn a_task_between_ticks_is_laid_out_around_them() {
        let intervals = vec![task("daemon", 7, 1_000, 10_000), tick(2_000, 500), tick(6_000, 500)];
        // The task's net time is without what interrupted it.
        let made = recording(vec![trace(100_000, vec![detour(900, 10_200)])], vec![intervals]);
        let (_, laid) = laid_out(&made).remove(0);
        let sum: u64 = laid.iter().map(|one| one.ns).sum();
        assert_eq!(sum, 10_200);
        let of = |by| parts(&laid).into_iter().filter(|one| one.2 == by).collect::<Vec<_>>();
        assert_eq!(of(By::Interval(1)), [(2_000, 500, By::Interval(1))]);
        assert_eq!(of(By::Interval(2)), [(6_000, 500, By::Interval(2))]);
        assert_eq!(of(By::Interval(0)).len(), 3);
        assert_eq!(of(By::Nobody), [(900, 100, By::Nobody), (11_000, 100, By::Nobody)]);
    }

    #[test]
    fn time_that_two_claim_would_be_the_outer_ones() {
        let net = |one: Interval, ns| Interval { net: Nanos::from_nanos(ns), ..one };
        let laid = |outer_ns| {
            let intervals = vec![net(task("daemon", 7, 1_000, 10_000), outer_ns), tick(2_000, 500)];
            let made = recording(vec![trace(100_000, vec![detour(1_000, 10_000)])], vec![intervals]);
            laid_out(&made).remove(0).1.into_iter().find(|one| one.by == By::Interval(1)).unwrap()
        };
        assert_eq!(laid(10_000).under, Some(0));
        assert_eq!(laid(9_500).under, None);
    }

    proptest! {
        #[test]
        fn parts_fill_each_detour(
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
            let (_, laid) = laid_out(&made).remove(0);
            let mut laid = laid.into_iter().peekable();
            for detour in all {
                let mut free = detour.start;
                while let Some(one) = laid.next_if(|one| one.start < detour.end()) {
                    prop_assert_eq!(one.start, free);
                    free += Nanos::from_nanos(one.ns);
                }
                prop_assert_eq!(free, detour.end());
            }
            prop_assert!(laid.next().is_none());
        }
    }
}
