//! What each process reports about its noise while it runs: a small mapped file of 64-bit words, shared, so that it survives a process
//! that is killed.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The first word: `QUELLRPT`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"QUELLRPT");
/// The version of the layout.
pub const VERSION: u64 = 1;
/// Words before the log of events.
pub const WORDS: usize = 96;
/// Words of an event: when it began on CLOCK_MONOTONIC, its intended length, its actual length. The events of an interleaved run are its
/// blocks instead: when one began, what noise it had, and its length.
pub const EVENT: usize = 3;
/// Number of powers of two in the histogram of burns that took too long.
pub const BUCKETS: usize = 40;

/// A field of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Field {
    /// [`MAGIC`].
    Magic = 0,
    /// [`VERSION`].
    Version,
    /// Process id.
    Pid,
    /// Rank; `u64::MAX` if no launcher gave one.
    Rank,
    /// Node in the schedule.
    Node,
    /// Track in the schedule.
    ProgressClockView,
    /// Threads that get noise.
    Threads,
    /// MPI calls, or timers that expired.
    Calls,
    /// Those at which a detour was burned.
    Burns,
    /// Sum of the intended lengths, in ns.
    AskedNs,
    /// Sum of the actual lengths, in ns.
    TookNs,
    /// The largest overshoot of one burn, in ns.
    MostOverNs,
    /// Noise that was due while the rank waited, in ns.
    AbsorbedNs,
    /// When the noise began, on CLOCK_MONOTONIC.
    BegunNs,
    /// When the process last acted, on CLOCK_MONOTONIC.
    LastNs,
    /// The position in the trace at which it began, in ns.
    Place,
    /// Number of phases.
    Phases,
    /// Time within MPI calls, in ns.
    WithinNs,
    /// Threads that could not get noise.
    Missed,
    /// Whether its share of the trace was used up.
    UsedUp,
    /// Number of logged events.
    Events,
    /// Number of events for which the log had no room.
    EventsLost,
    /// The process's name: the first eight bytes …
    Name0,
    /// … and the rest, up to a NUL.
    Name1,
    /// Number of phases in a block of an interleaved run, whose blocks are then the events; 0 if noise is injected all the time.
    BlockPhases,
    /// Number of ranks that the launcher started; 0 if it gave none.
    Ranks,
}

/// Index of the histogram: bucket `n` counts burns that took 2ⁿ⁻¹ to 2ⁿ ns too long, bucket 0 those that did not.
pub const HISTOGRAM: usize = 48;

/// The words of a report, in a mapped file or in memory.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Report<'a> {
    /// A report over words that any process may change at any time.
    pub fn over(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// Reads a field.
    pub fn get(&self, field: Field) -> u64 {
        self.words.get(field as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Writes a field.
    pub fn set(&self, field: Field, value: u64) {
        if let Some(word) = self.words.get(field as usize) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Adds to a field.
    pub fn add(&self, field: Field, value: u64) {
        if let Some(word) = self.words.get(field as usize) {
            word.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Counts a detour that was burned at `start`, with its intended and its actual length.
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
        if !self.of_blocks() {
            self.log(start, asked, took);
        }
    }

    /// Logs a block of an interleaved run.
    pub fn block(&self, start: u64, asked: u64, length: u64) {
        self.log(start, asked, length);
    }

    fn of_blocks(&self) -> bool {
        self.get(Field::BlockPhases) != 0
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

/// The word that counts the burned time, once the process has a report.
static BURNED: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

impl Report<'static> {
    /// Makes [`quell_injected_ns`] return this field from now on.
    pub fn export_as_injected_ns(&self, field: Field) {
        if let Some(word) = self.words.get(field as usize) {
            BURNED.store(core::ptr::from_ref(word).cast_mut(), Ordering::Release);
        }
    }
}

/// The time in ns that this process has lost to injected noise so far, in all its threads. Where burning is a detour's only cost, this is the
/// intended time, because an interruption of the burn is other noise; otherwise it is the actual time. A tracer in the same process finds
/// this function by its name.
#[cfg_attr(all(any(feature = "boundary", feature = "timer"), not(test)), unsafe(no_mangle))]
pub extern "C" fn quell_injected_ns() -> u64 {
    // SAFETY: null, or a word of a report, which is never unmapped.
    unsafe { BURNED.load(Ordering::Acquire).as_ref() }.map_or(0, |word| word.load(Ordering::Relaxed))
}
