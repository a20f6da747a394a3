//! The program cannot block, replace or wait for our signal, and its jumps out of handlers do not leave the signal blocked.

use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::calls::masked;
use super::next::{hooks, next};
use super::threads::current;
use crate::timer::signal;

/// What the program has set as our signal's action: its handler, and its flags.
static BELIEVED: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicU64 = AtomicU64::new(0);

/// Handles our signal when another sender sent it: does what would happen without us.
pub extern "C" fn forward_signal(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    match BELIEVED.load(Ordering::Acquire) {
        libc::SIG_IGN => {}
        libc::SIG_DFL => end_by(number),
        handler => {
            // SAFETY: the program passed it as a handler; one that takes only the number ignores the other arguments.
            let handler = unsafe { core::mem::transmute::<usize, signal::Handler>(handler) };
            handler(number, info, context);
        }
    }
}

/// The default action of a realtime signal ends the process, as soon as our handler returns and unblocks the signal.
fn end_by(number: c_int) {
    // SAFETY: all-zero is the default action.
    let action: libc::sigaction = unsafe { zeroed() };
    next!(SIGACTION(number as usize, &raw const action as usize, 0));
    // SAFETY: a plain call with a number.
    unsafe { libc::raise(number) };
}

/// A signal set of the program, with our signal removed or added.
fn changed(set: usize, ours: bool) -> Option<libc::sigset_t> {
    // SAFETY: the program passed the address of a set, or null.
    let mut set = *unsafe { (set as *const libc::sigset_t).as_ref() }?;
    if signal::number() > 0 {
        // SAFETY: `set` is a complete set, and the signal number is valid.
        unsafe {
            if ours {
                libc::sigaddset(&raw mut set, signal::number());
            } else {
                libc::sigdelset(&raw mut set, signal::number());
            }
        }
    }
    Some(set)
}

/// Changes a mask by `call`, which gets a set without our signal. If the program unblocks signals, ours is unblocked as well.
fn mask(how: usize, set: usize, call: impl FnOnce(usize) -> isize) -> isize {
    let set = changed(set, how as i32 == libc::SIG_UNBLOCK);
    call(set.as_ref().map_or(0, |set| &raw const *set as usize))
}

/// Waits for signals by `call`, which gets a set without our signal.
fn wait(set: usize, call: impl FnOnce(usize) -> isize) -> isize {
    let set = changed(set, false);
    masked(|| call(set.as_ref().map_or(0, |set| &raw const *set as usize)))
}

/// Runs before a jump: if it leads out of a call for which we blocked our signal, no other code would unblock it.
fn jump() {
    if let Some(thread) = current().filter(|thread| thread.waited.load(Ordering::Relaxed)) {
        thread.waited.store(false, Ordering::Relaxed);
        signal::unblock();
    }
}

fn is_ours(number: usize) -> bool {
    number as c_int == signal::number() && signal::number() > 0
}

/// Pretends to the program that it set our signal's action.
fn pretend(action: *const libc::sigaction, old: *mut libc::sigaction) -> isize {
    // SAFETY: the program passed addresses of actions, or null; all-zero is a valid action.
    unsafe {
        let mut believed: libc::sigaction = zeroed();
        believed.sa_sigaction = BELIEVED.load(Ordering::Acquire);
        believed.sa_flags = FLAGS.load(Ordering::Relaxed) as c_int;
        if let Some(action) = action.as_ref() {
            FLAGS.store(action.sa_flags as u32 as u64, Ordering::Relaxed);
            BELIEVED.store(action.sa_sigaction, Ordering::Release);
        }
        if let Some(old) = old.as_mut() {
            *old = believed;
        }
    }
    0
}

hooks! {
    PTHREAD_SIGMASK = pthread_sigmask(how, set, old) {
        mask(how, set, |set| next!(PTHREAD_SIGMASK(how, set, old)))
    }
    SIGPROCMASK = sigprocmask(how, set, old) { mask(how, set, |set| next!(SIGPROCMASK(how, set, old))) }
    SIGACTION = sigaction(number, action, old) {
        if is_ours(number) {
            return pretend(action as *const libc::sigaction, old as *mut libc::sigaction);
        }
        // SAFETY: the program passed the address of an action, or null.
        let Some(mut action) = unsafe { (action as *const libc::sigaction).as_ref() }.copied() else {
            return next!(SIGACTION(number, 0, old));
        };
        // Noise interrupts the program's own handlers, too.
        if let Some(mask) = changed(&raw const action.sa_mask as usize, false) {
            action.sa_mask = mask;
        }
        next!(SIGACTION(number, &raw const action as usize, old))
    }
    SIGNAL = signal(number, handler) {
        if is_ours(number) {
            return BELIEVED.swap(handler, Ordering::AcqRel) as isize;
        }
        next!(SIGNAL(number, handler))
    }
    SIGWAIT = sigwait(set, number) { wait(set, |set| next!(SIGWAIT(set, number))) }
    SIGWAITINFO = sigwaitinfo(set, info) { wait(set, |set| next!(SIGWAITINFO(set, info))) }
    SIGTIMEDWAIT = sigtimedwait(set, info, limit) { wait(set, |set| next!(SIGTIMEDWAIT(set, info, limit))) }
    SIGNALFD = signalfd(file, set, flags) {
        let set = changed(set, false);
        next!(SIGNALFD(file, set.as_ref().map_or(0, |set| &raw const *set as usize), flags))
    }
    LONGJMP = longjmp(place, value) {
        jump();
        next!(LONGJMP(place, value))
    }
    UNDERSCORE_LONGJMP = _longjmp(place, value) {
        jump();
        next!(UNDERSCORE_LONGJMP(place, value))
    }
    SIGLONGJMP = siglongjmp(place, value) {
        jump();
        next!(SIGLONGJMP(place, value))
    }
    LONGJMP_CHK = __longjmp_chk(place, value) {
        jump();
        next!(LONGJMP_CHK(place, value))
    }
}
