//! One phase of one virtual rank: work in slices, with the clock read between them, and detours burned where they strike.

use crate::clock::Clock;

/// A phase's work as calibrated for one CPU. Times are in ticks of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Task {
    /// Slices of full length …
    pub(super) slices: u64,
    /// … of so many steps …
    pub(super) steps: u32,
    /// … and one slice of fewer, so that all together take the quantum.
    pub(super) rest: u32,
    /// How long a full slice takes when nothing disturbs it, with the reading of the clock that ends it.
    pub(super) slice: u64,
    /// A slice longer than that by more than this was disturbed by this machine.
    pub(super) late: u64,
    /// What a detour costs beside the time that is burned: so much less is burned. Below zero where the work that follows is the quicker.
    pub(super) cost: i64,
}

/// A detour on the time line of one phase, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strike {
    /// When it strikes after the phase began; 0 for what is left of one that began before.
    pub(super) at: u64,
    /// How long it lasts.
    pub(super) length: u64,
}

/// How a phase went, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// qt: from its begin to its end, less `own`.
    pub(super) taken: u64,
    /// What this machine's own noise took, as the slices saw it.
    pub(super) own: u64,
    /// How many slices and burns it struck.
    pub(super) struck: u64,
    /// Full slices that neither it nor a detour touched …
    pub(super) plain: u64,
    /// … and their time: at what speed the core ran.
    pub(super) plain_ticks: u64,
}

/// Runs a phase. `work` does so many steps.
///
/// Where this machine itself takes the CPU away, the trace's time stands still: what was lost so is known, and left out of `taken`.
#[inline(always)]
pub(super) fn run<C: Clock>(clock: C, mut work: impl FnMut(u32), task: &Task, strikes: &[Strike]) -> Ran {
    let mut ran = Ran::default();
    let mut strikes = strikes.iter();
    let mut next = strikes.next();
    // How much longer was burned than was to be; the next burn is so much shorter.
    let mut debt = 0i64;
    let begin = clock.now();
    let mut last = begin;
    for slice in 0..=task.slices {
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
    // What struck while the last slice ran delays the end; what strikes in the instant of the end does not.
    while let Some(strike) = next
        && last - begin - ran.own > strike.at
    {
        last = burn(clock, task, *strike, last, &mut debt, &mut ran);
        next = strikes.next();
    }
    ran.taken = (last - begin).saturating_sub(ran.own).saturating_add_signed(-debt);
    ran
}

/// Burns a detour from `last` on, and says when it was over.
#[inline(always)]
fn burn<C: Clock>(clock: C, task: &Task, strike: Strike, last: u64, debt: &mut i64, ran: &mut Ran) -> u64 {
    let length = strike.length as i64 - task.cost - *debt;
    if length <= 0 {
        // Too short to be burned by itself: the next one makes up for it, or `taken` does.
        *debt -= strike.length as i64;
        return last;
    }
    let until = last + length as u64;
    let mut now = last;
    while now < until {
        now = clock.now();
    }
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

/// The state of the generator goes on from call to call, so no call can be left out or moved by a compiler.
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
