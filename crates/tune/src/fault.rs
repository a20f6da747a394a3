//! Points at which the tests kill the process: one before and one after each step that a plan and its journal take.

use std::sync::atomic::{AtomicU64, Ordering};

/// The variable with the number of the point to die at, counted from 1.
pub const VARIABLE: &str = "QUELL_FAULT_AT";

/// Kills the process by SIGKILL if this is the selected point.
pub fn point() {
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    let turn = std::env::var(VARIABLE).ok().and_then(|text| text.parse::<u64>().ok());
    if turn == Some(passed) {
        // SAFETY: raise has no precondition; SIGKILL does not return.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}
