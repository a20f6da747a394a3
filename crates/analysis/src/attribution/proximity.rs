//! Detours without a known source that are close to known work.

use super::activity::Segment;
use crate::time_range::TimeRange;

/// Maximum distance of a neighbour, in ns.
pub(super) const REACH_NS: u64 = 10_000;

/// Minimum number of neighbours that make a pattern.
pub(super) const FEWEST: u64 = 20;

/// The side of known work on which a detour lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    After,
    Before,
}

impl Side {
    pub fn word(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::Before => "before",
        }
    }

    /// Whether `busy` is a neighbour of the detour on this side.
    fn holds(self, detour: TimeRange, busy: TimeRange) -> bool {
        match self {
            Self::After => busy.end <= detour.start && detour.start - busy.end <= REACH_NS,
            Self::Before => detour.end <= busy.start && busy.start - detour.end <= REACH_NS,
        }
    }
}

/// The nearest neighbour of each detour on that side, as an index into `busy`. Both are in order of time.
fn nearest(detours: &[TimeRange], busy: &[TimeRange], which: Side) -> impl Iterator<Item = usize> {
    detours.iter().filter_map(move |&detour| {
        let place = match which {
            Side::After => busy.partition_point(|b| b.start < detour.start).checked_sub(1)?,
            Side::Before => busy.partition_point(|b| b.start < detour.end),
        };
        busy.get(place).is_some_and(|&b| which.holds(detour, b)).then_some(place)
    })
}

/// Whether a detour has a neighbour on that side.
pub(super) fn is_near(detour: TimeRange, busy: &[TimeRange], which: Side) -> bool {
    nearest(&[detour], busy, which).next().is_some()
}

/// The intervals that are neighbours on that side, one for each detour that has one.
pub(super) fn neighbours(detours: &[TimeRange], segments: &[Segment], which: Side) -> Vec<usize> {
    let busy: Vec<TimeRange> = segments.iter().map(|segment| segment.time_range).collect();
    nearest(detours, &busy, which).map(|place| segments[place].interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_near_side_counts() {
        let busy = [TimeRange { start: 100, end: 200 }, TimeRange { start: 50_000, end: 50_100 }];
        let detours = [TimeRange { start: 300, end: 350 }, TimeRange { start: 49_000, end: 49_500 }];
        let near = |which| detours.map(|detour| is_near(detour, &busy, which));
        assert_eq!(near(Side::After), [true, false]);
        assert_eq!(near(Side::Before), [false, true]);
        assert!(!is_near(detours[0], &[], Side::Before));
    }
}
