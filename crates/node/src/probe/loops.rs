//! The measuring loops. Nothing here allocates, locks or makes a system call between `start` and the end, or causes a page fault: the buffers are
//! locked in memory, and the lines of the memory probe have been touched, and stay where they are.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use super::memory::Walk;
use super::ring::{Ring, Row};
use crate::clock::Clock;

/// Turns between two checks of the stop flag and the deadline: about 20 µs.
const CHUNK: u32 = 1024;

/// When a loop has to end.
#[derive(Debug)]
pub(crate) struct Control<'a> {
    /// Ends every loop when set.
    pub stop: &'a AtomicBool,
    /// The clock reading after which the loop ends by itself.
    pub deadline_ticks: u64,
}

impl Control<'_> {
    #[inline]
    fn goes_on(&self, now: u64) -> bool {
        now < self.deadline_ticks && !self.stop.load(Ordering::Relaxed)
    }
}

/// What a loop observed about itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Observed {
    /// First reading.
    pub first: u64,
    /// Last reading.
    pub last: u64,
    /// Turns.
    pub iterations: u64,
    /// Turns that were detours.
    pub detours: u64,
    /// Ticks in those turns.
    pub detour_ticks: u64,
}

/// The selfish detour loop (De et al. 2008, Algorithm 2; Hoefler et al. 2010): reads the clock and stores each gap
/// above the threshold. One pass covers the whole run, so no detour can fall between rounds.
pub(crate) fn detours<C: Clock>(clock: C, threshold_ticks: u64, ring: &Ring, control: &Control) -> Observed {
    let first = clock.now();
    let mut seen = Observed { first, last: first, ..Observed::default() };
    let mut previous = first;
    while control.goes_on(previous) {
        for _ in 0..CHUNK {
            let now = clock.now();
            let gap = now.saturating_sub(previous);
            if gap > threshold_ticks {
                ring.push(Row { start: previous, ticks: gap, work: 0 });
                seen.detours += 1;
                seen.detour_ticks += gap;
            }
            previous = now;
        }
        seen.iterations += u64::from(CHUNK);
    }
    seen.last = previous;
    seen
}

/// The gaps between consecutive readings, for the loop's quantiles and the clock's granularity.
pub(crate) fn gaps<C: Clock>(clock: C, gaps: &mut [u32]) {
    let mut previous = clock.now();
    for gap in gaps {
        let now = clock.now();
        *gap = u32::try_from(now.saturating_sub(previous)).unwrap_or(u32::MAX);
        previous = now;
    }
}

/// A bare fenced clock loop, the reference for the detour loop. Returns the ticks that `turns` readings take.
pub(crate) fn bare<C: Clock>(clock: C, turns: u64) -> u64 {
    let first = clock.now();
    let mut last = first;
    for _ in 0..turns {
        last = black_box(clock.now());
    }
    last.saturating_sub(first)
}

/// Steps of the linear congruential generator of De et al. 2008, eq. 1.
#[inline]
fn lcg(mut x: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        x = black_box(x).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    x
}

/// The number of generator steps that fill an undisturbed quantum of `quantum_ticks`, from the fastest of several tries.
pub(crate) fn steps_per_quantum<C: Clock>(clock: C, quantum_ticks: u64) -> u64 {
    const STEPS: u64 = 2_000;
    let fastest = (0..200).map(|_| {
        let start = clock.now();
        black_box(lcg(1, STEPS));
        clock.now().saturating_sub(start)
    });
    let ticks = fastest.min().unwrap_or(1).max(1);
    (u128::from(quantum_ticks) * u128::from(STEPS) / u128::from(ticks)).clamp(1, 1 << 50) as u64
}

/// Fixed work quanta (Hoefler et al. 2010): repeats the same work and stores the time of each.
pub(crate) fn fixed_work<C: Clock>(clock: C, steps: u64, ring: &Ring, control: &Control) -> Observed {
    let first = clock.now();
    let mut seen = Observed { first, last: first, ..Observed::default() };
    let mut x = 1;
    while control.goes_on(seen.last) {
        // The next quantum starts where this one ends, so that no detour falls between them.
        let start = seen.last;
        x = lcg(x, steps);
        seen.last = clock.now();
        ring.push(Row { start, ticks: seen.last.saturating_sub(start), work: steps });
        seen.iterations += 1;
    }
    black_box(x);
    seen
}

/// Times loads from each level in turn. A row's work is the number of the level.
pub(super) fn memory<C: Clock>(
    clock: C,
    mut levels: Vec<Walk<'_>>,
    ring: &Ring,
    control: &Control,
) -> Observed {
    let first = clock.now();
    let mut seen = Observed { first, last: first, ..Observed::default() };
    while !levels.is_empty() && control.goes_on(seen.last) {
        for (work, walk) in (0..).zip(&mut levels) {
            walk.warm();
            let start = clock.now();
            walk.load();
            seen.last = clock.now();
            ring.push(Row { start, ticks: seen.last.saturating_sub(start), work });
            seen.iterations += 1;
        }
    }
    seen
}

/// Fixed time quanta: how many steps fit between the beats of a fixed period.
pub(crate) fn fixed_time<C: Clock>(clock: C, quantum_ticks: u64, ring: &Ring, control: &Control) -> Observed {
    const UNIT: u64 = 16;
    let first = clock.now();
    let mut seen = Observed { first, last: first, ..Observed::default() };
    let mut beat = first;
    let mut x = 1;
    while control.goes_on(seen.last) {
        // A beat that falls entirely into a long detour is a quantum without work, so that the period is kept.
        let next = beat.saturating_add(quantum_ticks.max(1));
        let mut work = 0;
        while seen.last < next {
            x = lcg(x, UNIT);
            work += UNIT;
            seen.last = clock.now();
        }
        ring.push(Row { start: beat, ticks: next - beat, work });
        beat = next;
        seen.iterations += 1;
    }
    black_box(x);
    seen
}
