//! Noise by a timer and a signal in each thread of any program.
//!
//! A timer runs out when the next detour begins; its signal's handler burns what is due, and sets the timer for the one after
//! ([`course`] has the arithmetic). The timer is set before the burning, so that the call is a part of the detour and not of what it
//! costs beside.

pub mod course;
#[cfg(all(feature = "timer", not(test)))]
mod preload;
pub mod signal;
pub mod thread;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::report::{Field, Report};
use crate::spin::{burn_until, now_ns};
use course::Plan;
use thread::{NONE, Thread};

/// What burning may take longer than planned before the next timer is set anew.
const MARGIN_NS: u64 = 1_000;

/// The noise of a process, and where it tells what came of it.
#[derive(Debug)]
pub struct Engine {
    /// The noise.
    pub plan: Plan,
    /// What is told.
    pub report: Report<'static>,
}

/// What to do with a signal of our number that no timer of ours sent.
static OTHERWISE: AtomicUsize = AtomicUsize::new(0);

impl Engine {
    /// Takes a signal for the timers of this process; false where none is free. `otherwise` is asked about signals that others send.
    pub fn install(otherwise: Option<signal::Handler>) -> bool {
        OTHERWISE.store(otherwise.map_or(0, |otherwise| otherwise as *const () as usize), Ordering::Release);
        signal::install(strike).is_some()
    }

    /// From now on the calling thread suffers.
    pub fn begin(&'static self, thread: &'static Thread) -> bool {
        thread.engine.store(core::ptr::from_ref(self).cast_mut(), Ordering::Release);
        let timer = signal::create(thread.number());
        if timer == NONE {
            self.report.add(Field::Missed, 1);
            return false;
        }
        thread.timer.store(timer, Ordering::Release);
        signal::unblock();
        self.report.add(Field::Threads, 1);
        let now = now_ns();
        self.aim(thread, now, now);
        true
    }

    /// The calling thread has suffered enough. Our signal stays blocked in it, for one may still be on its way.
    pub fn end(thread: &Thread) {
        signal::block();
        let timer = thread.timer.swap(NONE, Ordering::AcqRel);
        if timer != NONE {
            signal::delete(timer);
        }
        thread.free();
    }

    fn struck(&self, thread: &Thread, entry: u64) {
        let (plan, report, aim) = (&self.plan, &self.report, thread.aim());
        if entry < aim.expiry {
            // Of a timer that was set anew when it had run out already.
            return;
        }
        report.add(Field::Calls, 1);
        report.set(Field::LastNs, entry);
        let lane = thread.lane.load(Ordering::Relaxed);
        let due = plan.due(lane, aim, entry, thread.waited.load(Ordering::Relaxed));
        if due.absorbed > 0 {
            report.add(Field::AbsorbedNs, due.absorbed);
        }
        let Some(length) = due.length else {
            self.aim(thread, due.done, entry);
            return;
        };
        let until = entry.saturating_add(length).saturating_sub(plan.overhead_ns).max(entry);
        let next = self.aim(thread, due.done, until.saturating_add(MARGIN_NS));
        let end = burn_until(now_ns(), until);
        report.burned(entry, length, end.saturating_sub(entry).saturating_add(plan.overhead_ns));
        if next.is_some_and(|expiry| expiry < end.saturating_add(plan.peace_ns())) {
            self.aim(thread, due.done, end);
        }
    }

    /// Sets the timer for what is next, and says when it runs out.
    fn aim(&self, thread: &Thread, done: u64, free: u64) -> Option<u64> {
        let lane = thread.lane.load(Ordering::Relaxed);
        let next = self.plan.next(lane, done, free);
        if next.absorbed > 0 {
            self.report.add(Field::AbsorbedNs, next.absorbed);
        }
        let Some(aim) = next.aim else {
            if self.plan.until_ns < u64::MAX {
                self.report.set(Field::UsedUp, 1);
            }
            return None;
        };
        thread.set_aim(aim);
        if !signal::set(thread.timer.load(Ordering::Relaxed), aim.expiry) {
            self.report.add(Field::Missed, 1);
        }
        Some(aim.expiry)
    }
}

/// The handler of our signal.
extern "C" fn strike(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let entry = now_ns();
    // SAFETY: the place of this thread's `errno` is always valid.
    let errno = unsafe { &mut *libc::__errno_location() };
    let saved = *errno;
    match signal::sender(info).map(Thread::of) {
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
