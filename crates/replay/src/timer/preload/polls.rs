//! Calls that wait for events. Calls that take a temporary signal mask get our signal added to it. A call that does not wait at all has no
//! extra cost, because some programs do little else.

use super::calls::{masked, masked_if, waiting};
use super::next::{hooks, next};
use crate::timer::signal;

/// A mask to wait with, with our signal added.
struct WithOurs(libc::sigset_t);

impl WithOurs {
    /// From the program's mask, if it passed one.
    fn from_mask(mask: usize) -> Option<Self> {
        // SAFETY: the program passed the address of a mask, or null.
        let mut mask = *unsafe { (mask as *const libc::sigset_t).as_ref() }?;
        if signal::number() > 0 {
            // SAFETY: `mask` is a complete set, and the signal number is valid.
            unsafe { libc::sigaddset(&raw mut mask, signal::number()) };
        }
        Some(Self(mask))
    }

    fn address(&self) -> usize {
        &raw const self.0 as usize
    }
}

/// Makes a call with the program's mask plus our signal, or, if it passed none, with our signal blocked.
fn with_mask(mask: usize, call: impl FnOnce(usize) -> isize) -> isize {
    match WithOurs::from_mask(mask) {
        Some(mask) => waiting(|| call(mask.address())),
        None => masked(|| call(0)),
    }
}

/// Whether a timeval or a timespec, both of two words, is present and zero, so that the call does not wait.
fn is_zero(limit: usize) -> bool {
    // SAFETY: the program passed the address of a time, or null.
    unsafe { (limit as *const [i64; 2]).as_ref() }.is_some_and(|limit| *limit == [0, 0])
}

hooks! {
    POLL = poll(list, count, ms) { masked_if(ms as i32 != 0, || next!(POLL(list, count, ms))) }
    POLL_CHK = __poll_chk(list, count, ms, size) {
        masked_if(ms as i32 != 0, || next!(POLL_CHK(list, count, ms, size)))
    }
    PPOLL = ppoll(list, count, limit, mask) { with_mask(mask, |mask| next!(PPOLL(list, count, limit, mask))) }
    PPOLL_CHK = __ppoll_chk(list, count, limit, mask, size) {
        with_mask(mask, |mask| next!(PPOLL_CHK(list, count, limit, mask, size)))
    }
    // `select` writes the remaining time back, so the limit is checked before the call.
    SELECT = select(count, read, write, except, limit) {
        masked_if(!is_zero(limit), || next!(SELECT(count, read, write, except, limit)))
    }
    PSELECT = pselect(count, read, write, except, limit, mask) {
        with_mask(mask, |mask| next!(PSELECT(count, read, write, except, limit, mask)))
    }
    EPOLL_WAIT = epoll_wait(epoll, events, count, ms) {
        masked_if(ms as i32 != 0, || next!(EPOLL_WAIT(epoll, events, count, ms)))
    }
    EPOLL_PWAIT = epoll_pwait(epoll, events, count, ms, mask) {
        with_mask(mask, |mask| next!(EPOLL_PWAIT(epoll, events, count, ms, mask)))
    }
    EPOLL_PWAIT2 = epoll_pwait2(epoll, events, count, limit, mask) {
        with_mask(mask, |mask| next!(EPOLL_PWAIT2(epoll, events, count, limit, mask)))
    }
    SIGSUSPEND = sigsuspend(mask) { with_mask(mask, |mask| next!(SIGSUSPEND(mask))) }
}
