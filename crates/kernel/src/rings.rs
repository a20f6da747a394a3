//! The rings into which the programs put intervals, as memory that both sides map: a CPU's entries lie one after the other, each with its
//! number, which the program writes last.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};

use crate::bpf::types;

/// An entry in its ring: its record, and what has this record and names, if there are any.
pub(crate) type Entry<'a> = (&'a types::record, Option<&'a types::named_record>);

/// Number of entries ahead of which cache lines are asked for: some microseconds.
const AHEAD: u32 = 16;

/// The rings of several CPUs.
#[derive(Debug)]
pub(crate) struct Rings {
    entries: MmapRaw,
    emptied: MmapRaw,
    /// Entries of each ring, a power of two.
    size: u32,
    /// Number of entries taken from each ring since the start. Like all such numbers it may wrap.
    taken: Vec<u32>,
}

impl Rings {
    /// Maps `rings` rings of `size` entries, and the words in which the programs see how far each is emptied.
    pub fn map(
        entries: BorrowedFd<'_>,
        emptied: BorrowedFd<'_>,
        rings: usize,
        size: u32,
    ) -> io::Result<Self> {
        let bytes = rings * size as usize * size_of::<types::entry>();
        let words = rings * size_of::<types::emptied>();
        Ok(Self {
            entries: MmapOptions::new().len(bytes).map_raw_read_only(&entries)?,
            emptied: MmapOptions::new().len(words).map_raw(&emptied)?,
            size,
            taken: vec![0; rings],
        })
    }

    /// Hands `most` entries of each ring at most to `each`, in their order; returns how many, and whether a ring may hold more.
    pub fn take(&mut self, most: u32, mut each: impl FnMut(Entry<'_>)) -> (usize, bool) {
        let (mut taken, mut more) = (0, false);
        for ring in 0..self.taken.len() {
            let before = self.taken[ring];
            let mut next = before;
            while next.wrapping_sub(before) < most
                && let Some(entry) = self.entry(ring, next)
            {
                self.ask_for(ring, next.wrapping_add(AHEAD), entry.1.is_some());
                each(entry);
                next = next.wrapping_add(1);
            }
            if next != before {
                self.taken[ring] = next;
                self.emptied(ring).store(next, Ordering::Release);
            }
            taken += next.wrapping_sub(before) as usize;
            more |= next.wrapping_sub(before) == most;
        }
        (taken, more)
    }

    fn place(&self, ring: usize, number: u32) -> *const types::entry {
        let at = ring * self.size as usize + (number & (self.size - 1)) as usize;
        self.entries.as_ptr().cast::<types::entry>().wrapping_add(at)
    }

    /// Asks for the cache lines of an entry, which are still those of the CPU that writes it; the second only if it is likely to have names.
    #[inline]
    fn ask_for(&self, ring: usize, number: u32, has_names: bool) {
        let place = self.place(ring, number).cast::<i8>();
        #[cfg(target_arch = "x86_64")]
        for line in [Some(place), has_names.then_some(place.wrapping_add(64))].into_iter().flatten() {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing, whatever the address is.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
        }
        let _ = (place, has_names);
    }

    /// The entry with this number, if it has been written.
    fn entry(&self, ring: usize, number: u32) -> Option<Entry<'_>> {
        let place = self.place(ring, number);
        // SAFETY: the entry lies within the mapping, and its number is its first field, which only the kernel writes, as one word.
        let written = unsafe { AtomicU32::from_ptr(place.cast::<u32>().cast_mut()) }.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if written != number.wrapping_add(1) {
            return None;
        }
        // Without names it is on one cache line, and the other one is left alone.
        // SAFETY: the entry lies within the mapping, and a program writes it again only after `emptied` says that it has been taken, which
        // needs `&mut self`.
        let entry = unsafe { &*place };
        Some((&entry.of.record, (entry.has_names != 0).then_some(&entry.of)))
    }

    fn emptied(&self, ring: usize) -> &AtomicU32 {
        let place = self.emptied.as_mut_ptr().cast::<types::emptied>().wrapping_add(ring);
        // SAFETY: the word lies within the mapping, which lives as long as `self`; the kernel only reads it.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }
}

const _: () = {
    assert!(size_of::<types::entry>() == 128);
    assert!(std::mem::offset_of!(types::entry, number) == 0);
    assert!(size_of::<types::emptied>() == 64);
    assert!(std::mem::offset_of!(types::emptied, entries) == 0);
};

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    const SIZE: u32 = 8;

    /// Two rings in anonymous files, as the kernel's side has them.
    struct Sides {
        entries: MmapRaw,
        emptied: MmapRaw,
        rings: Rings,
    }

    fn sides(rings: usize) -> Sides {
        let file = |bytes: usize| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(bytes as u64).unwrap();
            file
        };
        let (bytes, words) = (rings * SIZE as usize * 128, rings * 64);
        let files = [file(bytes), file(words)];
        let [entries, emptied] = [(&files[0], bytes), (&files[1], words)]
            .map(|(file, bytes)| MmapOptions::new().len(bytes).map_raw(file).unwrap());
        let rings = Rings::map(files[0].as_fd(), files[1].as_fd(), rings, SIZE).unwrap();
        Sides { entries, emptied, rings }
    }

    impl Sides {
        /// Writes the entry with this number, as a program does.
        fn write(&self, ring: usize, number: u32) {
            let has_names = number % 2;
            let at = ring * SIZE as usize + (number % SIZE) as usize;
            let mut entry = types::entry { number: number.wrapping_add(1), has_names, ..Default::default() };
            entry.of.record.start_ns = u64::from(number);
            // SAFETY: the entry lies within the mapping.
            unsafe { self.entries.as_mut_ptr().cast::<types::entry>().add(at).write(entry) };
        }

        fn take(&mut self, most: u32) -> (Vec<u64>, bool) {
            let mut into = Vec::new();
            let (taken, more) = self.rings.take(most, |(record, named)| {
                assert_eq!(named.is_some(), record.start_ns % 2 == 1);
                into.push(record.start_ns);
            });
            assert_eq!(taken, into.len());
            (into, more)
        }

        fn emptied(&self, ring: usize) -> u32 {
            // SAFETY: the word lies within the mapping.
            unsafe { self.emptied.as_ptr().cast::<u32>().add(ring * 16).read() }
        }
    }

    #[test]
    fn entries_come_once_and_in_order_and_the_programs_see_how_far() {
        let mut sides = sides(2);
        assert_eq!(sides.take(100), (vec![], false));
        (0..5).for_each(|number| sides.write(0, number));
        sides.write(1, 0);
        assert_eq!(sides.take(3), (vec![0, 1, 2, 0], true));
        assert_eq!(sides.take(3), (vec![3, 4], false));
        assert_eq!(sides.take(3), (vec![], false));
        assert_eq!((sides.emptied(0), sides.emptied(1)), (5, 1));
    }

    #[test]
    fn an_entry_that_is_not_complete_ends_the_ring() {
        let mut sides = sides(1);
        sides.write(0, 0);
        sides.write(0, 2);
        assert_eq!(sides.take(100), (vec![0], false));
        sides.write(0, 1);
        assert_eq!(sides.take(100), (vec![1, 2], false));
    }

    #[test]
    fn an_entry_of_an_earlier_turn_is_not_taken_again() {
        let mut sides = sides(1);
        (0..SIZE).for_each(|number| sides.write(0, number));
        assert_eq!(sides.take(100).0.len(), SIZE as usize);
        assert_eq!(sides.take(100), (vec![], false));
        sides.write(0, SIZE);
        assert_eq!(sides.take(100), (vec![u64::from(SIZE)], false));
    }

    #[test]
    fn numbers_may_wrap() {
        let mut sides = sides(1);
        sides.rings.taken[0] = u32::MAX;
        sides.write(0, u32::MAX);
        sides.write(0, 0);
        assert_eq!(sides.take(100), (vec![u64::from(u32::MAX), 0], false));
        assert_eq!(sides.rings.taken[0], 1);
    }
}
