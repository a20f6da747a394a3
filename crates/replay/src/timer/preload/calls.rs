//! Calls that a signal ends early whatever its handler's flags (signal(7)): our signal waits until they are over.
//!
//! That is also what noise does to a program that sleeps: nothing, but for what still goes on when it wakes.
//! Calls that wait for threads and children are here for the same reason, though they would go on by themselves: who waits must not
//! burn time of a CPU on which others work. Left as they are: mutexes, which mostly do not wait, and what is done all the time.

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
    // A large request may be ended early.
    GETRANDOM = getrandom(buffer, size, flags) {
        masked_if(size > 256, || next!(GETRANDOM(buffer, size, flags)))
    }
}

fn may_wait(flags: usize) -> bool {
    flags as i32 & libc::IPC_NOWAIT == 0
}
