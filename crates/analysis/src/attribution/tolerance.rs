//! The offset between the clocks of the probe and of the kernel, measured from the recording itself.

use quell_recording::Detour;

use crate::stats::Durations;
use crate::time_range::TimeRange;

/// Maximum tolerance: two clocks of one machine never differ by more, so a match that needs more is rejected.
pub(super) const MOST_NS: u64 = 1_000;

/// How far kernel work extends beyond the detour that it caused, for all ranges that match a single detour.
///
/// A detour contains its cause: the program could not run while the kernel did. The overhang is therefore
/// misalignment and jitter of the two clocks. A match is clear if a range overlaps one detour only, and lies in
/// it with at least half of its length.
pub(super) fn overhangs(detours: &[Detour], busy: &[TimeRange]) -> Vec<u64> {
    let mut found = Vec::new();
    let mut first = 0;
    for time_range in busy {
        while detours.get(first).is_some_and(|d| d.end().as_nanos() <= time_range.start) {
            first += 1;
        }
        let meets = |d: &&Detour| d.start.as_nanos() < time_range.end;
        let mut met = detours[first..].iter().take_while(meets);
        let (Some(detour), None) = (met.next(), met.next()) else { continue };
        let detour = TimeRange::from_detour(detour);
        if 2 * detour.overlap(*time_range) >= time_range.length() {
            let before = detour.start.saturating_sub(time_range.start);
            found.push(before.max(time_range.end.saturating_sub(detour.end)));
        }
    }
    found
}

/// The tolerance of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tolerance {
    /// The tolerance that is used, in ns.
    pub ns: u64,
    /// The 99th percentile of the overhang; absent if no range had a clear match.
    pub overhang_p99_ns: Option<u64>,
    /// Number of ranges with a clear match.
    pub pairs: u64,
}

impl Tolerance {
    /// The clock's granularity, or the 99th percentile of the overhang if that is larger, up to [`MOST_NS`].
    pub fn from_overhangs(overhangs: Vec<u64>, granularity_ns: f64) -> Self {
        let overhangs = Durations::new(overhangs);
        let p99 = overhangs.quantile(0.99);
        let granularity = granularity_ns.clamp(1.0, MOST_NS as f64).ceil() as u64;
        let ns = p99.unwrap_or(0).clamp(granularity, MOST_NS);
        Self { ns, overhang_p99_ns: p99, pairs: overhangs.len() as u64 }
    }
}

/// The time of `windows` that `busy` covers, in ns; both are in order of time, and neither overlaps itself.
pub(super) fn covered_ns(windows: &[TimeRange], busy: &[TimeRange]) -> u64 {
    let mut first = 0;
    let mut covered = 0u64;
    for window in windows {
        while busy.get(first).is_some_and(|s| s.end <= window.start) {
            first += 1;
        }
        let meets = |s: &&TimeRange| s.start < window.end;
        let overlaps = busy[first..].iter().take_while(meets).map(|s| window.overlap(*s));
        covered = covered.saturating_add(overlaps.sum());
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::super::fixture::detour;
    use super::*;

    fn time_range(start: u64, end: u64) -> TimeRange {
        TimeRange { start, end }
    }

    #[test]
    fn only_clear_partners_tell_the_overhang() {
        let detours = [detour(100, 50), detour(1_000, 10), detour(1_020, 10), detour(2_000, 10)];
        // Extends beyond by 7; overlaps two; overlaps the last with less than half of its length.
        let busy = [time_range(110, 157), time_range(1_005, 1_025), time_range(2_005, 2_100)];
        assert_eq!(overhangs(&detours, &busy), [7]);
    }

    #[test]
    fn the_tolerance_is_that_of_the_clock_or_more() {
        assert_eq!(Tolerance::from_overhangs(vec![], 15.5).ns, 16);
        assert_eq!(Tolerance::from_overhangs(vec![3, 40, 90], 15.5).ns, 90);
        assert_eq!(Tolerance::from_overhangs(vec![70_000], f64::NAN).ns, MOST_NS);
    }

    #[test]
    fn covered_time_is_that_within_the_windows() {
        let windows = [time_range(0, 10), time_range(20, 30), time_range(40, 50)];
        assert_eq!(
            covered_ns(&windows, &[time_range(5, 6), time_range(7, 25), time_range(30, 40)]),
            1 + 3 + 5
        );
        assert_eq!(covered_ns(&windows, &[time_range(0, 60)]), 30);
    }
}
