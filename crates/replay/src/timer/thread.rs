//! The threads that get noise: a fixed pool, because nothing here may allocate.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::Engine;
use super::timer_schedule::Aim;

/// Maximum number of threads of a process that get noise at the same time.
pub const MOST: usize = 256;
/// No timer.
pub(super) const NONE: i32 = -1;

/// One thread. Except for the exchange of `taken`, only the thread itself accesses the fields, from its handler and the program in turn: they
/// are atomic only so that a signal handler never sees one half written.
#[derive(Debug)]
pub struct Thread {
    taken: AtomicBool,
    pub(super) engine: AtomicPtr<Engine>,
    /// The kernel's ids of its timers.
    pub(super) timers: [AtomicI32; 2],
    pub(super) lane: AtomicU64,
    aims: [Stored; 2],
    /// Which of the two timers is next.
    pub(super) turn: AtomicUsize,
    /// Whether it is in, or returns from, a blocking call.
    pub waited: AtomicBool,
    /// How much longer than intended the handler takes in this thread, in ns.
    pub(super) over: AtomicU64,
    /// Whether it is counted as a thread that cannot get noise.
    pub(super) missed: AtomicBool,
    /// The program's own start routine, until it runs.
    pub routine: AtomicUsize,
    /// Its argument.
    pub argument: AtomicUsize,
}

static POOL: [Thread; MOST] = [const { Thread::new() }; MOST];
/// Number of threads so far: each gets a lane of its own.
static LANES: AtomicU64 = AtomicU64::new(0);

impl Thread {
    const fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            engine: AtomicPtr::new(null_mut()),
            timers: [const { AtomicI32::new(NONE) }; 2],
            lane: AtomicU64::new(0),
            aims: [const { Stored::new() }; 2],
            turn: AtomicUsize::new(0),
            waited: AtomicBool::new(false),
            over: AtomicU64::new(0),
            missed: AtomicBool::new(false),
            routine: AtomicUsize::new(0),
            argument: AtomicUsize::new(0),
        }
    }

    /// Takes a free place in the pool.
    pub fn take() -> Option<&'static Self> {
        let thread = POOL.iter().find(|thread| !thread.taken.swap(true, Ordering::Acquire))?;
        thread.waited.store(false, Ordering::Relaxed);
        thread.over.store(0, Ordering::Relaxed);
        thread.missed.store(false, Ordering::Relaxed);
        thread.lane.store(LANES.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(thread)
    }

    /// Releases the place.
    pub fn free(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// In the child of a fork only one thread survives, and no timer does.
    pub fn only(survivor: Option<&Self>) {
        for thread in &POOL {
            thread.timers.iter().for_each(|timer| timer.store(NONE, Ordering::Relaxed));
            thread
                .taken
                .store(survivor.is_some_and(|survivor| core::ptr::eq(survivor, thread)), Ordering::Release);
        }
    }

    /// Its index in the pool.
    pub(super) fn number(&self) -> usize {
        let distance = (core::ptr::from_ref(self) as usize).wrapping_sub(POOL.as_ptr() as usize);
        distance.checked_div(size_of::<Self>()).unwrap_or(0)
    }

    /// The thread with that index, if it is in use.
    pub(super) fn by_number(number: usize) -> Option<&'static Self> {
        POOL.get(number).filter(|thread| thread.taken.load(Ordering::Acquire))
    }

    /// The detour for which one of its timers is set, and the noise that is skipped by then.
    pub(super) fn aim(&self, which: usize) -> (Aim, u64) {
        let stored = &self.aims[which & 1].0;
        let [start, length, at, expiry, absorbed] =
            stored.each_ref().map(|word| word.load(Ordering::Relaxed));
        (Aim { start, length, at, expiry }, absorbed)
    }

    pub(super) fn set_aim(&self, which: usize, aim: Aim, absorbed: u64) {
        let words = [aim.start, aim.length, aim.at, aim.expiry, absorbed];
        let stored = &self.aims[which & 1].0;
        stored.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }
}

/// An aim as atomics, and the noise that is skipped by then.
#[derive(Debug)]
struct Stored([AtomicU64; 5]);

impl Stored {
    const fn new() -> Self {
        Self([const { AtomicU64::new(u64::MAX) }; 5])
    }
}
