//! Time that the hypervisor took. The guest learns how much was taken in a window, but not at which instant.
//!
//! The rule: the stolen time of a window goes to the unattributed time of the detours in it, longest remainder first, and
//! never more than the remainder. A virtual CPU that is descheduled misses whole slices, so the longest gap without another
//! explanation is the likeliest place; a proportional rule would spread the time over hundreds of short gaps.

use std::cmp::Reverse;

use quell_recording::{Interval, SourceKind};

use super::blame::Blame;
use crate::time_range::TimeRange;

/// The windows in order and without overlaps (each begins, at the earliest, where the previous one ends).
pub(crate) fn windows(intervals: &[Interval]) -> Vec<(TimeRange, u64)> {
    let mut free = 0;
    let mut windows = Vec::new();
    let mut steal: Vec<&Interval> =
        intervals.iter().filter(|i| i.source.kind() == SourceKind::Steal).collect();
    steal.sort_by_key(|one| (one.start, one.end(), one.net));
    for one in steal {
        let TimeRange { start, end } = TimeRange::from_interval(one);
        let window = TimeRange { start: start.max(free), end };
        if window.length() > 0 {
            windows.push((window, one.net.as_nanos().min(window.length())));
            free = end;
        }
    }
    windows
}

/// Whether one of these windows holds an instant.
pub(crate) fn holds(windows: &[TimeRange], at: u64) -> bool {
    let before = windows.partition_point(|window| window.end <= at);
    windows.get(before).is_some_and(|window| window.start <= at)
}

/// Attributes stolen time to the detours of its windows. `reaches` holds the range in which each of `blames` may lie.
pub(super) fn distribute(blames: &mut [Blame], reaches: &[TimeRange], intervals: &[Interval]) {
    let mut first = 0;
    for (window, mut stolen) in windows(intervals) {
        while reaches.get(first).is_some_and(|reach| reach.end <= window.start) {
            first += 1;
        }
        let inside = reaches[first..].iter().take_while(|reach| reach.start < window.end).count();
        let mut order: Vec<usize> = (first..first + inside).collect();
        order.sort_by_key(|&i| (Reverse(blames[i].left_ns), i));
        for index in order {
            let blame = &mut blames[index];
            let ns = stolen.min(blame.left_ns).min(reaches[index].overlap(window));
            blame.left_ns -= ns;
            blame.stolen_ns += ns;
            stolen -= ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{detour, steal, tick, trace};
    use super::super::join::join;

    #[test]
    fn the_longest_remainder_comes_first_and_nothing_is_stolen_twice() {
        let detours = vec![detour(100, 50), detour(300, 400), detour(5_000, 900)];
        let joined = join(&trace(10_000, detours), &[steal(0, 1_000, 420), tick(310, 10)], 0);
        let stolen: Vec<u64> = joined.blames.iter().map(|b| b.stolen_ns).collect();
        assert_eq!(stolen, [30, 390, 0]);
        let explained: Vec<u64> = joined.blames.iter().map(|b| b.attributed_ns()).collect();
        assert_eq!(explained, [30, 400, 0]);
    }
}
