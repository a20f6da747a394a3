//! Real-time priority for probes: only on request, only with a deadline, and with two safeguards.
//!
//! A loop that spins under SCHED_FIFO owns its CPU. The loop itself ends at its deadline. If it does not, the
//! watchdog ([`demote`], called by the writer from a CPU that is not probed) takes the priority away. If the writer
//! starves too, the kernel ends the process ([`limit_cpu_time`]).

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Puts the calling thread under SCHED_FIFO.
///
/// # Errors
/// The kernel's error, usually because CAP_SYS_NICE is missing.
pub(crate) fn promote(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority) };
    // SAFETY: `parameters` lives through the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

/// Takes real-time priority from a thread of this process.
pub(crate) fn demote(thread: libc::pid_t) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above. For a thread that has ended already the call fails, which is harmless.
    unsafe { libc::sched_setscheduler(thread, libc::SCHED_OTHER, &raw const parameters) };
}

/// Makes the kernel end the process if a real-time thread runs longer than this without sleeping.
///
/// # Errors
/// The kernel's error.
pub(crate) fn limit_cpu_time(limit: Duration) -> io::Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `now` is valid for writes.
    check(unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &raw mut now) })?;
    let _ = BEFORE.set((now.rlim_cur, now.rlim_max));
    let limit =
        libc::rlimit { rlim_cur: (limit.as_micros() as u64).min(now.rlim_max), rlim_max: now.rlim_max };
    // SAFETY: `limit` lives through the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) })
}

/// The limit as it was before quell changed it.
static BEFORE: OnceLock<(libc::rlim_t, libc::rlim_t)> = OnceLock::new();

/// Gives a command the limit that quell inherited, not the one that quell set for itself.
pub(crate) fn limits_as_before(command: &mut Command) {
    let Some(&(rlim_cur, rlim_max)) = BEFORE.get() else { return };
    let limit = libc::rlimit { rlim_cur, rlim_max };
    // SAFETY: setrlimit is a plain system call, allowed between fork and exec; a refusal leaves the lower limit.
    unsafe {
        command.pre_exec(move || {
            libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit);
            Ok(())
        });
    }
}

/// The calling thread's id.
pub(crate) fn thread_id() -> libc::pid_t {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Blocks signals in the calling thread, so that the thread that waits for them gets them.
pub(crate) fn block_signals() {
    // SAFETY: an all-zero set is valid for `sigfillset` to write to, and both sets live through the calls.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// The share of the CPU that the kernel withholds from real-time threads in each period.
pub(crate) fn throttled_share() -> Option<f64> {
    let value =
        |name: &str| crate::machine::read_line(&format!("/proc/sys/kernel/{name}"))?.parse::<f64>().ok();
    let (runtime, period) = (value("sched_rt_runtime_us")?, value("sched_rt_period_us")?);
    (runtime >= 0.0 && period > 0.0).then(|| 1.0 - runtime / period)
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
