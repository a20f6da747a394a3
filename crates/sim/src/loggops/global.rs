//! All ranks in one global order of time.
//!
//! LogGOPSim's rules need it: waiting events are ordered by a count over all ranks, a rendezvous ends at its sender in the instant
//! at which it is received, and times may go back. A network without latency needs it too. There is no heap of events:
//! each rank knows its next event, and only these turns are queued, in buckets of one nanosecond.

use std::collections::{BTreeMap, BinaryHeap};

use super::event::{Next, Pending, Turn, What};
use super::free::{IdleTimes, Layout};
use super::play::{Effects, MAX_TIME, Play, raise};
use super::program::{ANY, Program};
use super::rank::{Played, Rank};
use super::{Run, RunError};

/// A rank's turn: (start, age, tie).
type Entry = (Turn, u32);

/// Number of nanoseconds that have a bucket of their own at a time.
const SPAN: u64 = 1 << 13;

/// Queue of future turns, ordered by start, age and tie.
#[derive(Debug)]
struct Calendar {
    /// The current nanosecond, and the position in it.
    now: u64,
    begun: bool,
    current: Vec<Entry>,
    next: usize,
    /// The buckets of the nanoseconds of the current span.
    buckets: Vec<Vec<Entry>>,
    filled: Vec<u64>,
    /// Later spans, by number.
    later: BTreeMap<u64, Vec<Entry>>,
    /// Turns that were added for the current nanosecond or an earlier one.
    late: BinaryHeap<std::cmp::Reverse<Entry>>,
}

impl Calendar {
    fn new() -> Self {
        Self {
            now: 0,
            begun: false,
            current: Vec::new(),
            next: 0,
            buckets: vec![Vec::new(); SPAN as usize],
            filled: vec![0; SPAN as usize / 64],
            later: BTreeMap::new(),
            late: BinaryHeap::new(),
        }
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        let time = entry.0.0;
        if time < self.now || (time == self.now && self.begun) {
            self.late.push(std::cmp::Reverse(entry));
        } else if time / SPAN == self.now / SPAN {
            let at = (time % SPAN) as usize;
            self.filled[at / 64] |= 1 << (at % 64);
            self.buckets[at].push(entry);
        } else {
            self.later.entry(time / SPAN).or_default().push(entry);
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        loop {
            let due = self.current.get(self.next).copied();
            if let Some(late) = self.late.peek()
                && due.is_none_or(|due| late.0 < due)
            {
                return self.late.pop().map(|late| late.0);
            }
            if due.is_some() {
                self.next += 1;
                return due;
            }
            self.turn_page()?;
        }
    }

    /// Advances to the next nanosecond that has turns.
    fn turn_page(&mut self) -> Option<()> {
        self.begun = true;
        self.current.clear();
        self.next = 0;
        let from = (self.now % SPAN) as usize;
        let mut word = from / 64;
        let mut bits = self.filled[word] & (!0u64 << (from % 64));
        while bits == 0 {
            word += 1;
            if word == self.filled.len() {
                return self.turn_span();
            }
            bits = self.filled[word];
        }
        let at = word * 64 + bits.trailing_zeros() as usize;
        self.filled[word] &= !(1 << (at % 64));
        self.now = self.now / SPAN * SPAN + at as u64;
        std::mem::swap(&mut self.current, &mut self.buckets[at]);
        // The bucket is mostly sorted already.
        self.current.sort();
        Some(())
    }

    /// Advances to the next span that has turns.
    fn turn_span(&mut self) -> Option<()> {
        let (span, entries) = self.later.pop_first()?;
        self.now = span * SPAN;
        for entry in entries {
            let at = (entry.0.0 % SPAN) as usize;
            self.filled[at / 64] |= 1 << (at % 64);
            self.buckets[at].push(entry);
        }
        // The first nanosecond of the span is still to be processed.
        let first = std::mem::take(&mut self.buckets[0]);
        self.filled[0] &= !1;
        self.current = first;
        self.current.sort();
        Some(())
    }
}

/// A rank with the turn that the calendar holds for it, so that outdated turns are recognised.
#[derive(Debug)]
struct Seat<S, F> {
    rank: Rank<S, F>,
    turn: Option<Turn>,
    next: Option<Next>,
}

/// Plays all ranks in one order of time.
pub(super) struct Global<'a, P: Program, F, R> {
    program: &'a P,
    rules: &'a R,
    counted: bool,
    shrinks: bool,
    seats: Vec<Seat<P::Rank, F>>,
    noise: Vec<u64>,
    calendar: Calendar,
    /// Number of events that were made.
    pub(super) events: u64,
    effects: Effects,
}

impl<'a, P: Program, F: IdleTimes, R: Play<P, F>> Global<'a, P, F, R> {
    /// Starts all ranks; with `counted`, the age of an event is LogGOPSim's count.
    pub(super) fn new(program: &'a P, rules: &'a R, layout: Layout, counted: bool) -> Self {
        let mut this = Self {
            program,
            rules,
            counted,
            shrinks: rules.may_shrink(),
            seats: Vec::with_capacity(program.ranks() as usize),
            noise: vec![0; program.ranks() as usize],
            calendar: Calendar::new(),
            events: 0,
            effects: Effects::default(),
        };
        for me in 0..program.ranks() {
            let state = program.begin(me, &mut this.effects.free);
            this.seats.push(Seat { rank: Rank::new(layout, state), turn: None, next: None });
            this.free_ops(me, 0);
            this.look(me);
        }
        this
    }

    /// Plays to the end and returns the ranks.
    pub(super) fn run(mut self, run: &Run<'_>) -> Result<Played<P::Rank, F>, RunError> {
        let mut reported = 0;
        while let Some((turn, me)) = self.calendar.pop() {
            let seat = &mut self.seats[me as usize];
            if seat.turn != Some(turn) {
                continue;
            }
            // A message that has arrived takes the turn of its arrival.
            seat.turn = None;
            if !self.counted && turn.0 > MAX_TIME {
                return Err(RunError::Overflow);
            }
            if self.shrinks {
                let Rank { pending, free, .. } = &mut seat.rank;
                Pending::settle(pending, free, turn, me);
            }
            let Some(event) = seat.next.and_then(|next| seat.rank.pending.take(next)) else { continue };
            self.rules.play(me, &mut seat.rank, event, turn.0, &mut self.effects);
            if let Some(error) = self.effects.error.take() {
                return Err(error);
            }
            self.noise[me as usize] =
                self.noise[me as usize].wrapping_add(std::mem::take(&mut self.effects.noise));
            self.spread(me, turn.0);
            if self.events - reported >= 1 << 16 {
                reported = self.events;
                if (run.progress)(reported).is_break() {
                    return Err(RunError::Stopped);
                }
            }
        }
        let ranks = self.seats.into_iter().map(|seat| seat.rank).collect();
        Ok(Played { ranks, noise: self.noise, events: self.events })
    }

    /// Carries out the effects of the event of `me` at `t`.
    fn spread(&mut self, me: u32, t: u64) {
        let to = std::mem::replace(&mut self.effects.message_to, ANY);
        if to != ANY {
            let mut event = self.effects.message;
            event.age = self.age(t, event.what);
            self.seats[to as usize].rank.push(event, to);
        }
        match self.effects.remote.take() {
            None => self.free_ops(me, t),
            Some(remote) => {
                let own = std::mem::take(&mut self.effects.free);
                let mut freed = Vec::new();
                let sender = &mut self.seats[remote.rank as usize].rank;
                self.program.done(remote.rank, &mut sender.state, remote.op, remote.at, &mut freed);
                raise(sender, remote);
                // LogGOPSim goes through the hosts in ascending order.
                let mut both = [(me, own), (remote.rank, freed)];
                both.sort_by_key(|(rank, _)| *rank);
                for (rank, free) in both {
                    self.effects.free = free;
                    self.free_ops(rank, t);
                }
                self.look(remote.rank);
            }
        }
        self.look(me);
        if to != ANY && to != me {
            self.look(to);
        }
    }

    /// Queues the operations of `me` that became free at `t`.
    fn free_ops(&mut self, me: u32, t: u64) {
        let mut free = std::mem::take(&mut self.effects.free);
        // Stable, so that operations of one kind keep the order of the program.
        let shapes = self.program.shapes();
        free.sort_by_key(|free| shapes[free.shape as usize].kind);
        for &one in &free {
            let age = self.age(t, What::Send);
            let rank = &mut self.seats[me as usize].rank;
            let event = self.rules.freed(me, rank, one, age);
            rank.push(event, me);
        }
        free.clear();
        self.effects.free = free;
    }

    /// The age of an event that is made now; counts the event.
    fn age(&mut self, t: u64, what: What) -> u64 {
        self.events += u64::from(what != What::Answer);
        if self.counted { self.events } else { t }
    }

    /// Puts the next turn of a rank into the calendar, if it differs from the one that is there.
    #[inline]
    fn look(&mut self, me: u32) {
        let seat = &mut self.seats[me as usize];
        let Rank { pending, free, .. } = &mut seat.rank;
        let next = pending.next(free, me);
        // Its index may change with every event that is taken.
        seat.next = next;
        let turn = next.and_then(|next| pending.turn(next, me));
        if turn != seat.turn {
            seat.turn = turn;
            if let Some(turn) = turn {
                self.calendar.push((turn, me));
            }
        }
    }
}
