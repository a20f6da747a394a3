//! The critical path of a run from a list.

use std::ops::{ControlFlow, Range};

use super::{Played, Sections, add, delay, last};
use crate::loggops::RankClocks;
use crate::loggops::rounds::cost::MessageCost;
use crate::loggops::rounds::ordered::{Action, Order};
use crate::loggops::rounds::play::{Rank, Ranks, Record};
use crate::loggops::watch::Struck;

/// A time that an operation determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::loggops::rounds) enum Time {
    /// When its CPU is free.
    Cpu,
    /// When its message arrives.
    Arrival,
    /// From when on its rank's interface is free to send, …
    Out,
    /// … and to receive.
    Inward,
}

const TIMES: [Time; 4] = [Time::Cpu, Time::Arrival, Time::Out, Time::Inward];

/// A time of an operation of the section, or of a rank before the section. In four bytes, because there is one for each operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin(u32);

/// The number of no operation: the origin is a rank's time before the section.
const BEFORE: u32 = (1 << 30) - 1;

impl Origin {
    fn new(number: u32, time: Time) -> Self {
        Self(number << 2 | time as u32)
    }

    /// The number of the operation, and which of its times.
    fn parts(self) -> (u32, Time) {
        (self.0 >> 2, TIMES[(self.0 & 3) as usize])
    }
}

/// Where the times of a rank are from.
#[derive(Clone, Copy, Debug)]
struct OfRank {
    cpu: Origin,
    out: Origin,
    inward: Origin,
    posted: Origin,
}

/// What the operations of a section waited for last.
#[derive(Debug)]
struct Recorder {
    ranks: Vec<OfRank>,
    /// The origin of each slot's arrival.
    slots: Vec<Origin>,
    /// The origin of each operation's start, iteration after iteration.
    starts: Vec<Origin>,
    /// The number of the first operation of the iteration.
    first: usize,
}

impl Recorder {
    /// Empty, for a section of some iterations.
    fn begin(&mut self, ranks: usize, order: &Order, iterations: usize) {
        let before = |time| Origin::new(BEFORE, time);
        let cpu = before(Time::Cpu);
        let of_rank = OfRank { cpu, out: before(Time::Out), inward: before(Time::Inward), posted: cpu };
        (self.ranks, self.slots) = (vec![of_rank; ranks], vec![cpu; order.slots as usize]);
        self.starts.clear();
        self.starts.resize(order.ops.len() * iterations, cpu);
        self.first = 0;
    }

    fn start(&mut self, at: usize, from: Origin) -> u32 {
        self.starts[self.first + at] = from;
        (self.first + at) as u32
    }
}

impl Record for Recorder {
    #[inline(always)]
    fn send(&mut self, at: usize, me: u32, slot: u32, rank: &Rank, answered: Option<i64>) {
        let of = self.ranks[me as usize];
        let free = rank.cpu.max(rank.out);
        let from = match answered {
            Some(answered) if answered >= free => self.slots[slot as usize],
            _ if rank.cpu == free => of.cpu,
            _ => of.out,
        };
        let number = self.start(at, from);
        let of = &mut self.ranks[me as usize];
        (of.cpu, of.out) = (Origin::new(number, Time::Cpu), Origin::new(number, Time::Out));
        self.slots[slot as usize] = Origin::new(number, Time::Arrival);
    }

    #[inline(always)]
    fn work(&mut self, at: usize, me: u32) {
        let number = self.start(at, self.ranks[me as usize].cpu);
        self.ranks[me as usize].cpu = Origin::new(number, Time::Cpu);
    }

    #[inline(always)]
    fn post(&mut self, me: u32) {
        let of = &mut self.ranks[me as usize];
        of.posted = of.cpu;
    }

    #[inline(always)]
    fn handle(&mut self, at: usize, me: u32, slot: u32, rank: &Rank, arrival: i64, posted: Option<i64>) {
        let of = self.ranks[me as usize];
        let start = arrival.max(posted.unwrap_or(arrival)).max(rank.cpu).max(rank.inward);
        let from = match start {
            // Of what ended together, the message counts first, and then the post of its receive: as where events are watched.
            _ if start == arrival => self.slots[slot as usize],
            _ if Some(start) == posted => of.posted,
            _ if start == rank.cpu => of.cpu,
            _ => of.inward,
        };
        let number = self.start(at, from);
        let of = &mut self.ranks[me as usize];
        (of.cpu, of.inward) = (Origin::new(number, Time::Cpu), Origin::new(number, Time::Inward));
    }

    #[inline(always)]
    fn answer(&mut self, at: usize, slot: u32) {
        self.slots[slot as usize] = Origin::new((self.first + at) as u32, Time::Arrival);
    }
}

/// A run from a list, in sections of iterations.
pub(in crate::loggops::rounds) struct InList<'a> {
    order: &'a Order,
    all: Ranks<'a>,
    iterations: u32,
    clocks: Option<&'a RankClocks>,
    recorder: Recorder,
}

/// The rank that the path is on, and which of its times.
type Place = (u32, Time);

impl<'a> InList<'a> {
    pub(in crate::loggops::rounds) fn new(
        order: &'a Order,
        all: Ranks<'a>,
        iterations: u32,
        clocks: Option<&'a RankClocks>,
    ) -> Self {
        let recorder = Recorder { ranks: Vec::new(), slots: Vec::new(), starts: Vec::new(), first: 0 };
        Self { order, all, iterations, clocks, recorder }
    }

    pub(in crate::loggops::rounds) fn into_ranks(self) -> Ranks<'a> {
        self.all
    }

    /// Plays an operation that starts at `t` as far as the path goes through it, and returns the time by which it leaves.
    fn step(&self, t: i64, number: u32, iteration: u32, time: Time, struck: &mut Vec<Struck>) -> i64 {
        let op = &self.order.ops[number as usize % self.order.ops.len()];
        let rank = op.rank;
        let delay = |start, work| delay(self.clocks, rank, start, work);
        let cost = &self.all.costs[op.shape as usize];
        let (cost, work) = match op.action {
            Action::Work => (MessageCost::default(), self.all.works[op.shape as usize]),
            Action::Request(_) | Action::Answer(_) => (cost.request(), 0),
            _ => (*cost, 0),
        };
        let MessageCost { latency, overhead, gap, copy, wire } = cost;
        let is_send = matches!(op.action, Action::Send(_) | Action::Request(_) | Action::SendData(_));
        if time == Time::Inward {
            return t + gap + wire;
        }
        // The bytes of a message that arrives are on the wire while they are copied.
        let silent = if is_send || op.action == Action::Work {
            overhead + copy + work
        } else {
            overhead + copy.max(wire)
        };
        let end = if is_send || op.action == Action::Work {
            t + silent + delay(t, silent)
        } else {
            let own = t + overhead + copy + delay(t, overhead + copy);
            own.max(t + wire + overhead + delay(t + wire, overhead))
        };
        let noise = end - t - silent;
        let before_bytes = delay(t, overhead);
        if !is_send || time == Time::Cpu || before_bytes == noise {
            add(struck, rank, iteration, [t, end], noise);
        } else {
            // Noise while the bytes are copied does not delay the first of them.
            let arrival = t + overhead + before_bytes + latency;
            add(struck, rank, iteration, [t, arrival], before_bytes);
        }
        match time {
            Time::Out => t + before_bytes + gap + wire,
            Time::Arrival if is_send => t + overhead + before_bytes + latency,
            Time::Arrival => end + latency,
            _ => end,
        }
    }
}

impl Sections for InList<'_> {
    type State = Vec<Rank>;
    type Place = Place;

    fn parts(&self) -> u64 {
        self.iterations.into()
    }

    fn recorded(&self) -> u64 {
        self.order.ops.len() as u64 * size_of::<Origin>() as u64
    }

    fn ranks(&self) -> usize {
        self.all.ranks.len()
    }

    fn state(&self) -> Vec<Rank> {
        self.all.ranks.clone()
    }

    fn set(&mut self, ranks: Vec<Rank>) {
        self.all.ranks = ranks;
    }

    fn play(&mut self, parts: Range<u64>, played: Played<'_>) -> ControlFlow<()> {
        parts.into_iter().try_for_each(|_| self.all.play(self.order, &mut (), played))
    }

    fn record(&mut self, parts: Range<u64>, played: Played<'_>) -> ControlFlow<()> {
        self.recorder.begin(self.all.ranks.len(), self.order, (parts.end - parts.start) as usize);
        for _ in parts {
            self.all.play(self.order, &mut self.recorder, played)?;
            self.recorder.first += self.order.ops.len();
        }
        ControlFlow::Continue(())
    }

    fn end(&self) -> Place {
        (last(self.all.ranks.iter().map(|rank| rank.cpu)), Time::Cpu)
    }

    fn follow(&self, parts: Range<u64>, place: Place, before: &Vec<Rank>, struck: &mut Vec<Struck>) -> Place {
        let of = &self.recorder.ranks[place.0 as usize];
        let mut origin = match place.1 {
            Time::Out => of.out,
            Time::Inward => of.inward,
            Time::Cpu | Time::Arrival => of.cpu,
        };
        let (mut path, mut rank) = (Vec::new(), place.0);
        let time = loop {
            let (number, time) = origin.parts();
            if number == BEFORE {
                break time;
            }
            path.push((number, time));
            rank = self.order.ops[number as usize % self.order.ops.len()].rank;
            origin = self.recorder.starts[number as usize];
        };
        let begin = &before[rank as usize];
        let mut t = match time {
            Time::Out => begin.out,
            Time::Inward => begin.inward,
            Time::Cpu | Time::Arrival => begin.cpu,
        };
        for &(number, time) in path.iter().rev() {
            let iteration = parts.start as u32 + number / self.order.ops.len() as u32;
            t = self.step(t, number, iteration, time, struck);
        }
        (rank, time)
    }
}
