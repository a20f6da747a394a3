//! The kernel's timers, and the signal that they send. System calls are made directly, because the C library's functions belong to the
//! program, and may be hooked.

use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, Ordering};

use super::thread::NONE;

/// What a timer's signal carries in addition to the thread's number: `QUELLTHR` without the number's bits.
const TAG: usize = 0x5155_454c_4c54_0000;
const NUMBER: usize = 0xffff;

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signal in use; 0 if none is.
#[inline]
pub fn number() -> c_int {
    SIGNAL.load(Ordering::Acquire)
}

/// A handler with the arguments of SA_SIGINFO.
pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Takes the highest free realtime signal except the last, and installs a handler.
pub(super) fn install(handler: Handler) -> Option<c_int> {
    if number() != 0 {
        return Some(number());
    }
    let mut signal = libc::SIGRTMAX().wrapping_sub(1);
    while signal >= libc::SIGRTMIN() {
        // SAFETY: all-zero is a valid action, and `old` is valid for writes.
        let free = unsafe {
            let mut old: libc::sigaction = zeroed();
            libc::sigaction(signal, core::ptr::null(), &raw mut old) == 0 && old.sa_sigaction == libc::SIG_DFL
        };
        if free && set_handler(signal, handler) {
            SIGNAL.store(signal, Ordering::Release);
            return Some(signal);
        }
        signal = signal.wrapping_sub(1);
    }
    None
}

/// SA_RESTART, so that interrupted calls resume. SA_ONSTACK, because a program that sets an alternate stack has a reason: its normal stack
/// may be a coroutine's few kilobytes, or nearly used up. All signals are blocked during the handler, as if the CPU were taken away, and
/// because a handler of the program that jumps away must not jump out of ours.
fn set_handler(signal: c_int, handler: Handler) -> bool {
    // SAFETY: all-zero is a valid action; it and its mask live through the calls; the handler has the type that SA_SIGINFO requires.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, null_mut()) == 0
    }
}

/// Releases the signal. No timer may exist any more.
pub fn uninstall() {
    let signal = SIGNAL.swap(0, Ordering::AcqRel);
    if signal != 0 {
        // SAFETY: all-zero is the default action.
        unsafe {
            let action: libc::sigaction = zeroed();
            libc::sigaction(signal, &raw const action, null_mut());
        }
    }
}

/// The number of the thread whose timer sent this; `None` for a signal from another sender.
pub(super) fn sender(info: *const libc::siginfo_t) -> Option<usize> {
    // SAFETY: the kernel passes a complete `siginfo_t` to a handler with SA_SIGINFO, and SI_TIMER has a value.
    let value = unsafe {
        let info = info.as_ref()?;
        if info.si_code != libc::SI_TIMER {
            return None;
        }
        info.si_value().sival_ptr as usize
    };
    (value & !NUMBER == TAG).then_some(value & NUMBER)
}

/// The bit of our signal in the kernel's 64-bit mask.
fn bit() -> u64 {
    1u64.checked_shl((number() as u32).wrapping_sub(1)).unwrap_or(0)
}

/// Blocks our signal in the calling thread, and returns whether it was not blocked before.
#[inline]
pub fn block() -> bool {
    let bit = bit();
    bit != 0 && mask(libc::SIG_BLOCK, bit) & bit == 0
}

/// Unblocks our signal in the calling thread.
#[inline]
pub fn unblock() {
    mask(libc::SIG_UNBLOCK, bit());
}

fn mask(how: c_int, set: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: both masks have the size that is passed, and live through the call.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, &raw mut old, size_of::<u64>()) };
    old
}

/// Creates a timer that signals the calling thread, which has this number.
pub(super) fn create(thread: usize) -> i32 {
    let mut timer: c_int = NONE;
    // SAFETY: all-zero is a valid event; it and the storage for the timer's id live through the call.
    let made = unsafe {
        let mut event: libc::sigevent = zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = number();
        event.sigev_value.sival_ptr = (TAG | (thread & NUMBER)) as *mut c_void;
        event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as c_int;
        libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer)
    };
    if made == 0 { timer } else { NONE }
}

/// Sets a timer to expire once, at a time on CLOCK_MONOTONIC; `u64::MAX` for never.
pub(super) fn set(timer: i32, at_ns: u64) -> bool {
    // A time of zero stops the timer.
    let at_ns = if at_ns == u64::MAX { 0 } else { at_ns.max(1) };
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    let value = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
    let old: *mut libc::itimerspec = null_mut();
    // SAFETY: `value` lives through the call; a timer id that no longer exists gives an error.
    unsafe { libc::syscall(libc::SYS_timer_settime, timer, libc::TIMER_ABSTIME, &raw const value, old) == 0 }
}

/// Deletes a timer.
pub(super) fn delete(timer: i32) {
    // SAFETY: a plain call with a number.
    unsafe { libc::syscall(libc::SYS_timer_delete, timer) };
}
