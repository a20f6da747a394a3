//! The detours on the critical path.
//!
//! Every event in a simulation starts when the last thing that it waited for is over. So the end of each event has a
//! trail: the detours on the path that led to it, newest first. Trails share their older parts, and only a detour makes a new
//! one. The trail of the last rank to finish holds the detours that made the program late; all others were absorbed.

use std::collections::HashMap;

use super::{Seen, Watch};
use crate::loggops::event::What;
use crate::loggops::noise::RankClocks;
use crate::loggops::outcome::Outcome;

/// Work on the critical path that noise prolonged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The rank that it struck.
    pub rank: u32,
    /// The iteration of the program, from 0.
    pub iteration: u32,
    /// When the work started, in nanoseconds of the run.
    pub start: u64,
    /// When it was done.
    pub end: u64,
    /// The delay by noise, in nanoseconds.
    pub delay: u64,
    /// The index of the rank's clock.
    pub clock: u32,
    /// Where in the clock's trace the work started; its detours are those from here on for `end - start` nanoseconds.
    pub at: u64,
}

/// The noise that made a program late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Culprits {
    /// The hits on the critical path, in order of time. The end of the run less the sum of their delays is the length of that path
    /// on a machine without noise.
    pub hits: Vec<Hit>,
    /// The noise that struck each rank's work on the critical path, in nanoseconds. All other noise of the rank was absorbed.
    pub propagated: Vec<u64>,
}

/// Work that noise prolonged.
#[derive(Clone, Copy, Debug)]
pub(in crate::loggops) struct Struck {
    pub(in crate::loggops) rank: u32,
    pub(in crate::loggops) iteration: u32,
    pub(in crate::loggops) start: u64,
    pub(in crate::loggops) end: u64,
    pub(in crate::loggops) delay: u64,
}

impl Struck {
    /// The same with its place in the rank's clock.
    fn hit(self, clocks: Option<&RankClocks>) -> Hit {
        let Self { rank, iteration, start, end, delay } = self;
        let (clock, at) = clocks.map_or((0, 0), |clocks| {
            let place = clocks.places()[rank as usize];
            let period = clocks.clocks()[place.clock as usize].period().max(1);
            (place.clock, start.saturating_add(place.offset) % period)
        });
        Hit { rank, iteration, start, end, delay, clock, at }
    }
}

impl Culprits {
    /// The noise on a critical path, in order of time.
    pub(in crate::loggops) fn new(
        struck: impl Iterator<Item = Struck>,
        ranks: u32,
        clocks: Option<&RankClocks>,
    ) -> Self {
        let mut this = Self { hits: Vec::new(), propagated: vec![0; ranks as usize] };
        for struck in struck {
            this.propagated[struck.rank as usize] += struck.delay;
            this.hits.push(struck.hit(clocks));
        }
        this
    }

    /// The noise on the critical path, in nanoseconds.
    pub fn delay(&self) -> u64 {
        self.hits.iter().map(|hit| hit.delay).sum()
    }
}

/// The trail without detours.
const CLEAN: u32 = 0;
/// Number of recent ends of operations that are kept per rank.
const ENDS: usize = 4;
/// Number of hits that are kept before those that no trail reaches are dropped.
const SWEEP: usize = 1 << 22;

/// A hit and the trail before it.
#[derive(Clone, Copy, Debug)]
struct Step {
    before: u32,
    struck: Struck,
}

/// The trails of one rank.
#[derive(Clone, Debug, Default)]
struct OfRank {
    /// The trail of the time from which each CPU is free, and each interface for sending and for receiving.
    cpus: Vec<u32>,
    outs: Vec<u32>,
    inwards: Vec<u32>,
    /// The times of the last ends of operations, and their trails.
    ends: [(u64, u32); ENDS],
    next: usize,
}

impl OfRank {
    fn ended(&mut self, at: u64, trail: u32) {
        self.ends[self.next % ENDS] = (at, trail);
        self.next += 1;
    }

    /// The trail of the end at `at`.
    fn end_at(&self, at: u64) -> Option<u32> {
        self.ends.iter().find(|end| end.0 == at).map(|end| end.1)
    }
}

fn trail(of: &[u32], number: u8) -> u32 {
    of.get(usize::from(number)).copied().unwrap_or(CLEAN)
}

fn set(of: &mut Vec<u32>, number: u8, trail: u32) {
    let number = usize::from(number);
    if of.len() <= number {
        of.resize(number + 1, CLEAN);
    }
    of[number] = trail;
}

/// All trails of a run.
pub(in crate::loggops) struct Trails {
    steps: Vec<Step>,
    sweep_at: usize,
    ranks: Vec<OfRank>,
    /// Trails of free operations, by rank and operation.
    free: HashMap<(u32, u32), u32>,
    /// Trails of messages in flight or not yet received, by sender and operation, and the times at which they arrive.
    messages: HashMap<(u32, u32), (u32, u64)>,
    /// Trails of the answers of rendezvous in flight, by the rank that they go to and operation.
    answers: HashMap<(u32, u32), u32>,
    /// Trails of the last arrival among the messages of two ranks, where one could overtake another.
    last_arrivals: HashMap<(u32, u32), u32>,
    /// Trails of the data of rendezvous in flight, by sender and operation.
    data: HashMap<(u32, u32), u32>,
}

impl Trails {
    pub(super) fn new(ranks: u32) -> Self {
        let none = Struck { rank: 0, iteration: 0, start: 0, end: 0, delay: 0 };
        let clean = Step { before: CLEAN, struck: none };
        Self {
            steps: vec![clean],
            sweep_at: SWEEP,
            ranks: vec![OfRank::default(); ranks as usize],
            free: HashMap::new(),
            messages: HashMap::new(),
            answers: HashMap::new(),
            last_arrivals: HashMap::new(),
            data: HashMap::new(),
        }
    }

    /// The trail of the arrival of an event.
    fn came(&mut self, seen: &Seen<'_>) -> u32 {
        let event = seen.event;
        match event.what {
            What::Send | What::Recv | What::Calc => self.free.remove(&(seen.rank, event.op)).unwrap_or(CLEAN),
            What::Message => {
                let posted = seen.receive.and_then(|receive| self.free.remove(&(seen.rank, receive)));
                match (self.messages.get(&(event.who, event.op)), posted) {
                    // The message waited for its receive.
                    (Some(&(_, arrived)), Some(posted)) if arrived < event.time => posted,
                    (message, _) => message.map_or(CLEAN, |message| message.0),
                }
            }
            What::Answer => self.answers.remove(&(seen.rank, event.op)).unwrap_or(CLEAN),
            What::Data => self.data.remove(&(event.who, event.op)).unwrap_or(CLEAN),
            What::Arriving | What::DataArriving | What::Handling => CLEAN,
        }
    }

    fn add(&mut self, before: u32, seen: &Seen<'_>, end: u64, delay: u64) -> u32 {
        if delay == 0 {
            return before;
        }
        let Seen { rank, iteration, start, .. } = *seen;
        self.steps.push(Step { before, struck: Struck { rank, iteration, start, end, delay } });
        (self.steps.len() - 1) as u32
    }

    /// Drops the hits that no trail reaches.
    fn sweep(&mut self) {
        let mut used = vec![false; self.steps.len()];
        used[CLEAN as usize] = true;
        self.each_trail(|trail| {
            used[*trail as usize] = true;
        });
        // A step always follows the steps before it.
        for step in (1..self.steps.len()).rev() {
            if used[step] {
                used[self.steps[step].before as usize] = true;
            }
        }
        let mut place = vec![CLEAN; self.steps.len()];
        let mut kept = 0u32;
        for step in 0..self.steps.len() {
            if used[step] {
                let before = place[self.steps[step].before as usize];
                self.steps[kept as usize] = Step { before, ..self.steps[step] };
                place[step] = kept;
                kept += 1;
            }
        }
        self.steps.truncate(kept as usize);
        self.each_trail(|trail| *trail = place[*trail as usize]);
        self.sweep_at = SWEEP.max(2 * self.steps.len());
    }

    fn each_trail(&mut self, mut each: impl FnMut(&mut u32)) {
        for rank in &mut self.ranks {
            let ends = rank.ends.iter_mut().map(|end| &mut end.1);
            let free = [&mut rank.cpus, &mut rank.outs, &mut rank.inwards].into_iter().flatten();
            free.chain(ends).for_each(&mut each);
        }
        self.free.values_mut().for_each(&mut each);
        self.messages.values_mut().for_each(|message| each(&mut message.0));
        self.answers.values_mut().chain(self.data.values_mut()).for_each(&mut each);
        self.last_arrivals.values_mut().for_each(&mut each);
    }

    /// The trail of the rank that finished last.
    pub(super) fn culprits(&self, outcome: &Outcome, clocks: Option<&RankClocks>) -> Culprits {
        let (last, end) = outcome.last();
        let Some(rank) = self.ranks.get(last as usize) else { return Culprits::default() };
        let mut path = Vec::new();
        let mut trail = rank.end_at(end).unwrap_or_else(|| trail(&rank.cpus, 0));
        while trail != CLEAN {
            let step = self.steps[trail as usize];
            path.push(step.struck);
            trail = step.before;
        }
        Culprits::new(path.into_iter().rev(), self.ranks.len() as u32, clocks)
    }
}

impl Watch for Trails {
    fn see(&mut self, seen: &Seen<'_>) {
        if matches!(seen.event.what, What::Arriving | What::DataArriving) {
            return;
        }
        let before = self.led_to_start(seen);
        let own = self.add(before, seen, seen.end, seen.noise);
        self.occupy(seen, before, own);
        let (end, trail) = self.over(seen, own);
        if let Some((to, answer)) = seen.sent.filter(|(_, message)| message.what == What::Answer) {
            self.answers.insert((to, answer.op), trail);
        }
        let me = seen.rank as usize;
        self.ranks[me].ended(end, trail);
        if seen.in_call && seen.event.what == What::Recv {
            // What its handling waited for, if the message came first.
            self.free.insert((seen.rank, seen.event.op), trail);
        }
        for free in seen.freed {
            let of = match free.ready {
                ready if ready == end => trail,
                ready if ready == seen.start => before,
                ready => self.ranks[me].end_at(ready).unwrap_or(trail),
            };
            self.free.insert((seen.rank, free.op), of);
        }
        if self.steps.len() >= self.sweep_at {
            self.sweep();
        }
    }
}

impl Trails {
    /// The trail of what an event waited for last: its own arrival, its CPU or its interface.
    fn led_to_start(&mut self, seen: &Seen<'_>) -> u32 {
        let came = self.came(seen);
        let (event, rank) = (seen.event, &self.ranks[seen.rank as usize]);
        match event.what {
            _ if seen.start <= event.time => came,
            what if what.is_busy() && seen.start == seen.cpu_free => trail(&rank.cpus, event.cpu),
            What::Send | What::Answer => trail(&rank.outs, event.nic),
            What::Message | What::Data => trail(&rank.inwards, event.nic),
            _ => came,
        }
    }

    /// Stores trails for what an event occupied and for what it sent.
    fn occupy(&mut self, seen: &Seen<'_>, before: u32, own: u32) {
        let (event, me) = (seen.event, seen.rank as usize);
        if event.what.is_busy() {
            set(&mut self.ranks[me].cpus, event.cpu, own);
        }
        if matches!(event.what, What::Message | What::Data) {
            set(&mut self.ranks[me].inwards, event.nic, before);
        }
        let Some((to, message)) = seen.sent.filter(|(_, message)| message.what != What::Answer) else {
            return;
        };
        // Noise while the bytes are copied, after the overhead, does not delay the first of them.
        let arrives = message.time - seen.held.unwrap_or(0);
        let delay = arrives.saturating_sub(seen.start).saturating_sub(seen.flight);
        let sent = if delay == seen.noise { own } else { self.add(before, seen, arrives, delay) };
        if event.what == What::Answer {
            self.data.insert((seen.rank, message.op), sent);
        } else {
            let mut arrival = sent;
            if let Some(held) = seen.held {
                let last = self.last_arrivals.entry((seen.rank, to)).or_insert(sent);
                // A message that another one holds back arrives when that one does.
                *last = if held > 0 { *last } else { sent };
                arrival = *last;
            }
            self.messages.insert((seen.rank, message.op), (arrival, message.time));
        }
        set(&mut self.ranks[me].outs, event.nic, sent);
    }

    /// When the operation or message of an event was over, and the trail of that.
    fn over(&mut self, seen: &Seen<'_>, own: u32) -> (u64, u32) {
        let event = seen.event;
        match (event.what, seen.found) {
            (What::Message, Some(message)) => {
                self.messages.remove(&message);
            }
            (What::Message, None) => {
                self.messages.insert((event.who, event.op), (own, seen.end));
            }
            (What::Recv, Some(message)) => {
                let (trail, end) = self.messages.remove(&message).unwrap_or((own, seen.end));
                if end > seen.end {
                    return (end, trail);
                }
            }
            _ => {}
        }
        (seen.end, own)
    }
}

#[cfg(test)]
mod tests;
