//! What each process says of its noise while it runs: a small file of 64-bit words, mapped and shared, so that it tells even of a process
//! that was killed.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The first word: `QUELLRPT`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"QUELLRPT");
/// The version of the layout.
pub const VERSION: u64 = 1;
/// Words before the log of events.
pub const WORDS: usize = 96;
/// Words of an event: when it began on CLOCK_MONOTONIC, how much was asked, how much it took.
pub const EVENT: usize = 3;
/// How many powers of two the histogram of what detours took too long has.
pub const BUCKETS: usize = 40;

/// A number in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Field {
    /// [`MAGIC`].
    Magic = 0,
    /// [`VERSION`].
    Version,
    /// Process id.
    Pid,
    /// Rank; `u64::MAX` where no launcher gave one.
    Rank,
    /// Node by the schedule.
    Node,
    /// Track by the schedule.
    Track,
    /// Threads that suffered.
    Threads,
    /// MPI calls, or timers that struck.
    Calls,
    /// Those at which something was burned.
    Burns,
    /// What was asked, in ns.
    AskedNs,
    /// What it took, in ns.
    TookNs,
    /// The most that one took too long, in ns.
    MostOverNs,
    /// Noise that passed while the rank waited, in ns.
    AbsorbedNs,
    /// When it began, on CLOCK_MONOTONIC.
    BegunNs,
    /// When it last acted, on CLOCK_MONOTONIC.
    LastNs,
    /// Where in its trace it began, in ns.
    Place,
    /// Phases that it saw.
    Phases,
    /// Time within MPI calls, in ns.
    WithinNs,
    /// Threads that could not be reached.
    Missed,
    /// Whether its share of the trace was used up.
    UsedUp,
    /// Events that are logged.
    Events,
    /// Events that the log had no room for.
    EventsLost,
    /// The process's name: the first eight bytes …
    Name0,
    /// … and the rest, up to a zero.
    Name1,
}

/// Where the histogram begins: bucket `n` counts detours that took 2ⁿ⁻¹ to 2ⁿ ns too long, bucket 0 those that did not.
pub const HISTOGRAM: usize = 48;

/// The words of a report, mapped or not.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Report<'a> {
    /// A report over words that may be changed by anybody at any time.
    pub fn over(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// Reads a number.
    pub fn get(&self, field: Field) -> u64 {
        self.words.get(field as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Writes a number.
    pub fn set(&self, field: Field, value: u64) {
        if let Some(word) = self.words.get(field as usize) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Adds to a number.
    pub fn add(&self, field: Field, value: u64) {
        if let Some(word) = self.words.get(field as usize) {
            word.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// A detour that was burned at `start`: so much was asked, so much it took.
    pub fn burned(&self, start: u64, asked: u64, took: u64) {
        let over = took.saturating_sub(asked);
        self.add(Field::Burns, 1);
        self.add(Field::AskedNs, asked);
        self.add(Field::TookNs, took);
        if let Some(most) = self.words.get(Field::MostOverNs as usize) {
            most.fetch_max(over, Ordering::Relaxed);
        }
        let bucket = (u64::BITS.wrapping_sub(over.leading_zeros()) as usize).min(BUCKETS.wrapping_sub(1));
        if let Some(word) = self.words.get(HISTOGRAM.wrapping_add(bucket)) {
            word.fetch_add(1, Ordering::Relaxed);
        }
        self.log(start, asked, took);
    }

    fn log(&self, start: u64, asked: u64, took: u64) {
        let Some(log) = self.words.get(WORDS..).filter(|log| !log.is_empty()) else { return };
        let Some(count) = self.words.get(Field::Events as usize) else { return };
        let place = (count.fetch_add(1, Ordering::Relaxed) as usize).saturating_mul(EVENT);
        let Some([at, wanted, got]) = log.get(place..).and_then(|log| log.first_chunk()) else {
            count.fetch_sub(1, Ordering::Relaxed);
            self.add(Field::EventsLost, 1);
            return;
        };
        at.store(start, Ordering::Relaxed);
        wanted.store(asked, Ordering::Relaxed);
        got.store(took, Ordering::Relaxed);
    }
}

/// What this process burned, once it has a report.
static BURNED: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

impl Report<'static> {
    /// Lets [`quell_injected_ns`] tell of this report from now on.
    pub fn offer(&self, field: Field) {
        if let Some(word) = self.words.get(field as usize) {
            BURNED.store(core::ptr::from_ref(word).cast_mut(), Ordering::Release);
        }
    }
}

/// How many ns this process lost to injected noise by now, in all its threads: what was asked where burning is all that a detour costs, for
/// what interrupts the burning is others' noise; else what it took. A tracer in the same process finds it by its name.
#[cfg_attr(all(any(feature = "boundary", feature = "timer"), not(test)), unsafe(no_mangle))]
pub extern "C" fn quell_injected_ns() -> u64 {
    // SAFETY: null, or a word of a report, which is never given back.
    unsafe { BURNED.load(Ordering::Acquire).as_ref() }.map_or(0, |word| word.load(Ordering::Relaxed))
}
