//! The hook at each MPI call: what noise struck since the last one is burned now.
//!
//! A rank that computed from `a` to `b` on a quiet machine would have been done, on the noisy one, when the progress clock says: later by
//! `delay(a, b − a)`. That is burned before the call goes on, so the others see this rank late by as much as it would be. Noise that
//! strikes while it waits within a call is absorbed, unless it is still going on when the call returns: then the next work waits for its rest.
//! No timer and no signal is needed, and no detour is too short.
//!
//! Every MPI has its calls twice, as `MPI_X` and as `PMPI_X`; Fortran's go to the one or the other. Both are hooked, and of calls within
//! calls only the outermost counts.

mod stubs;

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::load::{self, Loaded};
use crate::report::Field;
use crate::schedule::{Context, Sync};
use crate::spin::{burn_until, now_ns};
use stubs::CALLS;

/// Threads of one process that may call MPI; more go without noise.
const THREADS: usize = 128;

/// One thread's time.
#[derive(Debug)]
struct Thread {
    /// Where on the stack the outermost call's frame is; 0 outside of all. A call from there or from above it has none around it: where
    /// one is still thought to go on, it was left by a jump.
    frame: usize,
    /// When it left its last call; 0 before the first.
    left_ns: u64,
    /// When it entered the present one, its noise burned.
    entered_ns: u64,
    /// No detour strikes from `left_ns` until then.
    quiet_until_ns: u64,
    /// So much was burned too long, and not yet made up for.
    ahead_ns: u64,
}

struct Threads([UnsafeCell<Thread>; THREADS], [AtomicBool; THREADS]);

// SAFETY: a thread touches no slot but the one that it took, which the flag gives to one at a time.
unsafe impl core::marker::Sync for Threads {}

static THREADS_OF_MPI: Threads = Threads(
    [const { UnsafeCell::new(Thread { frame: 0, left_ns: 0, entered_ns: 0, quiet_until_ns: 0, ahead_ns: 0 }) };
        THREADS],
    [const { AtomicBool::new(false) }; THREADS],
);

/// What is burned, once it is known.
struct Process {
    state: AtomicU8,
    key: AtomicU32,
    loaded: UnsafeCell<Option<Loaded>>,
    /// Position in the trace at `since_ns`.
    place: AtomicU64,
    since_ns: AtomicU64,
    phase: AtomicU64,
}

// SAFETY: `loaded` is written once, before `state` says so.
unsafe impl core::marker::Sync for Process {}

const UNKNOWN: u8 = 0;
const LOADING: u8 = 1;
const GOING: u8 = 2;
const OVER: u8 = 3;

static PROCESS: Process = Process {
    state: AtomicU8::new(UNKNOWN),
    key: AtomicU32::new(0),
    loaded: UnsafeCell::new(None),
    place: AtomicU64::new(0),
    since_ns: AtomicU64::new(0),
    phase: AtomicU64::new(0),
};

impl Process {
    /// The noise, while there is some to burn.
    fn going(&self) -> Option<&'static Loaded> {
        if self.state.load(Ordering::Acquire) != GOING {
            return None;
        }
        // SAFETY: it was written before the state said so, and is never written again.
        unsafe { (*PROCESS.loaded.get()).as_ref() }
    }

    /// Reads the schedule when the first call returns.
    fn begin(&self) {
        if self.state.compare_exchange(UNKNOWN, LOADING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let mut key = 0;
        // SAFETY: `key` is a valid place; `give_back` takes what `pthread_setspecific` is given below.
        let no_key = unsafe { libc::pthread_key_create(&raw mut key, Some(give_back)) } != 0;
        let loaded = if no_key { None } else { load::load(Context::Boundary) };
        let Some(loaded) = loaded else {
            self.state.store(OVER, Ordering::Release);
            return;
        };
        self.key.store(key, Ordering::Relaxed);
        let now = now_ns();
        loaded.report.set(Field::BegunNs, now);
        self.place
            .store(loaded.schedule.place(loaded.seat.node, 0, loaded.track.period()), Ordering::Relaxed);
        // In phase mode all are at one place when a phase begins, whenever that is.
        let since = if loaded.schedule.head.sync == Sync::Phase { now } else { loaded.epoch_ns };
        self.since_ns.store(since, Ordering::Relaxed);
        loaded.report.set(Field::Place, self.position(now, &loaded));
        // SAFETY: nobody reads it before the state says so, and the exchange above lets only one thread come here.
        unsafe { *self.loaded.get() = Some(loaded) };
        self.state.store(GOING, Ordering::Release);
    }

    /// Where in its trace the rank is at an instant.
    fn position(&self, now: u64, loaded: &Loaded) -> u64 {
        let passed = now.wrapping_sub(self.since_ns.load(Ordering::Relaxed));
        (passed % loaded.track.period()).wrapping_add(self.place.load(Ordering::Relaxed))
    }

    /// All ranks go to the same place when a phase ends.
    fn end_phase(&self, now: u64, loaded: &Loaded) {
        let phase = self.phase.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        loaded.report.set(Field::Phases, phase);
        if loaded.schedule.head.sync == Sync::Phase {
            let place = loaded.schedule.place(loaded.seat.node, phase, loaded.track.period());
            self.place.store(place, Ordering::Relaxed);
            self.since_ns.store(now, Ordering::Relaxed);
        }
    }
}

/// This thread's slot, taken at its first call.
fn thread(loaded: &Loaded) -> Option<*mut Thread> {
    let key = PROCESS.key.load(Ordering::Relaxed);
    // SAFETY: the key was made before the state said that noise is going.
    let slot = unsafe { libc::pthread_getspecific(key) };
    if !slot.is_null() {
        return (slot != missed()).then_some(slot.cast());
    }
    let free =
        |taken: &AtomicBool| taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(number) = THREADS_OF_MPI.1.iter().position(free) else {
        loaded.report.add(Field::Missed, 1);
        // SAFETY: the key exists. Where there is no memory for it, the thread is counted again.
        unsafe { libc::pthread_setspecific(key, missed()) };
        return None;
    };
    let slot = THREADS_OF_MPI.0.get(number)?.get();
    // SAFETY: the flag gives the slot to this thread alone, and the key exists.
    let known = unsafe {
        *slot = Thread { frame: 0, left_ns: 0, entered_ns: 0, quiet_until_ns: 0, ahead_ns: 0 };
        libc::pthread_setspecific(key, slot.cast()) == 0
    };
    if !known {
        give_back(slot.cast());
        loaded.report.add(Field::Missed, 1);
        return None;
    }
    loaded.report.add(Field::Threads, 1);
    Some(slot)
}

/// What the key holds in a thread for which there was no slot: no slot's address.
fn missed() -> *mut c_void {
    static MISSED: u8 = 0;
    (&raw const MISSED).cast_mut().cast()
}

/// A thread that ends leaves its slot to others.
extern "C" fn give_back(slot: *mut c_void) {
    let place = THREADS_OF_MPI.0.iter().position(|other| core::ptr::eq(other.get(), slot.cast()));
    if let Some(taken) = place.and_then(|place| THREADS_OF_MPI.1.get(place)) {
        taken.store(false, Ordering::Release);
    }
}

/// Called by each stub before the MPI's own function, which it answers. `frame` is where the stub's own frame is on the stack.
extern "C" fn enter(call: usize, frame: usize) -> *mut c_void {
    if let Some(loaded) = PROCESS.going() {
        // SAFETY: the slot is this thread's, and nothing else here holds on to it.
        if let Some(thread) = thread(loaded).map(|slot| unsafe { &mut *slot })
            && frame >= thread.frame
        {
            thread.frame = frame;
            thread.burn(loaded);
        }
    }
    real(call)
}

/// Called by each stub after it.
extern "C" fn leave(call: usize, frame: usize) {
    let Some(loaded) = PROCESS.going() else {
        PROCESS.begin();
        return;
    };
    // SAFETY: as in `enter`.
    let Some(thread) = thread(loaded).map(|slot| unsafe { &mut *slot }) else { return };
    // Above the outermost is only a call that was not seen to be entered, for noise began meanwhile.
    if frame >= thread.frame {
        thread.frame = 0;
        thread.leave(loaded, call);
    }
}

impl Thread {
    /// Burns what struck since the last call.
    fn burn(&mut self, loaded: &Loaded) {
        let now = now_ns();
        self.entered_ns = now;
        loaded.report.add(Field::Calls, 1);
        if self.left_ns == 0 || now < self.quiet_until_ns {
            return;
        }
        let limit = loaded.schedule.head.limit_ns;
        if limit > 0 && now.saturating_sub(loaded.report.get(Field::BegunNs)) > limit {
            loaded.report.set(Field::UsedUp, 1);
            return;
        }
        let position = PROCESS.position(self.left_ns, loaded);
        let due = loaded.track.delay(position, now.saturating_sub(self.left_ns));
        if due == 0 {
            return;
        }
        let wanted = due.saturating_sub(self.ahead_ns);
        let end = burn_until(now, now.saturating_add(wanted));
        let took = end.wrapping_sub(now);
        // The clock's steps make each a little too long; the next is shorter for it. What an own interruption took is nobody's to make up for.
        self.ahead_ns = self
            .ahead_ns
            .saturating_sub(due)
            .saturating_add(took.saturating_sub(wanted).min(LARGEST_STEP_NS));
        self.entered_ns = end;
        loaded.report.burned(now, due, took);
    }

    /// Notes when work goes on.
    fn leave(&mut self, loaded: &Loaded, call: usize) {
        let now = now_ns();
        let report = &loaded.report;
        report.set(Field::LastNs, now);
        if self.left_ns != 0 {
            let within = now.saturating_sub(self.entered_ns);
            report.add(Field::WithinNs, within);
            if now >= self.quiet_until_ns {
                let absorbed = loaded.track.noise_in(PROCESS.position(self.entered_ns, loaded), within);
                report.add(Field::AbsorbedNs, absorbed);
            }
        }
        let call = CALLS.get(call);
        let ends = call.map_or(0, |call| call.ends);
        let phase_ends = ends & loaded.schedule.head.phase_calls != 0;
        if phase_ends {
            PROCESS.end_phase(now, loaded);
        }
        if phase_ends || now >= self.quiet_until_ns {
            let ahead = loaded.track.ahead(PROCESS.position(now, loaded));
            self.quiet_until_ns = ahead.map_or(u64::MAX, |ahead| now.saturating_add(ahead.wait_ns));
        }
        self.left_ns = now;
        if call.is_some_and(|call| call.finalize) {
            load::settle();
            PROCESS.state.store(OVER, Ordering::Release);
        }
    }
}

/// The clock's own step is below this; whatever is more was an interruption.
const LARGEST_STEP_NS: u64 = 100;

/// The MPI's own function.
fn real(call: usize) -> *mut c_void {
    static REAL: [AtomicPtr<c_void>; CALLS.len()] =
        [const { AtomicPtr::new(core::ptr::null_mut()) }; CALLS.len()];
    let (Some(place), Some(call)) = (REAL.get(call), CALLS.get(call)) else { return missing as *mut c_void };
    let known = place.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = stubs::find(call.name);
    place.store(found, Ordering::Relaxed);
    found
}

/// What a program gets whose MPI cannot be found behind this library: `MPI_ERR_OTHER`, in all MPIs beyond 0.
extern "C" fn missing() -> i32 {
    15
}
