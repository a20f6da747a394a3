//! Signals while a command runs: they are the command's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// What came.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// A signal to pass on; 0 for none.
    pub pass: Arc<AtomicI32>,
    /// Whether one came, passed on or not.
    pub came: Arc<AtomicBool>,
}

impl Signals {
    /// From now on signals do not end quell. What the terminal sends reaches the command by itself; what others send to quell is for the
    /// command too. One that quell was told to ignore, as by `nohup`, stays ignored by both.
    pub fn catch() -> anyhow::Result<Self> {
        let signals = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            if is_ignored(signal) {
                continue;
            }
            let Self { pass, came } = signals.clone();
            let action = move |info: &libc::siginfo_t| {
                came.store(true, Ordering::SeqCst);
                if info.si_code != libc::SI_KERNEL {
                    pass.store(signal, Ordering::SeqCst);
                }
            };
            // SAFETY: the action only stores to atomics.
            unsafe { signal_hook_registry::register_sigaction(signal, action) }?;
        }
        Ok(signals)
    }

    /// Whether somebody wants the end.
    pub fn stopped(&self) -> bool {
        self.came.load(Ordering::SeqCst)
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero action is valid, and lives through the call, which changes nothing.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
