//! The buffer between a probe and the writer: one producer, one consumer, no lock, no system call.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// One finding of a probe, in ticks of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// The last clock reading before it.
    pub start: u64,
    /// Ticks from there to the next reading.
    pub ticks: u64,
    /// Units of work done, for the quantum probes.
    pub work: u64,
}

/// Number of rows ahead of which cache lines are asked for.
const AHEAD: u64 = 32;

/// A counter in a cache line of its own, so that producer and consumer do not slow each other down (false sharing).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// A ring of rows in pages that are present before the run, and locked where the system permits.
#[derive(Debug)]
pub(crate) struct Ring {
    rows: NonNull<Row>,
    capacity: u64,
    locked: bool,
    head: Counter,
    tail: Counter,
    lost: Counter,
}

// SAFETY: rows are only written by the one producer before it publishes them through `head`, and only read by
// the one consumer before it releases them through `tail`; see `push` and `drain`.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of at least `rows` rows, all its pages touched.
    ///
    /// # Errors
    /// If the system does not have the memory.
    pub fn new(rows: usize) -> io::Result<Self> {
        let capacity = rows.next_power_of_two() as u64;
        let bytes = Self::bytes(capacity);
        // SAFETY: a new private mapping; the address is the kernel's choice.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping above.
        let locked = unsafe { libc::mlock(address, bytes) } == 0;
        let rows = NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)?;
        let counter = Counter::default;
        Ok(Self { rows, capacity, locked, head: counter(), tail: counter(), lost: counter() })
    }

    fn bytes(capacity: u64) -> usize {
        capacity as usize * size_of::<Row>()
    }

    /// Whether its pages are locked into memory.
    pub fn locked(&self) -> bool {
        self.locked
    }

    /// Maximum number of rows.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Number of rows for which the ring had no room.
    pub fn lost(&self) -> u64 {
        self.lost.0.load(Ordering::Relaxed)
    }

    fn slot(&self, index: u64) -> NonNull<Row> {
        // SAFETY: the mask keeps the index below the capacity, which is what was mapped.
        unsafe { self.rows.add((index & (self.capacity - 1)) as usize) }
    }

    /// Asks for the cache line of a row, which is still that of the CPU that wrote it.
    #[inline]
    fn ask_for(&self, index: u64) {
        let slot = self.slot(index).as_ptr();
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing, whatever the address is.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(slot.cast()) };
        }
        let _ = slot;
    }

    /// Appends a row, or counts it as lost. Only one thread may ever call this.
    #[inline]
    pub fn push(&self, row: Row) {
        let head = self.head.0.load(Ordering::Relaxed);
        if head - self.tail.0.load(Ordering::Acquire) >= self.capacity {
            self.lost.0.store(self.lost.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return;
        }
        // SAFETY: the slot is free (checked above), and no other thread writes.
        unsafe { self.slot(head).write(row) };
        self.head.0.store(head + 1, Ordering::Release);
    }

    /// Hands over the rows that are there, oldest first and `most` at a time, and returns their number. Only one
    /// thread may ever call this.
    pub fn drain(&self, most: u64, mut each: impl FnMut(Row)) -> u64 {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let head = self.head.0.load(Ordering::Acquire).min(tail.saturating_add(most));
        for index in tail..head {
            self.ask_for((index + AHEAD).min(head - 1));
            // SAFETY: rows below `head` were published by the producer, which does not touch them until `tail` passes.
            each(unsafe { self.slot(index).read() });
        }
        self.tail.0.store(head, Ordering::Release);
        head - tail
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, to which no reference remains.
        unsafe { libc::munmap(self.rows.as_ptr().cast(), Self::bytes(self.capacity)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let ring = Ring::new(4).unwrap();
        for start in 0..7 {
            ring.push(Row { start, ..Row::default() });
        }
        let mut seen = Vec::new();
        assert_eq!(ring.drain(9, |row| seen.push(row.start)), 4);
        assert_eq!((seen, ring.lost()), (vec![0, 1, 2, 3], 3));
    }

    #[test]
    fn rows_cross_threads_in_order() {
        let ring = Ring::new(64).unwrap();
        let rows = 200_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for start in 0..rows {
                    while start - ring.tail.0.load(Ordering::Acquire) >= ring.capacity() {
                        std::hint::spin_loop();
                    }
                    ring.push(Row { start, ticks: start * 3, work: 0 });
                }
            });
            let mut next = 0;
            while next < rows {
                ring.drain(50, |row| {
                    assert_eq!((row.start, row.ticks), (next, next * 3));
                    next += 1;
                });
            }
        });
        assert_eq!(ring.lost(), 0);
    }
}
