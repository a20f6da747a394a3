//! The library to preload: it begins by itself, follows each thread and each fork, and keeps the program from noticing.
//!
//! What the C library offers under the same names is found by `dlsym(RTLD_NEXT)` and called in the end by each of these.

mod calls;
mod next;
mod polls;
mod signals;
mod sockets;
mod threads;

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use super::course::Plan;
use super::thread::Thread;
use super::{Engine, signal};
use crate::load::load;
use crate::report::Field;
use crate::schedule::{Context, Sync};
use crate::spin::now_ns;

/// Where the one engine of the process lives.
struct Place(UnsafeCell<MaybeUninit<Engine>>);

// SAFETY: it is written once, before `READY` is set, and only read after that.
unsafe impl core::marker::Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));
static READY: AtomicBool = AtomicBool::new(false);

/// Whatever the schedule says, a program is let on for so long between two detours.
const LEAST_PEACE_NS: u64 = 10_000;

/// Finds all at once, before the program could ask for one within a signal handler.
fn find_all() {
    for list in [calls::NEXT, polls::NEXT, sockets::NEXT, signals::NEXT, threads::NEXT] {
        list.iter().for_each(|next| {
            next.find();
        });
    }
}

/// The engine, where this process suffers.
fn engine() -> Option<&'static Engine> {
    // SAFETY: written before `READY` was set, and never again.
    READY.load(Ordering::Acquire).then(|| unsafe { (*PLACE.0.get()).assume_init_ref() })
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Once: before the program begins, or when a constructor of one of its libraries makes a thread, for those run first.
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
    // SAFETY: only one comes here, and nobody reads before `READY`.
    unsafe { (*PLACE.0.get()).write(Engine { plan, report, spares: true }) };
    if !Engine::install(Some(signals::otherwise)) || !threads::follow() {
        report.add(Field::Missed, 1);
        return;
    }
    READY.store(true, Ordering::Release);
    join(Thread::take());
}

/// From now on the calling thread suffers, in a place of the pool if there is one.
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

/// The calling thread, whose timers were never set, goes on without noise, and with its mask as it was.
fn spare(thread: &'static Thread) {
    Engine::end(thread);
    threads::forget();
    signal::unblock();
}
