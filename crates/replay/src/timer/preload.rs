//! The preload library: it starts itself, follows each thread and each fork, and hides its signal from the program.
//!
//! Each hook finds the C library's function of the same name by `dlsym(RTLD_NEXT)`, and calls it.

mod calls;
mod next;
mod polls;
mod signals;
mod sockets;
mod threads;

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use super::thread::Thread;
use super::timer_schedule::Plan;
use super::{Engine, signal};
use crate::load::load;
use crate::report::Field;
use crate::schedule::{Context, Sync};
use crate::spin::now_ns;

/// Storage for the one engine of the process.
struct Place(UnsafeCell<MaybeUninit<Engine>>);

// SAFETY: it is written once, before `READY` is set, and only read after that.
unsafe impl core::marker::Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));
static READY: AtomicBool = AtomicBool::new(false);

/// Minimum time between two detours in which a program makes progress, whatever the schedule says.
const LEAST_PEACE_NS: u64 = 10_000;

/// Finds all functions at the start, before the program could need one within a signal handler.
fn find_all() {
    for list in [calls::NEXT, polls::NEXT, sockets::NEXT, signals::NEXT, threads::NEXT] {
        list.iter().for_each(|next| {
            next.find();
        });
    }
}

/// The engine, if this process gets noise.
fn engine() -> Option<&'static Engine> {
    // SAFETY: written before `READY` was set, and never again.
    READY.load(Ordering::Acquire).then(|| unsafe { (*PLACE.0.get()).assume_init_ref() })
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Starts the engine once: before the program begins, or when a constructor of one of its libraries creates a thread, because those run
/// first.
extern "C" fn start() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.swap(true, Ordering::AcqRel) {
        return;
    }
    find_all();
    let Some(loaded) = load(Context::Timer) else { return };
    let (head, report) = (&loaded.schedule.head, loaded.report);
    let begun_ns = now_ns();
    let place = loaded.schedule.place(loaded.seat.node, 0, loaded.track.period());
    let plan = Plan {
        track: loaded.track,
        since_ns: loaded.epoch_ns,
        place,
        overhead_ns: head.overhead_ns,
        early_ns: head.early_ns,
        smallest_gap_ns: head.smallest_gap_ns.max(LEAST_PEACE_NS),
        until_ns: if head.limit_ns == 0 { u64::MAX } else { begun_ns.saturating_add(head.limit_ns) },
        apart: head.sync == Sync::None,
    };
    report.set(Field::BegunNs, begun_ns);
    let passed = begun_ns.saturating_sub(loaded.epoch_ns) % loaded.track.period();
    report.set(Field::Place, passed.wrapping_add(place) % loaded.track.period());
    // SAFETY: only one thread gets here, and no thread reads it before `READY`.
    unsafe { (*PLACE.0.get()).write(Engine { plan, report, spares: true }) };
    if !Engine::install(Some(signals::forward_signal)) || !threads::follow() {
        report.add(Field::Missed, 1);
        return;
    }
    READY.store(true, Ordering::Release);
    join(Thread::take());
}

/// Starts the noise of the calling thread, if the pool has a place for it.
fn join(thread: Option<&'static Thread>) {
    let Some(engine) = engine() else { return };
    match thread {
        Some(thread) => {
            if !threads::remember(thread) || !engine.begin(thread) {
                spare(thread);
            }
        }
        None => engine.report.add(Field::Missed, 1),
    }
}

/// Lets the calling thread, whose timers were never set, go on without noise and with its original signal mask.
fn spare(thread: &'static Thread) {
    Engine::end(thread);
    threads::forget();
    signal::unblock();
}
