//! Noise as a walk: each rank keeps its place in its trace, because its work only moves forward.
//!
//! A [`ProgressClock`] finds the detours of any work by an index. Here the next detour of each rank is known, so work that ends
//! before it costs a comparison, and other work a few steps from that detour on.

use crate::clock::ProgressClock;
use crate::loggops::RankClocks;

/// Steps from one detour to the next before the clock's index is used instead.
const MAX_STEPS: u32 = 48;

/// One detour, in nanoseconds: its start in the trace and its length.
#[derive(Clone, Copy, Debug)]
struct Detour {
    start: i64,
    length: i64,
}

/// The detours of one clock.
#[derive(Debug)]
struct Walk<'a> {
    clock: &'a ProgressClock,
    detours: Vec<Detour>,
    period: i64,
}

/// The next detour of a rank: its index in a trace whose repetition begins at `base` of the rank's time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    base: i64,
    index: u32,
    trace: u32,
}

/// The noise of all ranks.
#[derive(Debug)]
pub(super) struct Walks<'a> {
    walks: Vec<Walk<'a>>,
}

/// A rank's next detour begins at this time if it has none.
pub(super) const NEVER: i64 = i64::MAX;

/// How much longer than itself any work can take, as a factor; and by how much more than that, in nanoseconds.
pub(super) fn longest_delay(clocks: &RankClocks) -> (u128, u128) {
    let clocks = || clocks.clocks().iter();
    let factor = clocks().map(|clock| clock.period().div_ceil(clock.useful_period())).max();
    // Useful time that a period has loses at most the period's noise, wherever it begins.
    let rest = clocks().map(|clock| clock.period() - clock.useful_period()).max();
    (factor.unwrap_or(1).into(), rest.unwrap_or(0).into())
}

impl<'a> Walks<'a> {
    /// No noise.
    pub(super) const NONE: Self = Self { walks: Vec::new() };

    pub(super) fn new(clocks: &'a RankClocks) -> Self {
        let walk = |clock: &'a std::sync::Arc<ProgressClock>| {
            let ends = clock.starts().iter().zip(clock.useful_starts());
            let lost: Vec<i64> = ends.map(|(start, useful)| (start - useful) as i64).collect();
            let starts = clock.starts().iter().zip(lost.windows(2));
            let detours =
                starts.map(|(&start, lost)| Detour { start: start as i64, length: lost[1] - lost[0] });
            Walk { clock, detours: detours.collect(), period: clock.period() as i64 }
        };
        Self { walks: clocks.clocks().iter().map(walk).collect() }
    }

    /// The cursor of a rank whose time 0 is at `offset` of a trace, and when the detour there begins.
    pub(super) fn start(&self, trace: u32, offset: u64) -> (Cursor, i64) {
        let mut cursor = Cursor { base: -(offset as i64), index: 0, trace };
        let next = self.seek(&mut cursor, 0);
        (cursor, next)
    }

    /// Moves a cursor to the first detour that ends after `t`, and returns when that begins.
    fn seek(&self, cursor: &mut Cursor, t: i64) -> i64 {
        let walk = &self.walks[cursor.trace as usize];
        if walk.detours.is_empty() {
            return NEVER;
        }
        if !(0..walk.period).contains(&(t - cursor.base)) {
            cursor.base += (t - cursor.base).div_euclid(walk.period) * walk.period;
        }
        let place = t - cursor.base;
        let begun = walk.clock.begun_by(place as u64);
        let inside = |last: usize| walk.detours[last].start + walk.detours[last].length > place;
        let index = begun - usize::from(begun > 0 && inside(begun - 1));
        let wraps = index == walk.detours.len();
        cursor.base += if wraps { walk.period } else { 0 };
        cursor.index = if wraps { 0 } else { index as u32 };
        cursor.base + walk.detours[cursor.index as usize].start
    }

    /// When `work` that starts at `t` ends, for a rank whose next detour may strike it. Moves the cursor past all detours that do.
    #[inline]
    pub(super) fn end(&self, cursor: &mut Cursor, next: &mut i64, t: i64, work: i64) -> i64 {
        if work == 0 {
            return t;
        }
        let walk = &self.walks[cursor.trace as usize];
        let mut end = t + work;
        let Cursor { mut base, index, .. } = *cursor;
        let mut index = index as usize;
        let mut start = *next;
        for _ in 0..MAX_STEPS {
            if start >= end {
                *cursor = Cursor { base, index: index as u32, ..*cursor };
                *next = start;
                return end;
            }
            // What is left of the detour when the work starts; nothing if it is over.
            let over = start + walk.detours[index].length;
            end += (over - start.max(t)).max(0);
            index += 1;
            if index == walk.detours.len() {
                (index, base) = (0, base + walk.period);
            }
            start = base + walk.detours[index].start;
        }
        self.end_by_index(cursor, next, t, work)
    }

    #[cold]
    #[inline(never)]
    fn end_by_index(&self, cursor: &mut Cursor, next: &mut i64, t: i64, work: i64) -> i64 {
        let walk = &self.walks[cursor.trace as usize];
        let place = (t - cursor.base).rem_euclid(walk.period);
        let end = t + work + walk.clock.delay(place as u64, work as u64) as i64;
        // A detour that begins at the very end strikes what follows, so the cursor stays before it.
        *next = self.seek(cursor, end);
        end
    }
}
