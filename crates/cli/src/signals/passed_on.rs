//! Signals while a command runs: they are passed on to the command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// The signals that arrived.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The signal to pass on; 0 for none.
    pub pass: Arc<AtomicI32>,
    /// Whether a signal arrived, passed on or not.
    pub came: Arc<AtomicBool>,
}

impl Signals {
    /// From now on, signals do not end quell. Those of the terminal reach the command without quell; those sent to quell are passed on to
    /// the command. A signal that quell inherited as ignored, for example by `nohup`, stays ignored.
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

    /// Whether a signal asked for the end.
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
