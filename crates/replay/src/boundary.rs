//! The hook at each MPI call: it burns the noise that has become due since the last call.
//!
//! A rank that computed from `a` to `b` without noise would, with noise, have finished later by `delay(a, b − a)`, as the progress clock
//! gives it. The hook burns that time before the call goes on, so that other ranks see this rank exactly as late as noise would make
//! it. Noise that hits the rank while it waits within a call is absorbed, unless it is still going on when the call returns: the work
//! after the call then waits for the rest of it. This needs no timer and no signal, and no detour is too short for it
//! (docs/decisions/2026-11-21-noise-is-burned-at-the-boundary.md).
//!
//! Every MPI exports each call twice, as `MPI_X` and as `PMPI_X`. Fortran bindings end in one or the other, so both are hooked. Of
//! nested calls only the outermost counts.

mod stubs;

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::load::{self, Loaded};
use crate::report::Field;
use crate::schedule::{Context, Sync};
use crate::spin::{burn_until, now_ns};
use stubs::CALLS;

/// Maximum number of threads of one process that get noise at their MPI calls; further threads run without noise.
const THREADS: usize = 128;

/// The state of one thread.
#[derive(Debug)]
struct Thread {
    /// Stack address of the outermost call's frame; 0 outside of all calls. A call whose frame is at that address or above it is not
    /// nested: if a call is still marked as active then, the program left it by a `longjmp`.
    frame: usize,
    /// When the thread left its last call; 0 before the first.
    left_ns: u64,
    /// When the thread entered the current call, after its noise was burned.
    entered_ns: u64,
    /// No detour is due from `left_ns` until this time.
    quiet_until_ns: u64,
    /// Time that was burned too much and is not yet compensated.
    ahead_ns: u64,
    /// Whether noise was burned at the entry of the current call.
    burned: bool,
}

struct Threads([UnsafeCell<Thread>; THREADS], [AtomicBool; THREADS]);

// SAFETY: a thread accesses only the slot that it took, and the flag gives a slot to one thread at a time.
unsafe impl core::marker::Sync for Threads {}

static THREADS_OF_MPI: Threads =
    Threads([const { UnsafeCell::new(Thread::NEW) }; THREADS], [const { AtomicBool::new(false) }; THREADS]);

/// The noise of this process, once the schedule is loaded.
struct Process {
    state: AtomicU8,
    key: AtomicU32,
    loaded: UnsafeCell<Option<Loaded>>,
    /// Position in the trace at `since_ns`.
    place: AtomicU64,
    since_ns: AtomicU64,
    phase: AtomicU64,
    /// Whether the current block of an interleaved run is one without noise.
    silent: AtomicBool,
    /// When the current block began, and what had been burned by then.
    block_ns: AtomicU64,
    block_asked_ns: AtomicU64,
}

// SAFETY: `loaded` is written once, before `state` publishes it.
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
    silent: AtomicBool::new(false),
    block_ns: AtomicU64::new(0),
    block_asked_ns: AtomicU64::new(0),
};

impl Process {
    /// The loaded noise, while it is active.
    fn going(&self) -> Option<&'static Loaded> {
        if self.state.load(Ordering::Acquire) != GOING {
            return None;
        }
        // SAFETY: it was written before the state published it, and is never written again.
        unsafe { (*PROCESS.loaded.get()).as_ref() }
    }

    /// Loads the schedule, when the first call returns.
    fn begin(&self) {
        if self.state.compare_exchange(UNKNOWN, LOADING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let mut key = 0;
        // SAFETY: `key` is valid for writes; `give_back` receives only what is passed to `pthread_setspecific` below.
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
        // In phase mode all ranks are at one place in the trace when a phase begins, at whatever time that is.
        let since = if loaded.schedule.head.sync == Sync::Phase { now } else { loaded.epoch_ns };
        self.since_ns.store(since, Ordering::Relaxed);
        self.silent.store(loaded.schedule.head.blocks().is_some(), Ordering::Relaxed);
        self.block_ns.store(now, Ordering::Relaxed);
        loaded.report.set(Field::Place, self.position(now, &loaded));
        // SAFETY: no thread reads it before the state publishes it, and the exchange above lets only one thread get here.
        unsafe { *self.loaded.get() = Some(loaded) };
        self.state.store(GOING, Ordering::Release);
    }

    /// The rank's position in its trace at a time.
    fn position(&self, now: u64, loaded: &Loaded) -> u64 {
        let passed = now.wrapping_sub(self.since_ns.load(Ordering::Relaxed));
        (passed % loaded.track.period()).wrapping_add(self.place.load(Ordering::Relaxed))
    }

    /// At the end of a phase all ranks move to the same place in the trace.
    fn end_phase(&self, now: u64, loaded: &Loaded) {
        let phase = self.phase.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        loaded.report.set(Field::Phases, phase);
        if loaded.schedule.head.sync == Sync::Phase {
            let place = loaded.schedule.place(loaded.seat.node, phase, loaded.track.period());
            self.place.store(place, Ordering::Relaxed);
            self.since_ns.store(now, Ordering::Relaxed);
        }
        if let Some(blocks) = loaded.schedule.head.blocks()
            && phase.is_multiple_of(blocks.phases.get())
        {
            self.end_block(now, phase, loaded);
        }
    }

    /// At the end of a block noise begins, at a new place, or ends.
    fn end_block(&self, now: u64, phase: u64, loaded: &Loaded) {
        let Some(blocks) = loaded.schedule.head.blocks() else { return };
        let asked_ns = loaded.report.get(Field::AskedNs);
        let begun_ns = self.block_ns.swap(now, Ordering::Relaxed);
        let asked_before_ns = self.block_asked_ns.swap(asked_ns, Ordering::Relaxed);
        loaded.report.block(begun_ns, asked_ns.wrapping_sub(asked_before_ns), now.wrapping_sub(begun_ns));
        self.silent.store(!blocks.has_noise(phase / blocks.phases), Ordering::Relaxed);
        let place = loaded.schedule.place(loaded.seat.node, phase, loaded.track.period());
        self.place.store(place, Ordering::Relaxed);
        self.since_ns.store(now, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }
}

/// This thread's slot, taken at its first call.
fn thread(loaded: &Loaded) -> Option<*mut Thread> {
    let key = PROCESS.key.load(Ordering::Relaxed);
    // SAFETY: the key was created before the state became GOING.
    let slot = unsafe { libc::pthread_getspecific(key) };
    if !slot.is_null() {
        return (slot != missed()).then_some(slot.cast());
    }
    let free =
        |taken: &AtomicBool| taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(number) = THREADS_OF_MPI.1.iter().position(free) else {
        loaded.report.add(Field::Missed, 1);
        // SAFETY: the key exists. If this fails for lack of memory, the thread is counted as missed again.
        unsafe { libc::pthread_setspecific(key, missed()) };
        return None;
    };
    let slot = THREADS_OF_MPI.0.get(number)?.get();
    // SAFETY: the flag reserves the slot for this thread, and the key exists.
    let known = unsafe {
        *slot = Thread::NEW;
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

/// The key's value in a thread that got no slot: an address that is not a slot's.
fn missed() -> *mut c_void {
    static MISSED: u8 = 0;
    (&raw const MISSED).cast_mut().cast()
}

/// Releases the slot of a thread that ends.
extern "C" fn give_back(slot: *mut c_void) {
    let place = THREADS_OF_MPI.0.iter().position(|other| core::ptr::eq(other.get(), slot.cast()));
    if let Some(taken) = place.and_then(|place| THREADS_OF_MPI.1.get(place)) {
        taken.store(false, Ordering::Release);
    }
}

/// Each stub calls this before the MPI's own function, whose address it returns. `frame` is the stack address of the stub's frame.
extern "C" fn enter(call: usize, frame: usize) -> *mut c_void {
    if let Some(loaded) = PROCESS.going() {
        // SAFETY: the slot is this thread's, and no other reference to it exists here.
        if let Some(thread) = thread(loaded).map(|slot| unsafe { &mut *slot })
            && frame >= thread.frame
        {
            thread.frame = frame;
            thread.burn(loaded);
        }
    }
    real(call)
}

/// Each stub calls this after the MPI's own function.
extern "C" fn leave(call: usize, frame: usize) {
    if PROCESS.going().is_none() {
        PROCESS.begin();
    }
    let Some(loaded) = PROCESS.going() else { return };
    // SAFETY: as in `enter`.
    let Some(thread) = thread(loaded).map(|slot| unsafe { &mut *slot }) else { return };
    // A frame above the outermost one belongs to a call whose entry was not seen, because the noise began while it ran.
    if frame >= thread.frame {
        thread.frame = 0;
        thread.leave(loaded, call);
    }
}

impl Thread {
    const NEW: Self =
        Self { frame: 0, left_ns: 0, entered_ns: 0, quiet_until_ns: 0, ahead_ns: 0, burned: false };

    /// Burns the noise that has become due since the last call.
    fn burn(&mut self, loaded: &Loaded) {
        let now = now_ns();
        self.entered_ns = now;
        loaded.report.add(Field::Calls, 1);
        if self.left_ns == 0 || now < self.quiet_until_ns || PROCESS.is_silent() {
            return;
        }
        let limit = loaded.schedule.head.limit_ns;
        if limit > 0 && now.saturating_sub(loaded.report.get(Field::BegunNs)) > limit {
            loaded.report.set(Field::UsedUp, 1);
            return;
        }
        // Another thread may have begun the noise since this one left its last call. Noise that began before the machine did has a time
        // that wraps.
        let since = PROCESS.since_ns.load(Ordering::Relaxed);
        let is_later = since.wrapping_sub(self.left_ns).cast_signed() > 0;
        let begun = if is_later { since.min(now) } else { self.left_ns };
        let position = PROCESS.position(begun, loaded);
        let due = loaded.track.delay(position, now.saturating_sub(begun));
        if due == 0 {
            return;
        }
        let wanted = due.saturating_sub(self.ahead_ns);
        // After long work it may be more than one burn; how much, the check of the track at its loading bounds.
        let (mut end, until) = (now, now.saturating_add(wanted));
        while end < until {
            end = burn_until(end, until);
        }
        let took = end.wrapping_sub(now);
        // The clock's granularity makes each burn slightly too long, and the next one is shortened for it. An interruption of the burn
        // itself is other noise and is not compensated, hence the limit.
        self.ahead_ns = self
            .ahead_ns
            .saturating_sub(due)
            .saturating_add(took.saturating_sub(wanted).min(LARGEST_STEP_NS));
        self.entered_ns = end;
        self.burned = true;
        loaded.report.burned(now, due, took);
    }

    /// Notes when the work after the call begins.
    fn leave(&mut self, loaded: &Loaded, call: usize) {
        let now = now_ns();
        let report = &loaded.report;
        report.set(Field::LastNs, now);
        if self.left_ns != 0 {
            let within = now.saturating_sub(self.entered_ns);
            report.add(Field::WithinNs, within);
            if now >= self.quiet_until_ns && !PROCESS.is_silent() {
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
        self.left_ns = now;
        if PROCESS.is_silent() {
            // Another thread's call may end the block: no time is known until which no detour is due.
            self.quiet_until_ns = 0;
        } else if phase_ends || now >= self.quiet_until_ns {
            let ahead = loaded.track.ahead(PROCESS.position(now, loaded));
            self.quiet_until_ns = ahead.map_or(u64::MAX, |ahead| now.saturating_add(ahead.wait_ns));
            if self.burned {
                // The program waits for the search after a burn too, so the next burn is shortened for it.
                let search_ns = now_ns().saturating_sub(now).min(LONGEST_SEARCH_NS);
                self.ahead_ns = self.ahead_ns.saturating_add(search_ns);
            }
        }
        self.burned = false;
        if call.is_some_and(|call| call.finalize) {
            load::sync_report();
            PROCESS.state.store(OVER, Ordering::Release);
        }
    }
}

/// The clock's granularity is below this; any larger overshoot is an interruption.
const LARGEST_STEP_NS: u64 = 100;

/// A search for the next detour takes less than this; anything longer is an interruption.
const LONGEST_SEARCH_NS: u64 = 1000;

/// The address of the MPI's own function.
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

/// What a call returns if no MPI is found behind this library: `MPI_ERR_OTHER`, which is greater than 0 in all MPIs.
extern "C" fn missing() -> i32 {
    15
}
