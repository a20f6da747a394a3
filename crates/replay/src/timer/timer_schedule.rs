//! The position of a thread in its noise, and the next time it loses its CPU: arithmetic only.

use crate::ProgressClockView;

/// A detour that is late by up to this is still burned whole, because the machine delayed it. If it is later, the program was not
/// running, and the detour has passed without it.
pub const LATE_NS: u64 = 50_000;
/// 2⁶⁴ over the golden ratio: its multiples are evenly spaced.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The noise of a process.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Its trace.
    pub track: ProgressClockView<'static>,
    /// When the trace is at `place`, on CLOCK_MONOTONIC; there is no noise before that. Negative, wrapped, if that was before the machine
    /// booted.
    pub since_ns: u64,
    /// The position in the trace at that time.
    pub place: u64,
    /// Injection overhead per detour.
    pub overhead_ns: u64,
    /// How much earlier than the detour a timer is set to expire.
    pub early_ns: u64,
    /// Minimum time from the end of a detour until a timer expires.
    pub smallest_gap_ns: u64,
    /// When the noise ends, on CLOCK_MONOTONIC; `u64::MAX` for never.
    pub until_ns: u64,
    /// Whether each thread has its own place in the trace, like each CPU of a node; otherwise all threads lose the CPU at once.
    pub apart: bool,
}

/// The detour for which a thread's timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// When it begins according to the trace.
    pub start: u64,
    /// Its length.
    pub length: u64,
    /// When the thread should lose its CPU: at `start`, or later if it must make progress first.
    pub at: u64,
    /// When the timer expires.
    pub expiry: u64,
}

impl Aim {
    /// No further detour.
    pub const NEVER: Self = Self { start: u64::MAX, length: 0, at: u64::MAX, expiry: u64::MAX };

    /// When it ends according to the trace.
    pub fn done(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// When the thread makes progress again.
    pub fn free(&self) -> u64 {
        self.at.saturating_add(self.length)
    }
}

/// The next detour after a position in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// What the timer is set for.
    pub aim: Aim,
    /// Noise that was skipped, in ns.
    pub absorbed: u64,
}

/// What to burn when a thread's timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The remaining length of the detour; `None` if it has passed.
    pub length: Option<u64>,
    /// Injection overhead to subtract: 0 if the thread was stopped before and is just resuming.
    pub overhead: u64,
    /// Up to when the trace is done.
    pub done: u64,
    /// Noise that was skipped, in ns.
    pub absorbed: u64,
}

impl Plan {
    /// The minimum time between a detour and the next timer in which the thread makes progress.
    pub fn peace_ns(&self) -> u64 {
        self.smallest_gap_ns.max(self.overhead_ns.saturating_mul(2))
    }

    /// Time since the noise began; negative before that.
    fn elapsed(&self, clock: u64) -> i64 {
        clock.wrapping_sub(self.since_ns) as i64
    }

    /// The position of the thread in `lane` in the trace at `clock`.
    fn position(&self, lane: u64, clock: u64) -> u64 {
        let period = self.track.period();
        let offset = match self.apart {
            true => {
                (u128::from(lane.wrapping_mul(GOLDEN)).wrapping_mul(u128::from(period.get())) >> 64) as u64
            }
            false => 0,
        };
        let elapsed = self.elapsed(clock).max(0) as u64 % period;
        // Each term is below 2⁶².
        (self.place % period).wrapping_add(offset).wrapping_add(elapsed)
    }

    /// What to set a timer for, when the trace is done up to `done`, and the thread makes progress again from `free` on.
    pub fn next(&self, lane: u64, done: u64, free: u64) -> Next {
        let done = if self.elapsed(done) < 0 { self.since_ns } else { done };
        // Detours that this engine itself postponed are made up for, up to a limit.
        let from = done.max(free.saturating_sub(LATE_NS));
        let absorbed = self.track.noise_in(self.position(lane, done), from.wrapping_sub(done));
        let Some(ahead) = self.track.ahead(self.position(lane, from)) else {
            return Next { aim: Aim::NEVER, absorbed };
        };
        let start = from.saturating_add(ahead.wait_ns);
        if start >= self.until_ns {
            return Next { aim: Aim::NEVER, absorbed };
        }
        let expiry = start.saturating_sub(self.early_ns).max(free.saturating_add(self.peace_ns()));
        let at = expiry.saturating_add(self.early_ns);
        Next { aim: Aim { start, length: ahead.length_ns, at, expiry }, absorbed }
    }

    /// What the thread in `lane` has to burn at `entry`, when its timer was set for `aim`. If `waited` is set, the thread was in a blocking
    /// call, so detours that are over have passed.
    pub fn due(&self, lane: u64, aim: Aim, entry: u64, waited: bool) -> Due {
        let tolerance = if waited { self.overhead_ns } else { LATE_NS };
        if entry.saturating_sub(aim.at) <= tolerance {
            let overhead = self.overhead_ns;
            return Due { length: Some(aim.length), overhead, done: aim.done(), absorbed: 0 };
        }
        let absorbed = self.track.noise_in(self.position(lane, aim.start), entry.saturating_sub(aim.start));
        match self.track.ahead(self.position(lane, entry)) {
            Some(ahead) if ahead.wait_ns == 0 => Due {
                length: Some(ahead.length_ns),
                overhead: 0,
                done: entry.saturating_add(ahead.length_ns),
                absorbed,
            },
            _ => Due { length: None, overhead: 0, done: entry, absorbed },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A track from detours, (start, length) each.
    fn track(detours: &[(u64, u64)], period: u64) -> ProgressClockView<'static> {
        let (mut starts, mut useful, mut lost) = (Vec::new(), Vec::new(), 0);
        for &(start, length) in detours {
            starts.push(start);
            useful.push(start - lost);
            lost += length;
        }
        starts.push(period);
        useful.push(period - lost);
        starts.append(&mut useful);
        ProgressClockView::from_words(detours.len(), starts.leak()).unwrap()
    }

    fn plan(track: ProgressClockView<'static>) -> Plan {
        Plan {
            track,
            since_ns: 1_000_000_000,
            place: 0,
            overhead_ns: 10_000,
            early_ns: 5_000,
            smallest_gap_ns: 15_000,
            until_ns: u64::MAX,
            apart: true,
        }
    }

    #[test]
    fn a_timer_is_set_early_and_burns_the_whole_detour_on_time() {
        let plan = plan(track(&[(300_000, 25_000)], 1_000_000));
        let aim = plan.next(0, 0, plan.since_ns).aim;
        assert_eq!((aim.start, aim.length), (1_000_300_000, 25_000));
        assert_eq!((aim.at, aim.expiry), (aim.start, aim.start - 5_000));
        let due = plan.due(0, aim, aim.at + 20_000, false);
        assert_eq!(
            due,
            Due { length: Some(25_000), overhead: 10_000, done: aim.start + 25_000, absorbed: 0 }
        );
        let next = plan.next(0, due.done, aim.at + 45_000).aim;
        assert_eq!(next.start, aim.start + 1_000_000);
    }

    #[test]
    fn what_passed_while_the_program_waited_is_absorbed_and_the_rest_burned() {
        let plan = plan(track(&[(100_000, 30_000), (200_000, 30_000), (500_000, 200_000)], 1_000_000));
        let aim = plan.next(0, 0, plan.since_ns).aim;
        let due = plan.due(0, aim, plan.since_ns + 550_000, false);
        let expected = Due {
            length: Some(150_000),
            overhead: 0,
            done: plan.since_ns + 700_000,
            absorbed: 30_000 + 30_000 + 50_000,
        };
        assert_eq!(due, expected);
        let due = plan.due(0, aim, plan.since_ns + 400_000, false);
        assert_eq!(due, Due { length: None, overhead: 0, done: plan.since_ns + 400_000, absorbed: 60_000 });
        let due = plan.due(0, aim, plan.since_ns + 125_000, true);
        assert_eq!(due.length, Some(5_000), "a program known to have waited owes only the rest");
    }

    #[test]
    fn a_thread_is_always_let_on_and_what_was_put_off_is_made_up_for() {
        let plan = plan(track(&[(100_000, 30_000), (135_000, 10_000)], 1_000_000));
        let first = plan.next(0, 0, plan.since_ns).aim;
        let due = plan.due(0, first, first.at, false);
        let end = first.at + 30_000;
        let second = plan.next(0, due.done, end).aim;
        assert_eq!(second.length, 10_000);
        assert_eq!(second.expiry, end + plan.peace_ns());
        assert_eq!(plan.due(0, second, second.at, false).length, Some(10_000));
    }

    #[test]
    fn noise_that_is_too_dense_leaves_the_program_its_peace() {
        let plan = plan(track(&[(5_000, 15_000)], 20_000));
        let (mut done, mut clock, mut burned, mut absorbed) = (0, plan.since_ns, 0, 0);
        while clock < plan.since_ns + 10_000_000 {
            let next = plan.next(0, done, clock);
            let aim = next.aim;
            assert!(aim.expiry >= clock + plan.peace_ns());
            let due = plan.due(0, aim, aim.at, false);
            done = due.done;
            clock = aim.at + due.length.unwrap_or(0);
            burned += due.length.unwrap_or(0);
            absorbed += next.absorbed + due.absorbed;
        }
        assert!(burned < 5_000_000, "half of the time at least is the program's: {burned}");
        let whole = plan.track.noise_in(0, clock - plan.since_ns);
        assert!((burned + absorbed).abs_diff(whole) < 100_000, "{burned} + {absorbed} of {whole}");
    }

    #[test]
    fn a_share_ends_and_a_start_to_come_is_waited_for() {
        let plan = plan(track(&[(300_000, 25_000)], 1_000_000));
        let plan = Plan { until_ns: plan.since_ns + 1_500_000, ..plan };
        let aim = plan.next(0, 0, 5).aim;
        assert_eq!(aim.start, plan.since_ns + 300_000);
        let second = plan.next(0, aim.start + 25_000, aim.start + 25_000).aim;
        assert_eq!(second.start, plan.since_ns + 1_300_000);
        assert_eq!(plan.next(0, second.start + 25_000, second.start + 25_000).aim, Aim::NEVER);
    }

    #[test]
    fn a_trace_that_began_before_the_machine_did_goes_on() {
        let plan = plan(track(&[(300_000, 25_000)], 1_000_000));
        let plan = Plan { since_ns: 0u64.wrapping_sub(7_200_000), ..plan };
        assert_eq!(plan.next(0, 0, 0).aim.start, 100_000);
        assert_eq!(plan.next(0, 5_000_000, 5_000_000).aim.start, 5_100_000);
    }

    #[test]
    fn threads_stand_apart_only_where_asked() {
        let apart = plan(track(&[(300_000, 25_000)], 1_000_000));
        let together = Plan { apart: false, ..apart };
        let start = |plan: &Plan, lane| plan.next(lane, 0, plan.since_ns).aim.start;
        assert_eq!(start(&together, 0), start(&together, 7));
        assert_eq!(start(&together, 0), start(&apart, 0));
        assert_ne!(start(&apart, 0), start(&apart, 1));
    }

    #[test]
    fn a_silent_trace_sets_no_timer() {
        let plan = plan(track(&[], 1_000_000));
        assert_eq!(plan.next(0, 0, plan.since_ns), Next { aim: Aim::NEVER, absorbed: 0 });
    }
}
