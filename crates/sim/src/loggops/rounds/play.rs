//! Plays operations in their order.

use std::ops::ControlFlow;

use super::cost::MessageCost;
use super::ordered::{Action, Op, Order};
use super::walk::{Cursor, NEVER, Walks};
use crate::loggops::play::Cost;
use crate::loggops::{RankClocks, prefetch};

/// Operations between two reports.
pub(super) const REPORT: usize = 1 << 15;

/// A rank, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Rank {
    pub(super) cpu: i64,
    pub(super) out: i64,
    pub(super) inward: i64,
    /// When the next detour begins.
    next: i64,
    cursor: Cursor,
    /// Sum of the noise that struck.
    lost: u64,
    /// When its receives were posted, if there are several.
    posted: i64,
}

/// A message of a step with several.
#[derive(Clone, Copy, Debug)]
struct Met {
    at: i64,
    shape: u32,
    slot: u32,
    /// The index of the operation in the list.
    number: usize,
}

/// Records what operations wait for: they are shown to it before they are played, by their indices in the list.
pub(super) trait Record {
    /// A send, or that of the data of a rendezvous that was answered at this time.
    fn send(&mut self, at: usize, me: u32, slot: u32, rank: &Rank, answered: Option<i64>);
    fn work(&mut self, at: usize, me: u32);
    fn post(&mut self, me: u32);
    /// A message that arrived, and when the receives of its step were posted, if there are several.
    fn handle(&mut self, at: usize, me: u32, slot: u32, rank: &Rank, arrival: i64, posted: Option<i64>);
    /// What was handled is answered.
    fn answer(&mut self, at: usize, slot: u32);
}

impl Record for () {
    fn send(&mut self, _: usize, _: u32, _: u32, _: &Rank, _: Option<i64>) {}
    fn work(&mut self, _: usize, _: u32) {}
    fn post(&mut self, _: u32) {}
    fn handle(&mut self, _: usize, _: u32, _: u32, _: &Rank, _: i64, _: Option<i64>) {}
    fn answer(&mut self, _: usize, _: u32) {}
}

/// All ranks, and the messages between them.
#[derive(Debug)]
pub(super) struct Ranks<'a> {
    walks: &'a Walks<'a>,
    pub(super) costs: Vec<MessageCost>,
    pub(super) works: Vec<i64>,
    pub(super) ranks: Vec<Rank>,
    /// When the message of each slot arrives.
    arrivals: Vec<i64>,
    met: Vec<Met>,
}

impl<'a> Ranks<'a> {
    /// All ranks at time 0.
    pub(super) fn new(
        walks: &'a Walks<'a>,
        clocks: Option<&RankClocks>,
        costs: &[Cost],
        slots: u32,
        ranks: usize,
    ) -> Self {
        let silent =
            Rank { cpu: 0, out: 0, inward: 0, next: NEVER, cursor: Cursor::default(), lost: 0, posted: 0 };
        let mut all = vec![silent; ranks];
        for (rank, place) in all.iter_mut().zip(clocks.map_or(&[][..], RankClocks::places)) {
            (rank.cursor, rank.next) = walks.start(place.clock, place.offset);
        }
        Self {
            walks,
            costs: costs.iter().map(MessageCost::new).collect(),
            works: costs.iter().map(|cost| cost.work as i64).collect(),
            ranks: all,
            arrivals: vec![0; slots as usize],
            met: Vec::new(),
        }
    }

    /// Plays an iteration, and shows it to `record`. Calls `played` with the number of operations since it was last called.
    pub(super) fn play(
        &mut self,
        order: &Order,
        record: &mut impl Record,
        played: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (chunk, ops) in order.ops.chunks(REPORT).enumerate() {
            for (number, op) in (chunk * REPORT..).zip(ops) {
                self.op(number, op, record);
            }
            played(ops.len() as u64)?;
        }
        ControlFlow::Continue(())
    }

    /// Makes room for the message that an operation sends, if it is the first in its slot.
    #[inline]
    pub(super) fn make_room(&mut self, op: &Op) {
        if let Action::Send(slot) | Action::Request(slot) = op.action
            && slot as usize == self.arrivals.len()
        {
            self.arrivals.push(0);
        }
    }

    /// Hints that operations of a rank will follow soon.
    #[inline]
    pub(super) fn prepare(&self, rank: u32) {
        if let Some(rank) = self.ranks.get(rank as usize) {
            prefetch::<_, 1>(rank);
        }
    }

    /// Plays an operation, and shows it to `record`.
    #[inline]
    pub(super) fn op(&mut self, number: usize, op: &Op, record: &mut impl Record) {
        let Self { walks, costs, works, ranks, arrivals, met } = self;
        let rank = &mut ranks[op.rank as usize];
        match op.action {
            Action::Send(slot) => {
                record.send(number, op.rank, slot, rank, None);
                arrivals[slot as usize] = rank.send(walks, &costs[op.shape as usize]);
            }
            Action::Work => {
                record.work(number, op.rank);
                let start = rank.cpu;
                rank.cpu = rank.work(walks, start, works[op.shape as usize]);
            }
            Action::Post => {
                record.post(op.rank);
                rank.posted = rank.cpu;
            }
            Action::Request(slot) => {
                record.send(number, op.rank, slot, rank, None);
                arrivals[slot as usize] = rank.send(walks, &costs[op.shape as usize].request());
            }
            Action::Answer(slot) => {
                let cost = costs[op.shape as usize];
                record.handle(number, op.rank, slot, rank, arrivals[slot as usize], None);
                record.answer(number, slot);
                rank.handle(walks, &cost.request(), arrivals[slot as usize]);
                arrivals[slot as usize] = rank.cpu + cost.latency;
            }
            Action::SendData(slot) => {
                record.send(number, op.rank, slot, rank, Some(arrivals[slot as usize]));
                rank.cpu = rank.cpu.max(arrivals[slot as usize]);
                arrivals[slot as usize] = rank.send(walks, &costs[op.shape as usize]);
            }
            Action::HandleData(slot) => {
                record.handle(number, op.rank, slot, rank, arrivals[slot as usize], None);
                rank.handle(walks, &costs[op.shape as usize], arrivals[slot as usize]);
            }
            Action::Handle { slot, more: false } if met.is_empty() => {
                record.handle(number, op.rank, slot, rank, arrivals[slot as usize], None);
                rank.handle(walks, &costs[op.shape as usize], arrivals[slot as usize]);
            }
            Action::Handle { slot, more } => {
                let at = arrivals[slot as usize].max(rank.posted);
                met.push(Met { at, shape: op.shape, slot, number });
                if !more {
                    // Stable: of those that met their receives together, the first receive goes first.
                    met.sort_by_key(|met| met.at);
                    for met in met.drain(..) {
                        let (arrival, posted) = (arrivals[met.slot as usize], Some(rank.posted));
                        record.handle(met.number, op.rank, met.slot, rank, arrival, posted);
                        rank.handle(walks, &costs[met.shape as usize], met.at);
                    }
                }
            }
        }
    }

    /// When each rank finished, and the noise that struck it.
    pub(super) fn into_results(self) -> (Vec<u64>, Vec<u64>) {
        self.ranks.into_iter().map(|rank| (rank.cpu as u64, rank.lost)).unzip()
    }
}

impl Rank {
    /// When work that starts at `start` ends, and the state of the noise after it.
    #[inline(always)]
    fn end(&self, walks: &Walks<'_>, start: i64, work: i64) -> (i64, Cursor, i64) {
        let Self { mut cursor, mut next, .. } = *self;
        let mut end = start + work;
        if end > next {
            end = walks.end(&mut cursor, &mut next, start, work);
        }
        (end, cursor, next)
    }

    /// Does work, and returns when it ends.
    #[inline(always)]
    fn work(&mut self, walks: &Walks<'_>, start: i64, work: i64) -> i64 {
        let end;
        (end, self.cursor, self.next) = self.end(walks, start, work);
        self.lost += (end - start - work) as u64;
        end
    }

    /// Sends a message, and returns when it arrives.
    #[inline(always)]
    fn send(&mut self, walks: &Walks<'_>, cost: &MessageCost) -> i64 {
        let MessageCost { latency, overhead, gap, copy, wire } = *cost;
        let start = self.cpu.max(self.out);
        let leaves = if copy == 0 { None } else { Some(self.end(walks, start, overhead).0) };
        self.cpu = self.work(walks, start, overhead + copy);
        let leaves = leaves.unwrap_or(self.cpu);
        self.out = leaves - overhead + gap + wire;
        leaves + latency
    }

    /// Handles a message that met its receive at `met`.
    #[inline(always)]
    fn handle(&mut self, walks: &Walks<'_>, cost: &MessageCost, met: i64) {
        let MessageCost { overhead, gap, copy, wire, .. } = *cost;
        let start = met.max(self.cpu).max(self.inward);
        let after = self.end(walks, start + wire, overhead);
        // Work of the bytes on the CPU, where that takes longer than their arrival.
        let own = if copy == 0 { after } else { self.end(walks, start, overhead + copy) };
        let end;
        (end, self.cursor, self.next) = if own.0 > after.0 { own } else { after };
        self.lost += (end - start - overhead - copy.max(wire)) as u64;
        self.inward = start + gap + wire;
        self.cpu = end;
    }
}
