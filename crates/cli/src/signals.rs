//! The signals that end quell.

mod passed_on;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

pub use passed_on::Signals;

/// A flag that SIGINT, SIGTERM and SIGHUP set. A second signal ends quell at once, and leaves the recording as after a crash. The process
/// has one flag, which each call clears; a caller that has finished sets it, so that from then on a signal ends quell as usual.
pub fn stopped_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(stop) = STOP.get() {
        stop.store(false, Ordering::SeqCst);
        return Ok(Arc::clone(stop));
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(Arc::clone(STOP.get_or_init(|| stop)))
}
