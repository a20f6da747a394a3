//! What waits on a rank: free operations, messages on their way to it, and answers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::few::InlineVec;
use super::free::IdleTimes;

/// The kind of an [`Event`]. The order is that of [`Kind`](super::Kind), followed by what comes from other ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum What {
    #[default]
    Send,
    Recv,
    Calc,
    /// A message that met its receive, under progress in the call. `who` is its sender, `shape` that of the send, `op` the receive.
    Handling,
    /// A message to this rank, or the request of a rendezvous. `who` is its sender, `op` and `shape` are those of the send.
    Message,
    /// A message whose CPU and interface are not known yet; they are determined when it arrives.
    Arriving,
    /// The receiver's answer to a rendezvous: this rank sends its data. `who` is the receiver, `op` and `shape` are those of the send.
    Answer,
    /// The data of a rendezvous. `who` is the sender, `op` and `shape` are those of the send.
    Data,
    /// Data whose CPU and interface are not known yet.
    DataArriving,
}

impl What {
    /// Whether it occupies a CPU.
    #[inline(always)]
    pub(super) fn is_busy(self) -> bool {
        matches!(self, Self::Send | Self::Calc | Self::Handling | Self::Message | Self::Answer | Self::Data)
    }

    /// The time from which all that such an event uses is free.
    #[inline(always)]
    fn free_from(self, free: &impl IdleTimes, cpu: u8, nic: u8) -> u64 {
        match self {
            Self::Send | Self::Answer => free.cpu(cpu).max(free.out(nic)),
            Self::Handling | Self::Message | Self::Data => free.cpu(cpu).max(free.inward(nic)),
            Self::Calc => free.cpu(cpu),
            Self::Recv | Self::Arriving | Self::DataArriving => 0,
        }
    }
}

/// An event, in 32 bytes. A simulation holds one for each free operation and each message in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event {
    /// It does not start before this time.
    pub(super) time: u64,
    /// Lower ages go first: LogGOPSim's count, or the start of the event that made it.
    pub(super) age: u64,
    /// The other rank.
    pub(super) who: u32,
    pub(super) op: u32,
    pub(super) shape: u32,
    pub(super) what: What,
    pub(super) cpu: u8,
    pub(super) nic: u8,
}

impl Event {
    /// When it can start: once it is there and what it uses is free.
    #[inline(always)]
    pub(super) fn start(&self, free: &impl IdleTimes) -> u64 {
        self.time.max(self.what.free_from(free, self.cpu, self.nic))
    }

    /// The order of events of equal start and age: by the rank that made them, by kind, by operation.
    pub(super) fn tie(&self, me: u32) -> u64 {
        let maker = if self.what >= What::Message { self.who } else { me };
        // What arrives goes with the messages that have arrived.
        let kind = match self.what {
            What::Arriving => What::Message,
            What::DataArriving => What::Data,
            other => other,
        };
        u64::from(maker) << 32 | (kind as u64) << 29 | u64::from(self.op & 0x1fff_ffff)
    }
}

/// When an event starts, and what decides between events that start together: age, tie.
pub(super) type Turn = (u64, u64, u64);

/// The first event of a rank in the order of turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) start: u64,
    pub(super) age: u64,
    /// Its index in the list, or the index of its class in the crowd.
    at: usize,
}

impl Next {
    /// The turn of an event that is not queued.
    #[inline(always)]
    pub(super) fn held(event: &Event, free: &impl IdleTimes) -> Self {
        Self { start: event.start(free), age: event.age, at: usize::MAX }
    }
}

/// Above this number, events are kept in heaps.
const CROWD: usize = 32;

/// All events that wait on one rank.
#[derive(Debug, Default)]
pub(super) struct Pending {
    few: InlineVec<Event, 3, Crowd>,
}

impl Pending {
    #[inline(always)]
    pub(super) fn push(&mut self, event: Event, me: u32) {
        if self.few.len() < CROWD && !self.few.is_away() {
            self.few.push(event);
        } else {
            self.join(event, me);
        }
    }

    /// Whether a receive waits to be posted.
    #[inline(always)]
    pub(super) fn holds_receive(&self) -> bool {
        let receives = |events: &[Event]| events.iter().any(|event| event.what == What::Recv);
        receives(self.few.here())
            || receives(self.few.there())
            || self.few.away().is_some_and(Crowd::holds_receive)
    }

    #[cold]
    fn join(&mut self, event: Event, me: u32) {
        let crowd = self.few.send_away(|crowd, event| crowd.push(event, me));
        crowd.push(event, me);
    }

    /// The event whose turn is first.
    ///
    /// What each event uses changes only when an event is taken, so none has to be put back: the next to start has
    /// the least (start, age, tie), where the start is the latest of its own time and the times from which what it uses is free.
    #[inline(always)]
    pub(super) fn next(&mut self, free: &impl IdleTimes, me: u32) -> Option<Next> {
        if self.few.len() == 0 {
            return if self.few.is_away() { self.few.away_mut()?.next(free) } else { None };
        }
        let mut best = Next { start: u64::MAX, age: u64::MAX, at: usize::MAX };
        for (at, event) in self.few.here().iter().enumerate() {
            self.weigh(at, event, free, me, &mut best);
        }
        for (at, event) in self.few.there().iter().enumerate() {
            self.weigh(at + self.few.here().len(), event, free, me, &mut best);
        }
        Some(best)
    }

    #[inline(always)]
    fn weigh(&self, at: usize, event: &Event, free: &impl IdleTimes, me: u32, best: &mut Next) {
        let start = event.start(free);
        let sooner = if start != best.start {
            start < best.start
        } else if event.age != best.age {
            event.age < best.age
        } else {
            self.few.get(best.at).is_none_or(|best| event.tie(me) < best.tie(me))
        };
        if sooner {
            *best = Next { start, age: event.age, at };
        }
    }

    /// Whether the turn of the queued event `found` comes after that of `event`, which is not queued.
    #[inline(always)]
    pub(super) fn yields(&self, found: Next, event: &Event, next: Next, me: u32) -> bool {
        if next.start != found.start {
            next.start < found.start
        } else if next.age != found.age {
            next.age < found.age
        } else {
            self.turn(found, me).is_none_or(|turn| event.tie(me) < turn.2)
        }
    }

    /// The turn of an event that [`Self::next`] found.
    pub(super) fn turn(&self, next: Next, me: u32) -> Option<Turn> {
        let event = match self.few.away() {
            Some(crowd) => crowd.get(next.at),
            None => self.few.get(next.at),
        };
        event.map(|event| (next.start, next.age, event.tie(me)))
    }

    #[inline(always)]
    pub(super) fn take(&mut self, next: Next) -> Option<Event> {
        if self.few.is_away() { self.leave(next.at) } else { self.few.swap_remove(next.at) }
    }

    #[cold]
    fn leave(&mut self, class: usize) -> Option<Event> {
        let crowd = self.few.away_mut()?;
        let event = crowd.take(class);
        if crowd.len == 0 {
            self.few.come_back();
        }
        event
    }

    /// Gives each event that LogGOPSim would have examined and put back by `turn` its start as its time. This matters only where
    /// the time until which a CPU is busy can shrink.
    pub(super) fn settle(&mut self, free: &impl IdleTimes, turn: Turn, me: u32) {
        let settle = |event: &mut Event| {
            if (event.time, event.age) < (turn.0, turn.1) {
                event.time = event.start(free);
            }
        };
        self.few.iter_mut().for_each(settle);
        if self.few.is_away()
            && let Some(crowd) = self.few.away_mut()
        {
            crowd.settle(settle, me);
        }
    }
}

/// Many events, by what they use: those that wait for it ordered by age, later ones by time.
#[derive(Debug, Default)]
struct Crowd {
    classes: Vec<Class>,
    len: usize,
}

#[derive(Debug)]
struct Class {
    what: What,
    cpu: u8,
    nic: u8,
    later: BinaryHeap<Reverse<Keyed<(u64, u64, u64)>>>,
    waiting: BinaryHeap<Reverse<Keyed<(u64, u64)>>>,
}

/// An event that is ordered by its key alone.
#[derive(Debug)]
struct Keyed<K> {
    key: K,
    event: Event,
}

impl<K: Ord> PartialEq for Keyed<K> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K: Ord> Eq for Keyed<K> {}

impl<K: Ord> PartialOrd for Keyed<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> Ord for Keyed<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Crowd {
    fn push(&mut self, event: Event, me: u32) {
        let Event { what, cpu, nic, .. } = event;
        let same = |class: &Class| (class.what, class.cpu, class.nic) == (what, cpu, nic);
        let at = self.classes.iter().position(same).unwrap_or_else(|| {
            let (later, waiting) = (BinaryHeap::new(), BinaryHeap::new());
            self.classes.push(Class { what, cpu, nic, later, waiting });
            self.classes.len() - 1
        });
        let key = (event.time, event.age, event.tie(me));
        self.classes[at].later.push(Reverse(Keyed { key, event }));
        self.len += 1;
    }

    fn next(&mut self, free: &impl IdleTimes) -> Option<Next> {
        let turns = self.classes.iter_mut().enumerate().filter_map(|(index, class)| {
            let free_at = class.what.free_from(free, class.cpu, class.nic);
            while let Some(Reverse(Keyed { key, .. })) = class.later.peek()
                && key.0 <= free_at
            {
                let Some(Reverse(Keyed { key: (_, age, tie), event })) = class.later.pop() else { break };
                class.waiting.push(Reverse(Keyed { key: (age, tie), event }));
            }
            let waiting = class.waiting.peek().map(|Reverse(Keyed { key, .. })| (free_at, key.0, key.1));
            let later = || class.later.peek().map(|Reverse(Keyed { key, .. })| *key);
            Some((waiting.or_else(later)?, index))
        });
        let ((start, age, _), class) = turns.min()?;
        Some(Next { start, age, at: class })
    }

    /// Classes keep their indices. Events that waited for what they use become later ones: `settle` gives them their time.
    #[cold]
    fn settle(&mut self, settle: impl Fn(&mut Event), me: u32) {
        for Class { later, waiting, .. } in &mut self.classes {
            let waited = waiting.drain().map(|Reverse(keyed)| keyed.event);
            let mut events: Vec<_> = later.drain().map(|Reverse(keyed)| keyed.event).chain(waited).collect();
            events.iter_mut().for_each(&settle);
            let keyed = |event: Event| Keyed { key: (event.time, event.age, event.tie(me)), event };
            later.extend(events.into_iter().map(|event| Reverse(keyed(event))));
        }
    }

    fn holds_receive(&self) -> bool {
        let waits = |class: &Class| !(class.later.is_empty() && class.waiting.is_empty());
        self.classes.iter().any(|class| class.what == What::Recv && waits(class))
    }

    fn get(&self, class: usize) -> Option<&Event> {
        let class = &self.classes[class];
        let waiting = class.waiting.peek().map(|Reverse(keyed)| &keyed.event);
        waiting.or_else(|| class.later.peek().map(|Reverse(keyed)| &keyed.event))
    }

    fn take(&mut self, class: usize) -> Option<Event> {
        let class = &mut self.classes[class];
        let waiting = class.waiting.pop().map(|Reverse(keyed)| keyed.event);
        let event = waiting.or_else(|| class.later.pop().map(|Reverse(keyed)| keyed.event));
        self.len -= usize::from(event.is_some());
        event
    }
}

#[cfg(test)]
mod tests;
