//! All operations of an iteration, in an order in which every message is sent before it is handled.
//!
//! For patterns whose ranks differ: trees, grids, numbers of ranks that are no powers of two. The order is found once, without times;
//! each iteration then goes through it from front to back, and no message has to be matched again.

use super::cost::is_playable;
use crate::loggops::play::Cost;
use crate::loggops::{Kind, ReadyOp, StepProgram};

/// Maximum number of operations of an iteration: 200 MB.
const MAX_OPS: u64 = 1 << 24;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Sends the message of this slot.
    Send(u32),
    /// Handles the message of this slot. More messages of the same step follow if `more`.
    Handle {
        slot: u32,
        more: bool,
    },
    Work,
    /// Posts several receives.
    Post,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) rank: u32,
    /// The number of its shape; for a message that of its send.
    pub(super) shape: u32,
    pub(super) action: Action,
}

/// The operations of one iteration.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) ops: Vec<Op>,
    /// Number of messages that are in flight at a time, at most.
    pub(super) slots: u32,
}

/// A message that was sent and not handled yet. Its index is its slot.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    shape: u32,
    /// The next message to the same rank.
    next: u32,
}

/// No message.
const NONE: u32 = u32::MAX;

/// A rank's place in the pattern.
#[derive(Clone, Copy, Debug)]
struct Place {
    step: u32,
    /// Whether the step's sends and work were done.
    begun: bool,
    waits: bool,
    /// Its messages in the order in which they were sent.
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Orderer<'a> {
    costs: &'a [Cost],
    ops: Vec<Op>,
    places: Vec<Place>,
    messages: Vec<Message>,
    /// Numbers of messages that are not in use.
    unused: Vec<u32>,
    /// Ranks to go on with, in this round and in the next.
    due: Vec<u32>,
    next: Vec<u32>,
    latency: Option<u64>,
    found: Vec<u32>,
}

impl Order {
    /// Whether a list holds this number of operations of an iteration.
    pub(super) fn may_hold(operations: u64) -> bool {
        operations <= MAX_OPS
    }

    /// The order of a pattern's operations; `None` if there are too many, or some that cannot be played in rounds.
    pub(super) fn new(program: &dyn StepProgram, ranks: u32, costs: &[Cost]) -> Option<Self> {
        let (operations, _) = program.iteration_totals()?;
        if !Self::may_hold(operations) {
            return None;
        }
        let place = Place { step: 0, begun: false, waits: false, first: NONE, last: NONE };
        let mut orderer = Orderer {
            costs,
            ops: Vec::with_capacity(operations as usize),
            places: vec![place; ranks as usize],
            messages: Vec::new(),
            unused: Vec::new(),
            due: (0..ranks).collect(),
            next: Vec::new(),
            latency: None,
            found: Vec::new(),
        };
        let mut scratch = Vec::new();
        while !orderer.due.is_empty() {
            for rank in std::mem::take(&mut orderer.due) {
                orderer.go_on(program, rank, &mut scratch)?;
            }
            orderer.due = std::mem::take(&mut orderer.next);
        }
        let Orderer { ops, places, messages, unused, .. } = orderer;
        let ended = |(rank, place): (u32, &Place)| place.step == program.rank_steps(rank);
        let complete = messages.len() == unused.len() && (0..).zip(&places).all(ended);
        complete.then_some(Self { ops, slots: messages.len() as u32 })
    }
}

impl Orderer<'_> {
    /// Adds the operations of a rank until it waits for a message.
    fn go_on(&mut self, program: &dyn StepProgram, rank: u32, scratch: &mut Vec<ReadyOp>) -> Option<()> {
        let steps = program.rank_steps(rank);
        while self.places[rank as usize].step < steps {
            let Place { step, begun, .. } = self.places[rank as usize];
            scratch.clear();
            program.step(rank, step, scratch);
            if !begun {
                self.begin(rank, scratch)?;
            }
            if !self.handle(rank, scratch) {
                let place = &mut self.places[rank as usize];
                (place.begun, place.waits) = (true, true);
                return Some(());
            }
            let place = &mut self.places[rank as usize];
            (place.begun, place.step) = (false, step + 1);
        }
        Some(())
    }

    fn kind(&self, op: &ReadyOp) -> Kind {
        self.costs[op.shape as usize].kind
    }

    /// Adds a step's sends, and then its work.
    fn begin(&mut self, rank: u32, step: &[ReadyOp]) -> Option<()> {
        if step.iter().any(|op| !is_playable(&self.costs[op.shape as usize])) {
            return None;
        }
        if step.iter().filter(|op| self.kind(op) == Kind::Recv).count() > 1 {
            self.ops.push(Op { rank, shape: 0, action: Action::Post });
        }
        for op in step.iter().filter(|op| self.costs[op.shape as usize].kind == Kind::Send) {
            // With one latency no message overtakes another.
            let latency = self.costs[op.shape as usize].latency;
            if *self.latency.get_or_insert(latency) != latency {
                return None;
            }
            let slot = self.send(rank, op)?;
            self.ops.push(Op { rank, shape: op.shape, action: Action::Send(slot) });
        }
        for op in step.iter().filter(|op| self.costs[op.shape as usize].kind == Kind::Calc) {
            self.ops.push(Op { rank, shape: op.shape, action: Action::Work });
        }
        Some(())
    }

    /// Puts a message into its receiver's list and returns its slot.
    fn send(&mut self, from: u32, op: &ReadyOp) -> Option<u32> {
        let unused = self.unused.pop();
        let slot = unused.unwrap_or(self.messages.len() as u32);
        let message = Message { from, shape: op.shape, next: NONE };
        match unused {
            Some(_) => self.messages[slot as usize] = message,
            None => self.messages.push(message),
        }
        let to = self.places.get_mut(op.peer as usize)?;
        match to.last {
            NONE => to.first = slot,
            last => self.messages[last as usize].next = slot,
        }
        to.last = slot;
        if std::mem::take(&mut to.waits) {
            self.next.push(op.peer);
        }
        Some(slot)
    }

    /// Adds the handling of all messages of a step, if all were sent.
    fn handle(&mut self, rank: u32, step: &[ReadyOp]) -> bool {
        self.found.clear();
        for op in step.iter().filter(|op| self.costs[op.shape as usize].kind == Kind::Recv) {
            let tag = self.costs[op.shape as usize].tag;
            let mut at = self.places[rank as usize].first;
            while at != NONE {
                let message = self.messages[at as usize];
                let is_its = message.from == op.peer && self.costs[message.shape as usize].tag == tag;
                if is_its && !self.found.contains(&at) {
                    break;
                }
                at = message.next;
            }
            if at == NONE {
                return false;
            }
            self.found.push(at);
        }
        for number in 0..self.found.len() {
            let slot = self.found[number];
            let more = number + 1 < self.found.len();
            let shape = self.messages[slot as usize].shape;
            self.ops.push(Op { rank, shape, action: Action::Handle { slot, more } });
            self.remove(rank, slot);
        }
        true
    }

    fn remove(&mut self, rank: u32, slot: u32) {
        let place = &mut self.places[rank as usize];
        let next = self.messages[slot as usize].next;
        let mut before = NONE;
        let mut at = place.first;
        while at != slot && at != NONE {
            (before, at) = (at, self.messages[at as usize].next);
        }
        match before {
            NONE => place.first = next,
            before => self.messages[before as usize].next = next,
        }
        if place.last == slot {
            place.last = before;
        }
        self.unused.push(slot);
    }
}
