//! Calls that a signal ends early whatever its handler's flags (signal(7)): our signal waits until they are over.
//!
//! That is also what noise does to a program that sleeps: nothing, but for what still goes on when it wakes.
//! Left as they are, because they go on by themselves after SA_RESTART: wait, read and write of what has no time limit, flock, futexes
//! without one, `sem_wait`, and the threads' conditions and mutexes.

use core::sync::atomic::Ordering;

use super::next::{hooks, next};
use super::threads::current;
use crate::timer::signal;

/// Makes a call with our signal blocked.
#[inline]
pub fn masked(call: impl FnOnce() -> isize) -> isize {
    // Blocked already: by the call within which a handler of the program's makes this one.
    if !signal::block() {
        return call();
    }
    waiting(|| {
        let result = call();
        signal::unblock();
        result
    })
}

/// Makes a call that blocks our signal itself.
#[inline]
pub fn waiting(call: impl FnOnce() -> isize) -> isize {
    let Some(thread) = current() else { return call() };
    thread.waited.store(true, Ordering::Relaxed);
    let result = call();
    thread.waited.store(false, Ordering::Relaxed);
    result
}

/// Makes a call that may wait only if `waits`. If a signal ended one that does not, it is made again: it cannot be ours twice.
#[inline]
pub fn masked_if(waits: bool, call: impl Fn() -> isize) -> isize {
    if waits {
        return masked(call);
    }
    // SAFETY: the place of this thread's errno is always valid.
    let before = unsafe { *libc::__errno_location() };
    let result = call();
    if !failed_with(result, libc::EINTR) {
        return result;
    }
    // SAFETY: as above. A call that is good leaves it as it was.
    unsafe { *libc::__errno_location() = before };
    masked(call)
}

/// Whether a call gave -1, as an `int` or a `long`, for that reason.
#[inline]
pub fn failed_with(result: isize, reason: i32) -> bool {
    // SAFETY: the place of this thread's errno is always valid.
    result as i32 == -1 && unsafe { *libc::__errno_location() } == reason
}

hooks! {
    SLEEP = sleep(seconds) { masked(|| next!(SLEEP(seconds))) }
    USLEEP = usleep(us) { masked(|| next!(USLEEP(us))) }
    NANOSLEEP = nanosleep(wanted, left) { masked(|| next!(NANOSLEEP(wanted, left))) }
    CLOCK_NANOSLEEP = clock_nanosleep(clock, flags, wanted, left) {
        masked(|| next!(CLOCK_NANOSLEEP(clock, flags, wanted, left)))
    }
    THRD_SLEEP = thrd_sleep(wanted, left) { masked(|| next!(THRD_SLEEP(wanted, left))) }
    PAUSE = pause() { masked(|| next!(PAUSE())) }
    SIGPAUSE = sigpause(mask) { masked(|| next!(SIGPAUSE(mask))) }
    XPG_SIGPAUSE = __xpg_sigpause(number) { masked(|| next!(XPG_SIGPAUSE(number))) }
    SEM_TIMEDWAIT = sem_timedwait(semaphore, until) { masked(|| next!(SEM_TIMEDWAIT(semaphore, until))) }
    SEM_CLOCKWAIT = sem_clockwait(semaphore, clock, until) {
        masked(|| next!(SEM_CLOCKWAIT(semaphore, clock, until)))
    }
    MSGRCV = msgrcv(queue, message, size, kind, flags) {
        masked_if(may_wait(flags), || next!(MSGRCV(queue, message, size, kind, flags)))
    }
    MSGSND = msgsnd(queue, message, size, flags) {
        masked_if(may_wait(flags), || next!(MSGSND(queue, message, size, flags)))
    }
    SEMOP = semop(set, operations, count) { masked(|| next!(SEMOP(set, operations, count))) }
    SEMTIMEDOP = semtimedop(set, operations, count, limit) {
        masked(|| next!(SEMTIMEDOP(set, operations, count, limit)))
    }
    AIO_SUSPEND = aio_suspend(list, count, limit) { masked(|| next!(AIO_SUSPEND(list, count, limit))) }
    // A large request may be ended early.
    GETRANDOM = getrandom(buffer, size, flags) {
        masked_if(size > 256, || next!(GETRANDOM(buffer, size, flags)))
    }
}

fn may_wait(flags: usize) -> bool {
    flags as i32 & libc::IPC_NOWAIT == 0
}
