//! What waits on a rank: operations that are free, messages on their way to it, answers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::SmallVec;

/// What an [`Event`] is. The order is that of [`Kind`](super::Kind), and goes on with what comes from other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum What {
    Send,
    Recv,
    Calc,
    /// A message to this rank. `who` is its sender, `op` and `shape` are those of the send.
    Message,
    /// A message whose CPU and interface are not known yet: that is settled at its arrival.
    Arriving,
    /// The receiver's answer to a rendezvous. `who` is the receiver, `op` the send.
    Answer,
}

/// 32 bytes, of which a simulation holds one for each operation that is free and each message in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// It does not start before.
    pub(super) time: u64,
    /// What was made earlier goes first: LogGOPSim's count, or the start of what made it.
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
    /// The order of events of one age: by the rank that made them, by what they are, by operation.
    pub(super) fn tie(&self, me: u32) -> u64 {
        let maker = if self.what >= What::Message { self.who } else { me };
        u64::from(maker) << 32 | (self.what as u64) << 29 | u64::from(self.op & 0x1fff_ffff)
    }
}

/// When an event starts, and what decides between those that start together.
pub(super) type Turn = (u64, u64, u64);

/// From when on what an event uses is free.
pub(super) trait Resources {
    fn free_from(&self, what: What, cpu: u8, nic: u8) -> u64;
}

/// More events than this are kept in heaps.
const CROWD: usize = 32;

/// All that waits on one rank.
#[derive(Debug, Default)]
pub(super) struct Pending {
    few: SmallVec<[Event; 3]>,
    crowd: Option<Box<Crowd>>,
}

/// Where [`Pending::next`] found an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Few(usize),
    Crowd(usize),
}

impl Pending {
    #[inline]
    pub(super) fn push(&mut self, event: Event, me: u32) {
        if let Some(crowd) = &mut self.crowd {
            crowd.push(event, me);
        } else if self.few.len() < CROWD {
            self.few.push(event);
        } else {
            self.gather(event, me);
        }
    }

    #[cold]
    fn gather(&mut self, event: Event, me: u32) {
        let mut crowd = Box::<Crowd>::default();
        self.few.drain(..).chain([event]).for_each(|event| crowd.push(event, me));
        self.crowd = Some(crowd);
    }

    /// The event whose turn comes first.
    ///
    /// What each event uses changes only when some event is taken, so none has to be put back: the next to start is
    /// the least of (start, age, tie), where the start is the latest of its time and of what it uses.
    #[inline]
    pub(super) fn next(&mut self, resources: &impl Resources, me: u32) -> Option<(Turn, Found)> {
        if let Some(crowd) = &mut self.crowd {
            return crowd.next(resources);
        }
        let start = |event: &Event| event.time.max(resources.free_from(event.what, event.cpu, event.nic));
        let mut events = self.few.iter().enumerate();
        let (_, mut best) = events.next()?;
        let (mut at, mut first) = (0, start(best));
        for (index, event) in events {
            let start = start(event);
            let sooner = match start.cmp(&first).then(event.age.cmp(&best.age)) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => event.tie(me) < best.tie(me),
                std::cmp::Ordering::Greater => false,
            };
            if sooner {
                (at, best, first) = (index, event, start);
            }
        }
        Some(((first, best.age, best.tie(me)), Found::Few(at)))
    }

    #[inline]
    pub(super) fn take(&mut self, found: Found) -> Option<Event> {
        match found {
            Found::Few(index) => Some(self.few.swap_remove(index)),
            Found::Crowd(class) => {
                let crowd = self.crowd.as_mut()?;
                let event = crowd.take(class);
                if crowd.len == 0 {
                    self.crowd = None;
                }
                event
            }
        }
    }

    /// Puts what LogGOPSim would have looked at and found waiting by `turn` behind what it waits for. It matters only where time a
    /// CPU is busy can shrink.
    pub(super) fn settle(&mut self, resources: &impl Resources, turn: Turn) {
        for event in self.few.iter_mut().filter(|event| (event.time, event.age) < (turn.0, turn.1)) {
            event.time = event.time.max(resources.free_from(event.what, event.cpu, event.nic));
        }
    }
}

/// Many events, by what they use: those that wait for it by age, those that come later by time.
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

    fn next(&mut self, resources: &impl Resources) -> Option<(Turn, Found)> {
        let turns = self.classes.iter_mut().enumerate().filter_map(|(index, class)| {
            let free = resources.free_from(class.what, class.cpu, class.nic);
            while let Some(Reverse(Keyed { key, .. })) = class.later.peek()
                && key.0 <= free
            {
                let Some(Reverse(Keyed { key: (_, age, tie), event })) = class.later.pop() else { break };
                class.waiting.push(Reverse(Keyed { key: (age, tie), event }));
            }
            let waiting = class.waiting.peek().map(|Reverse(Keyed { key, .. })| (free, key.0, key.1));
            let later = || class.later.peek().map(|Reverse(Keyed { key, .. })| *key);
            Some((waiting.or_else(later)?, Found::Crowd(index)))
        });
        turns.min_by_key(|(turn, _)| *turn)
    }

    fn take(&mut self, class: usize) -> Option<Event> {
        let class = &mut self.classes[class];
        let waiting = class.waiting.pop().map(|Reverse(keyed)| keyed.event);
        let event = waiting.or_else(|| class.later.pop().map(|Reverse(keyed)| keyed.event));
        self.len -= usize::from(event.is_some());
        event
    }
}
