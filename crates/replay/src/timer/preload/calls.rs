//! Calls that a signal interrupts whatever the flags of its handler (signal(7)). Our signal stays blocked until they return.
//!
//! That matches real noise: it does nothing to a program that sleeps, except for a detour that is still going on when it wakes.
//! Calls that wait for threads and children are hooked for the same reason, although they would resume by themselves: a waiting thread
//! must not burn CPU time that others work with. Not hooked: mutexes, which rarely wait, and very frequent calls.

use core::sync::atomic::Ordering;

use super::next::{hooks, next};
use super::threads::current;
use crate::timer::signal;

/// Makes a call with our signal blocked.
#[inline]
pub fn masked(call: impl FnOnce() -> isize) -> isize {
    // Already blocked, by a call in whose duration one of the program's own handlers makes this one.
    if !signal::block() {
        return call();
    }
    waiting(|| {
        let result = call();
        signal::unblock();
        result
    })
}

/// Makes a call that blocks our signal by itself.
#[inline]
pub fn waiting(call: impl FnOnce() -> isize) -> isize {
    let Some(thread) = current() else { return call() };
    thread.waited.store(true, Ordering::Relaxed);
    let result = call();
    thread.waited.store(false, Ordering::Relaxed);
    result
}

/// Makes a call that waits only if `waits` is set. A call that does not wait is repeated if a signal interrupted it: this time our signal is
/// blocked.
#[inline]
pub fn masked_if(waits: bool, call: impl Fn() -> isize) -> isize {
    if waits {
        return masked(call);
    }
    // SAFETY: the address of this thread's errno is always valid.
    let before = unsafe { *libc::__errno_location() };
    let result = call();
    if !failed_with(result, libc::EINTR) {
        return result;
    }
    // SAFETY: as above. A successful call leaves errno unchanged.
    unsafe { *libc::__errno_location() = before };
    masked(call)
}

/// Whether a call returned -1, as an `int` or a `long`, with this errno.
#[inline]
pub fn failed_with(result: isize, reason: i32) -> bool {
    // SAFETY: the address of this thread's errno is always valid.
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
    WAIT = wait(status) { masked(|| next!(WAIT(status))) }
    WAITPID = waitpid(child, status, options) {
        masked_if(options as i32 & libc::WNOHANG == 0, || next!(WAITPID(child, status, options)))
    }
    WAIT3 = wait3(status, options, usage) { masked(|| next!(WAIT3(status, options, usage))) }
    WAIT4 = wait4(child, status, options, usage) { masked(|| next!(WAIT4(child, status, options, usage))) }
    WAITID = waitid(kind, number, info, options) { masked(|| next!(WAITID(kind, number, info, options))) }
    PTHREAD_JOIN = pthread_join(thread, result) { masked(|| next!(PTHREAD_JOIN(thread, result))) }
    THRD_JOIN = thrd_join(thread, result) { masked(|| next!(THRD_JOIN(thread, result))) }
    SEM_WAIT = sem_wait(semaphore) { masked(|| next!(SEM_WAIT(semaphore))) }
    PTHREAD_BARRIER_WAIT = pthread_barrier_wait(barrier) { masked(|| next!(PTHREAD_BARRIER_WAIT(barrier))) }
    PTHREAD_COND_WAIT = pthread_cond_wait(condition, mutex) {
        masked(|| next!(PTHREAD_COND_WAIT(condition, mutex)))
    }
    PTHREAD_COND_TIMEDWAIT = pthread_cond_timedwait(condition, mutex, until) {
        masked(|| next!(PTHREAD_COND_TIMEDWAIT(condition, mutex, until)))
    }
    PTHREAD_COND_CLOCKWAIT = pthread_cond_clockwait(condition, mutex, clock, until) {
        masked(|| next!(PTHREAD_COND_CLOCKWAIT(condition, mutex, clock, until)))
    }
    // A large request may be interrupted.
    GETRANDOM = getrandom(buffer, size, flags) {
        masked_if(size > 256, || next!(GETRANDOM(buffer, size, flags)))
    }
}

fn may_wait(flags: usize) -> bool {
    flags as i32 & libc::IPC_NOWAIT == 0
}
