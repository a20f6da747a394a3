//! When this process was stopped and went on: a stop (SIGSTOP, a debugger, job control) looks like a detour on every CPU, and is none.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::clock::monotonic_ns;

/// Times on CLOCK_MONOTONIC at which the process went on; the latest replace the oldest.
static TIMES: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static CATCH: Once = Once::new();

/// Time that may pass between the end of the stop on a probed CPU and the handler on another.
const LATE_NS: u64 = 50_000_000;
/// A shorter gap is not a stop that someone made.
const LEAST_NS: u64 = 200_000;

/// The stops since this was made.
#[derive(Debug)]
pub(super) struct Stops {
    before: usize,
}

impl Stops {
    /// Notes the process's stops from now on.
    pub fn new() -> Self {
        CATCH.call_once(|| {
            let handler: extern "C" fn(libc::c_int) = goes_on;
            // SAFETY: the handler makes only an async-signal-safe call and writes atomics. Calls that the signal interrupts are restarted.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(libc::SIGCONT, &raw const action, std::ptr::null_mut());
            }
        });
        Self { before: COUNT.load(Ordering::SeqCst) }
    }

    /// Number of times that the process went on.
    pub fn count(&self) -> usize {
        COUNT.load(Ordering::SeqCst) - self.before
    }

    /// Whether a gap from `start_ns` to `end_ns`, on CLOCK_MONOTONIC, is a stop.
    pub fn explain(&self, start_ns: u64, end_ns: u64) -> bool {
        let recent = self.count().min(TIMES.len());
        end_ns.saturating_sub(start_ns) >= LEAST_NS
            && (0..recent).any(|back| {
                let at = (COUNT.load(Ordering::SeqCst) - 1 - back) % TIMES.len();
                let went_on = TIMES[at].load(Ordering::SeqCst);
                start_ns < went_on && went_on <= end_ns + LATE_NS
            })
    }
}

extern "C" fn goes_on(_: libc::c_int) {
    let at = COUNT.load(Ordering::SeqCst);
    TIMES[at % TIMES.len()].store(monotonic_ns(), Ordering::SeqCst);
    COUNT.store(at + 1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_which_the_process_went_on_is_a_stop() {
        let stops = Stops::new();
        let before = monotonic_ns();
        assert!(!stops.explain(before - LEAST_NS, before));
        // SAFETY: the handler is installed.
        unsafe { libc::raise(libc::SIGCONT) };
        let after = monotonic_ns();
        assert_eq!(stops.count(), 1);
        assert!(stops.explain(before - LEAST_NS, after), "it went on within");
        assert!(stops.explain(before - 2 * LEAST_NS, before - LEAST_NS), "the handler came late");
        assert!(!stops.explain(after - 1, after), "too short");
        assert!(!stops.explain(after, after + LEAST_NS), "it was over");
        assert_eq!(Stops::new().count(), 0);
    }
}
