//! Threads and forks: each gets timers of its own.

use core::ffi::c_void;
use core::sync::atomic::{AtomicI64, Ordering};

use super::next::{hooks, next};
use super::{engine, join, spare};
use crate::report::Field;
use crate::timer::Engine;
use crate::timer::thread::Thread;

/// The key under which each thread stores its place in the pool; -1 before the key exists.
static KEY: AtomicI64 = AtomicI64::new(-1);

/// Prepares to follow threads and forks.
pub fn follow() -> bool {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is valid for writes; both functions have the required types, and live forever.
    let made = unsafe {
        libc::pthread_key_create(&raw mut key, Some(leave)) == 0
            && libc::pthread_atfork(None, None, Some(forked)) == 0
    };
    if made {
        KEY.store(i64::from(key), Ordering::Release);
    }
    made
}

/// The calling thread's place.
#[inline]
pub fn current() -> Option<&'static Thread> {
    let key = libc::pthread_key_t::try_from(KEY.load(Ordering::Acquire)).ok()?;
    // SAFETY: the key exists, and holds only places of the pool, which live forever.
    unsafe { libc::pthread_getspecific(key).cast::<Thread>().as_ref() }
}

/// Stores the calling thread's place.
pub fn remember(thread: &'static Thread) -> bool {
    set(core::ptr::from_ref(thread).cast())
}

/// Clears the calling thread's place.
pub fn forget() {
    set(core::ptr::null());
}

fn set(value: *const c_void) -> bool {
    let Ok(key) = libc::pthread_key_t::try_from(KEY.load(Ordering::Acquire)) else { return false };
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(key, value) == 0 }
}

/// Runs at a thread's end, however it ends.
extern "C" fn leave(thread: *mut c_void) {
    // SAFETY: the key holds only places of the pool.
    if let Some(thread) = unsafe { thread.cast::<Thread>().as_ref() } {
        Engine::end(thread);
    }
}

/// Runs in the child of a fork, which has no timers. The child's noise is counted in its parent's report, which counts its thread already.
extern "C" fn forked() {
    let survivor = current();
    Thread::only(survivor);
    match (survivor, engine()) {
        (Some(thread), Some(engine)) => {
            if !engine.arm(thread) {
                spare(thread);
            }
        }
        _ => join(Thread::take()),
    }
}

/// The start routine of each thread: it calls the thread's own routine afterwards.
macro_rules! start {
    ($start:ident, $result:ty) => {
        extern "C" fn $start(place: *mut c_void) -> $result {
            // SAFETY: `create` passed a place of the pool, with a routine of this kind.
            let (thread, routine) = unsafe {
                let thread = &*place.cast::<Thread>();
                let routine = thread.routine.load(Ordering::Acquire);
                let kind = core::mem::transmute::<usize, extern "C" fn(*mut c_void) -> $result>;
                (thread, kind(routine))
            };
            let argument = thread.argument.load(Ordering::Acquire) as *mut c_void;
            join(Some(thread));
            routine(argument)
        }
    };
}

start!(start_pthread, *mut c_void);
start!(start_thrd, i32);

/// Creates a thread by `call`, which gets a start routine and its argument.
fn create(start: usize, routine: usize, argument: usize, call: impl Fn(usize, usize) -> isize) -> isize {
    super::start();
    let Some(engine) = engine() else { return call(routine, argument) };
    let Some(thread) = Thread::take() else {
        engine.report.add(Field::Missed, 1);
        return call(routine, argument);
    };
    thread.routine.store(routine, Ordering::Release);
    thread.argument.store(argument, Ordering::Release);
    let result = call(start, core::ptr::from_ref(thread) as usize);
    // In both kinds of call the result is an `int`, and zero is success.
    if result as i32 != 0 {
        thread.free();
    }
    result
}

hooks! {
    PTHREAD_CREATE = pthread_create(made, attributes, routine, argument) {
        create(start_pthread as *const () as usize, routine, argument, |routine, argument| {
            next!(PTHREAD_CREATE(made, attributes, routine, argument))
        })
    }
    THRD_CREATE = thrd_create(made, routine, argument) {
        create(start_thrd as *const () as usize, routine, argument, |routine, argument| {
            next!(THRD_CREATE(made, routine, argument))
        })
    }
}
