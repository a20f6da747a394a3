//! One phase of one virtual rank: work in slices, with a reading of the clock after each, and detours burned where they are due.

use crate::clock::Clock;

/// A phase's work as calibrated for one CPU. Times are in ticks of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Task {
    /// Number of slices of full length …
    pub(super) slices: u64,
    /// … the number of steps in each …
    pub(super) steps: u32,
    /// … and one slice with fewer steps, so that the total takes the quantum.
    pub(super) rest: u32,
    /// The length of an undisturbed full slice, including the clock reading that ends it.
    pub(super) slice: u64,
    /// A slice that takes longer than its usual length by more than this was disturbed by this machine.
    pub(super) late: u64,
    /// The overhead of a detour, by which each burn is shortened. Negative if the work after a burn runs faster.
    pub(super) cost: i64,
}

/// A detour on the timeline of one phase, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedDetour {
    /// When it is due, counted from the start of the phase; 0 for the rest of a detour that began before.
    pub(super) at: u64,
    /// How long it lasts.
    pub(super) length: u64,
}

/// What happened in a phase, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// qt: from start to end, less `own`.
    pub(super) taken: u64,
    /// This machine's own noise, as seen by the slices.
    pub(super) own: u64,
    /// Number of slices and burns that it disturbed.
    pub(super) struck: u64,
    /// Full slices that neither own noise nor a detour touched …
    pub(super) plain: u64,
    /// … and their time, which gives the core's speed.
    pub(super) plain_ticks: u64,
}

/// Runs a phase. `work` performs the number of steps that it is passed.
///
/// While this machine itself takes the CPU away, the time of the trace stands still: the slices show how much was lost, and `taken`
/// leaves it out.
#[inline(always)]
pub(super) fn run<C: Clock>(
    clock: C,
    mut work: impl FnMut(u32),
    task: &Task,
    strikes: &[PlannedDetour],
) -> Ran {
    let mut ran = Ran::default();
    let mut strikes = strikes.iter();
    let mut next = strikes.next();
    // By how much the last burn was too long; the next burn is shortened by this.
    let mut debt = 0i64;
    let begin = clock.now();
    let mut last = begin;
    for slice in 0..=task.slices {
        // The position in the trace is the time of the phase without this machine's own noise.
        let mut plain = slice < task.slices;
        while let Some(strike) = next
            && last - begin - ran.own >= strike.at
        {
            last = burn(clock, task, *strike, last, &mut debt, &mut ran);
            next = strikes.next();
            plain = false;
        }
        let (steps, usual) = if slice < task.slices {
            (task.steps, task.slice)
        } else {
            (task.rest, task.slice * u64::from(task.rest) / u64::from(task.steps.max(1)))
        };
        work(steps);
        let now = clock.now();
        let taken = now.saturating_sub(last);
        let longer = taken.saturating_sub(usual);
        if longer > task.late {
            ran.own += longer;
            ran.struck += 1;
        } else if plain {
            ran.plain += 1;
            ran.plain_ticks += taken;
        }
        last = now;
    }
    // A detour that is due while the last slice runs delays the end; one that is due exactly at the end does not.
    while let Some(strike) = next
        && last - begin - ran.own > strike.at
    {
        last = burn(clock, task, *strike, last, &mut debt, &mut ran);
        next = strikes.next();
    }
    ran.taken = (last - begin).saturating_sub(ran.own).saturating_add_signed(-debt);
    ran
}

/// Burns a detour that begins at `last`, and returns when it ended.
#[inline(always)]
fn burn<C: Clock>(
    clock: C,
    task: &Task,
    strike: PlannedDetour,
    last: u64,
    debt: &mut i64,
    ran: &mut Ran,
) -> u64 {
    // Without what a burn takes in addition to its length, and without what the last one took too much.
    let length = strike.length as i64 - task.cost - *debt;
    if length <= 0 {
        // Too short to be burned by itself: the next burn makes up for it, or `taken` at the end.
        *debt -= strike.length as i64;
        return last;
    }
    let until = last + length as u64;
    let mut now = last;
    while now < until {
        now = clock.now();
    }
    // A burn ends up to one clock reading late, which the next one makes up for; more than `late` is another program's.
    let over = now - until;
    *debt = 0;
    if over > task.late {
        ran.own += over;
        ran.struck += 1;
    } else {
        *debt = over as i64;
    }
    now
}

/// The state of the generator carries over from call to call, so a compiler can neither drop nor move a call.
#[derive(Debug)]
pub(super) struct Generator(u64);

impl Generator {
    pub(super) fn new() -> Self {
        Self(1)
    }

    /// Steps of a linear congruential generator (De et al. 2008, eq. 1).
    #[inline(always)]
    pub(super) fn steps(&mut self, steps: u32) {
        let mut x = std::hint::black_box(self.0);
        for _ in 0..steps {
            x = (16_807 * x + 11) % 2_147_483_647;
        }
        self.0 = std::hint::black_box(x);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use quell_replay::ProgressClockView;

    use super::*;
    use crate::injector::phases::strikes::gather;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// A clock on which each reading takes one tick.
    #[derive(Clone, Copy)]
    struct Fake;

    impl Clock for Fake {
        fn now(self) -> u64 {
            pass(1);
            NOW.get()
        }
    }

    fn pass(ticks: u64) {
        NOW.set(NOW.get() + ticks);
    }

    /// 20 slices of 9 steps and one of 4, each with a reading of the clock: 205 ticks.
    const TASK: Task = Task { slices: 20, steps: 9, rest: 4, slice: 10, late: 50, cost: 0 };
    const QUANTUM: u64 = 205;

    /// The words of a random track that depends only on the seed.
    fn track_words(seed: u64) -> (usize, Vec<u64>) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let count = draw(30) as usize;
        let (mut starts, mut useful, mut now, mut lost) = (Vec::new(), Vec::new(), 0, 0);
        for _ in 0..count {
            now += draw(if seed.is_multiple_of(2) { 60 } else { 400 });
            starts.push(now);
            useful.push(now - lost);
            let length = 1 + draw(80);
            (now, lost) = (now + length, lost + length);
        }
        now += 300;
        starts.push(now);
        useful.push(now - lost);
        (count, [starts, useful].concat())
    }

    fn phase(track: &ProgressClockView<'_>, at: u64, task: &Task, mut work: impl FnMut(u32)) -> Ran {
        let mut strikes = Vec::new();
        gather(track, at, QUANTUM, 1.0, &mut strikes);
        run(Fake, &mut work, task, &strikes)
    }

    #[test]
    fn a_phase_takes_what_the_progress_clock_says() {
        for seed in 1..400 {
            let (count, words) = track_words(seed);
            let track = ProgressClockView::from_words(count, &words).unwrap();
            for at in (0..track.period().get()).step_by(7) {
                let ran = phase(&track, at, &TASK, |steps| pass(steps.into()));
                assert_eq!((ran.taken, ran.own), (QUANTUM + track.delay(at, QUANTUM), 0), "{seed} at {at}");
            }
        }
    }

    #[test]
    fn the_overhead_of_a_detour_is_subtracted() {
        let (count, words) = track_words(12);
        let track = ProgressClockView::from_words(count, &words).unwrap();
        let noise = track.delay(0, QUANTUM);
        let ran = phase(&track, 0, &Task { cost: 3, ..TASK }, |steps| pass(steps.into()));
        assert!(noise > 0 && ran.taken < QUANTUM + noise);
    }

    #[test]
    fn own_noise_stops_the_traces_time_and_is_left_out() {
        for seed in 1..100 {
            let (count, words) = track_words(seed);
            let track = ProgressClockView::from_words(count, &words).unwrap();
            let mut slices = 0;
            let ran = phase(&track, 0, &TASK, |steps| {
                slices += 1;
                pass(u64::from(steps) + if slices % 6 == 0 { 1_000 } else { 0 });
            });
            assert_eq!((ran.own, ran.struck), (3_000, 3));
            assert_eq!(ran.taken, QUANTUM + track.delay(0, QUANTUM), "{seed}");
        }
    }

    #[test]
    fn the_cores_speed_is_read_from_undisturbed_slices() {
        let (count, words) = track_words(3);
        let track = ProgressClockView::from_words(count, &words).unwrap();
        let ran = phase(&track, 0, &TASK, |steps| pass(u64::from(steps) + 1));
        assert!(ran.plain > 0 && ran.plain_ticks == 11 * ran.plain, "{ran:?}");
    }
}
