//! One rank of a simulation: when its CPUs and interfaces are free, and what waits there.

use super::event::{Event, Pending, Resources, What};
use super::matching::Queue;

/// How many CPUs and interfaces each rank has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) cpus: usize,
    pub(super) nics: usize,
}

impl Layout {
    /// One CPU and one interface, so that no time needs to be carried between CPUs.
    pub(super) fn is_single(self) -> bool {
        self.cpus <= 1 && self.nics <= 1
    }
}

/// From when on each CPU is free, and each interface for sending and for receiving, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct FreeFrom {
    cpu: u64,
    out: u64,
    inward: u64,
    /// Further CPUs, then further interfaces in pairs (out, in).
    more: Option<Box<[u64]>>,
    cpus: u32,
}

impl FreeFrom {
    fn new(layout: Layout) -> Self {
        let further = layout.cpus.max(1) - 1 + 2 * (layout.nics.max(1) - 1);
        let more = (further > 0).then(|| vec![0; further].into_boxed_slice());
        Self { more, cpus: layout.cpus.max(1) as u32, ..Self::default() }
    }

    #[inline]
    pub(super) fn cpu(&self, cpu: u8) -> u64 {
        if cpu == 0 { self.cpu } else { self.further(usize::from(cpu) - 1) }
    }

    #[inline]
    pub(super) fn out(&self, nic: u8) -> u64 {
        if nic == 0 { self.out } else { self.further(self.pair(nic)) }
    }

    #[inline]
    pub(super) fn inward(&self, nic: u8) -> u64 {
        if nic == 0 { self.inward } else { self.further(self.pair(nic) + 1) }
    }

    #[inline]
    pub(super) fn cpu_mut(&mut self, cpu: u8) -> &mut u64 {
        if cpu == 0 { &mut self.cpu } else { self.further_mut(usize::from(cpu) - 1) }
    }

    #[inline]
    pub(super) fn out_mut(&mut self, nic: u8) -> &mut u64 {
        if nic == 0 { &mut self.out } else { self.further_mut(self.pair(nic)) }
    }

    #[inline]
    pub(super) fn inward_mut(&mut self, nic: u8) -> &mut u64 {
        if nic == 0 { &mut self.inward } else { self.further_mut(self.pair(nic) + 1) }
    }

    /// When the last CPU is free.
    pub(super) fn finish(&self) -> u64 {
        let further = self.more.iter().flat_map(|more| &more[..self.cpus as usize - 1]);
        further.copied().fold(self.cpu, u64::max)
    }

    fn pair(&self, nic: u8) -> usize {
        self.cpus as usize - 1 + 2 * (usize::from(nic) - 1)
    }

    #[cold]
    fn further(&self, at: usize) -> u64 {
        self.more.as_ref().map_or(0, |more| more[at])
    }

    #[cold]
    fn further_mut(&mut self, at: usize) -> &mut u64 {
        &mut self.more.get_or_insert_with(|| vec![0; at + 1].into_boxed_slice())[at]
    }
}

impl Resources for FreeFrom {
    #[inline]
    fn free_from(&self, what: What, cpu: u8, nic: u8) -> u64 {
        match what {
            What::Send => self.cpu(cpu).max(self.out(nic)),
            What::Message => self.cpu(cpu).max(self.inward(nic)),
            What::Calc => self.cpu(cpu),
            What::Recv | What::Arriving | What::Answer => 0,
        }
    }
}

/// All ranks at the end of a run, and how many events there were.
pub(super) type Played<S> = (Vec<Rank<S>>, u64);

/// One rank. `S` is what its program keeps of it.
#[derive(Debug)]
pub(super) struct Rank<S> {
    pub(super) free: FreeFrom,
    /// No detour strikes an operation that ends by then.
    pub(super) quiet: u64,
    pub(super) pending: Pending,
    /// Receives without a message, and messages without a receive.
    pub(super) posted: Queue,
    pub(super) arrived: Queue,
    pub(super) state: S,
    /// Noise so far, in nanoseconds.
    pub(super) noise: u64,
}

impl<S> Rank<S> {
    pub(super) fn new(layout: Layout, state: S) -> Self {
        Self {
            free: FreeFrom::new(layout),
            quiet: 0,
            pending: Pending::default(),
            posted: Queue::default(),
            arrived: Queue::default(),
            state,
            noise: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event, me: u32) {
        self.pending.push(event, me);
    }
}
