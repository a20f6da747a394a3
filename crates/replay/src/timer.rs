//! Injects noise into each thread of any program, by timers and a signal.
//!
//! A timer expires when the next detour begins, and the handler of its signal burns what is due ([`timer_schedule`] has the arithmetic). Each
//! thread has two timers that take turns: when one expires, the other is set already, and the first is then set for the detour after
//! that. A timer that is not the next one on its CPU can be set without reprogramming the clock hardware, which takes many microseconds in
//! a virtual machine. The handler sets it before it burns, so that the cost is part of the detour and not of the overhead.

#[cfg(all(feature = "timer", not(test)))]
mod preload;
pub mod signal;
pub mod thread;
pub mod timer_schedule;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::report::{Field, Report};
use crate::spin::{burn_until, now_ns};
use thread::{NONE, Thread};
use timer_schedule::{Aim, Next, Plan};

/// How much longer than planned a burn may take before the next timer must be set again.
const MARGIN_NS: u64 = 1_000;

/// The noise of a process, and its report.
#[derive(Debug)]
pub struct Engine {
    /// The noise.
    pub plan: Plan,
    /// The report.
    pub report: Report<'static>,
    /// Whether threads get extra time to make progress where signals are slow; off while the cost of signals is measured.
    pub spares: bool,
}

/// The handler for signals of our number that none of our timers sent.
static OTHERWISE: AtomicUsize = AtomicUsize::new(0);

impl Engine {
    /// Takes a signal for the timers of this process; false if none is free. `otherwise` handles signals of that number from other senders.
    pub fn install(otherwise: Option<signal::Handler>) -> bool {
        OTHERWISE.store(otherwise.map_or(0, |otherwise| otherwise as *const () as usize), Ordering::Release);
        signal::install(on_signal).is_some()
    }

    /// Starts the noise of the calling thread.
    pub fn begin(&'static self, thread: &'static Thread) -> bool {
        let begun = self.arm(thread);
        if begun {
            self.report.add(Field::Threads, 1);
        }
        begun
    }

    /// Starts the noise of a thread that is counted already.
    pub fn arm(&'static self, thread: &'static Thread) -> bool {
        // The first timer must not interrupt this before the second one is set.
        signal::block();
        thread.engine.store(core::ptr::from_ref(self).cast_mut(), Ordering::Release);
        for timer in &thread.timers {
            timer.store(signal::create(thread.number()), Ordering::Release);
        }
        if thread.timers.iter().any(|timer| timer.load(Ordering::Relaxed) == NONE) {
            self.missed(thread);
            return false;
        }
        let now = now_ns();
        self.aim(thread, now, now);
        signal::unblock();
        true
    }

    /// Ends the noise of the calling thread. Our signal stays blocked in it, because one may still be pending.
    pub fn end(thread: &Thread) {
        signal::block();
        for timer in &thread.timers {
            let timer = timer.swap(NONE, Ordering::AcqRel);
            if timer != NONE {
                signal::delete(timer);
            }
        }
        thread.free();
    }

    /// Counts a thread that cannot get noise, once.
    fn missed(&self, thread: &Thread) {
        if !thread.missed.swap(true, Ordering::Relaxed) {
            self.report.add(Field::Missed, 1);
        }
    }

    fn struck(&self, thread: &Thread, entry: u64) {
        let Some(until) = self.deliver(thread, entry) else { return };
        // An interruption of the handler is not its own cost: the estimate at most doubles, plus a margin, and falls at once.
        let known = thread.over.load(Ordering::Relaxed).saturating_mul(2).saturating_add(MARGIN_NS);
        thread.over.store(now_ns().saturating_sub(until).min(known), Ordering::Relaxed);
    }

    /// Handles a timer, and returns until when it should burn; `None` if the timer is obsolete.
    fn deliver(&self, thread: &Thread, entry: u64) -> Option<u64> {
        let (plan, report) = (&self.plan, &self.report);
        let turn = thread.turn.load(Ordering::Relaxed);
        let (aim, passed) = thread.aim(turn);
        if entry < aim.expiry {
            // The timer had expired already when it was set again.
            return None;
        }
        report.add(Field::Calls, 1);
        report.set(Field::LastNs, entry);
        let lane = thread.lane.load(Ordering::Relaxed);
        let due = plan.due(lane, aim, entry, thread.waited.load(Ordering::Relaxed));
        if passed > 0 || due.absorbed > 0 {
            report.add(Field::AbsorbedNs, passed.saturating_add(due.absorbed));
        }
        // Where signals are slow and detours are shorter than their own overhead, a program would starve. The thread is therefore left
        // alone for as long again as the handler takes too long.
        let peace = plan.peace_ns();
        let more = match self.spares {
            true => thread.over.load(Ordering::Relaxed).saturating_mul(2).saturating_sub(peace),
            false => 0,
        };
        let Some(length) = due.length else {
            self.aim(thread, due.done, entry.saturating_add(more));
            return Some(entry);
        };
        let until = entry.saturating_add(length).saturating_sub(due.overhead).max(entry);
        let free = until.saturating_add(MARGIN_NS);
        let (next, _) = thread.aim(turn ^ 1);
        if next.start >= due.done && next.expiry >= free.saturating_add(peace) {
            thread.turn.store(turn ^ 1, Ordering::Relaxed);
            self.set(thread, turn, next.done(), next.free());
        } else {
            self.aim(thread, due.done, free);
        }
        let end = burn_until(now_ns(), until);
        report.burned(entry, length, end.saturating_sub(entry).saturating_add(due.overhead));
        let (next, _) = thread.aim(thread.turn.load(Ordering::Relaxed));
        if next == Aim::NEVER && self.plan.until_ns < u64::MAX {
            self.report.set(Field::UsedUp, 1);
        }
        let free = end.saturating_add(more);
        if next.expiry < free.saturating_add(peace) {
            self.aim(thread, due.done, free);
        }
        Some(until)
    }

    /// Sets both timers, when the trace is done up to `done`, and the thread makes progress from `free` on.
    fn aim(&self, thread: &Thread, done: u64, free: u64) {
        let turn = thread.turn.load(Ordering::Relaxed);
        let next = self.set(thread, turn, done, free);
        self.set(thread, turn ^ 1, next.done(), next.free());
        if next == Aim::NEVER && self.plan.until_ns < u64::MAX {
            self.report.set(Field::UsedUp, 1);
        }
    }

    /// Sets one timer for the detour that comes next.
    fn set(&self, thread: &Thread, which: usize, done: u64, free: u64) -> Aim {
        let next = match done {
            u64::MAX => Next { aim: Aim::NEVER, absorbed: 0 },
            done => self.plan.next(thread.lane.load(Ordering::Relaxed), done, free),
        };
        thread.set_aim(which, next.aim, next.absorbed);
        let timer = thread.timers[which & 1].load(Ordering::Relaxed);
        if !signal::set(timer, next.aim.expiry) {
            self.missed(thread);
        }
        next.aim
    }
}

/// The handler of our signal.
extern "C" fn on_signal(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let entry = now_ns();
    // SAFETY: the address of this thread's `errno` is always valid.
    let errno = unsafe { &mut *libc::__errno_location() };
    let saved = *errno;
    match signal::sender(info).map(Thread::by_number) {
        Some(Some(thread)) => {
            // SAFETY: it was stored from a `&'static Engine` before the timer was made.
            if let Some(engine) = unsafe { thread.engine.load(Ordering::Acquire).as_ref() } {
                engine.struck(thread, entry);
            }
        }
        Some(None) => {}
        None => {
            let otherwise = OTHERWISE.load(Ordering::Acquire);
            if otherwise != 0 {
                // SAFETY: only `install` stores there, and it stores a `Handler`.
                let otherwise = unsafe { core::mem::transmute::<usize, signal::Handler>(otherwise) };
                otherwise(number, info, context);
            }
        }
    }
    *errno = saved;
}
