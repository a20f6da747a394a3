//! All operations of an iteration, in an order in which every message is sent before it is handled.
//!
//! For patterns whose ranks differ: trees, grids, numbers of ranks that are no powers of two. The order is found once, without times;
//! each iteration then goes through it from front to back, and no message has to be matched again.

use super::cost::{self, is_playable};
use crate::loggops::play::{self, Cost};
use crate::loggops::{Kind, ReadyOp, StepProgram, prefetch};

/// Maximum number of operations of an iteration: 256 MiB.
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
    /// Sends the request of the rendezvous of this slot.
    Request(u32),
    /// Handles the request, and answers.
    Answer(u32),
    /// Sends the data once the answer is there.
    SendData(u32),
    /// Handles the data.
    HandleData(u32),
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) rank: u32,
    /// The number of its shape; for a message that of its send.
    pub(super) shape: u32,
    pub(super) action: Action,
}

impl Op {
    /// An upper bound of its noise-free time, in nanoseconds.
    pub(super) fn longest(&self, costs: &[Cost]) -> u128 {
        match self.action {
            Action::Post => 0,
            _ => cost::longest(&costs[self.shape as usize]),
        }
    }
}

/// Receives operations in their order; `None` ends the search.
pub(super) trait Sink {
    fn op(&mut self, op: Op) -> Option<()>;

    /// Hints that operations of a rank will follow soon.
    fn prepare(&self, _rank: u32) {}
}

impl Sink for Vec<Op> {
    #[inline]
    fn op(&mut self, op: Op) -> Option<()> {
        self.push(op);
        Some(())
    }
}

/// The operations of one iteration.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) ops: Vec<Op>,
    /// Number of messages that are in flight at a time, at most.
    pub(super) slots: u32,
    /// Number of rendezvous, whose data count as events of their own.
    pub(super) rendezvous: u64,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Eager,
    Request,
    Answer,
    Data,
}

/// A message that was sent and not handled yet. Its index is its slot.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    shape: u32,
    content: Content,
    /// The next message to the same rank.
    next: u32,
}

/// No message.
const NONE: u32 = u32::MAX;

/// A rank's place in the pattern.
#[derive(Clone, Copy, Debug)]
struct Place {
    step: u32,
    /// Number of parts of the step that were done: its sends and work; with a rendezvous the request, the answer and the data.
    parts: u8,
    waits: bool,
    /// Its messages in the order in which they were sent.
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Orderer<'a, S> {
    costs: &'a [Cost],
    ops: &'a mut S,
    places: Vec<Place>,
    messages: Vec<Message>,
    /// Numbers of messages that are not in use.
    unused: Vec<u32>,
    /// Ranks to go on with, in this round and in the next.
    due: Vec<u32>,
    next: Vec<u32>,
    found: Vec<u32>,
    rendezvous: u64,
}

impl Order {
    /// Whether a list holds this number of operations of an iteration.
    pub(super) fn may_hold(operations: u64) -> bool {
        operations <= MAX_OPS
    }

    /// The order of a pattern's operations; `None` if there are too many, or some that cannot be played in rounds.
    pub(super) fn new(program: &dyn StepProgram, ranks: u32, costs: &[Cost]) -> Option<Self> {
        let (operations, _) = program.iteration_totals()?;
        if !Self::may_hold(operations) || !has_one_latency(costs) {
            return None;
        }
        let mut ops = Vec::with_capacity(operations as usize);
        let Found { slots, rendezvous } = find(program, ranks, costs, &mut ops)?;
        Some(Self { ops, slots, rendezvous })
    }
}

/// What is known of an order once all of it is found.
pub(super) struct Found {
    slots: u32,
    /// As in [`Order`].
    pub(super) rendezvous: u64,
}

/// Finds the order of a program's operations, whose messages have [one latency](has_one_latency); `None` if `ops` ends the search, or if
/// some cannot be played in rounds or never start.
pub(super) fn find(
    program: &dyn StepProgram,
    ranks: u32,
    costs: &[Cost],
    ops: &mut impl Sink,
) -> Option<Found> {
    let place = Place { step: 0, parts: 0, waits: false, first: NONE, last: NONE };
    let mut orderer = Orderer {
        costs,
        ops,
        places: vec![place; ranks as usize],
        messages: Vec::new(),
        unused: Vec::new(),
        due: (0..ranks).collect(),
        next: Vec::new(),
        found: Vec::new(),
        rendezvous: 0,
    };
    let mut scratch = Vec::new();
    while !orderer.due.is_empty() {
        let due = std::mem::take(&mut orderer.due);
        for (at, &rank) in due.iter().enumerate() {
            orderer.prepare(&due[at + 1..]);
            orderer.go_on(program, rank, &mut scratch)?;
        }
        orderer.due = std::mem::take(&mut orderer.next);
    }
    let Orderer { places, messages, unused, rendezvous, .. } = orderer;
    let ended = |(rank, place): (u32, &Place)| place.step == program.rank_steps(rank);
    let complete = messages.len() == unused.len() && (0..).zip(&places).all(ended);
    complete.then_some(Found { slots: messages.len() as u32, rendezvous })
}

impl<S: Sink> Orderer<'_, S> {
    /// Adds the operations of a rank until it waits for a message.
    fn go_on(&mut self, program: &dyn StepProgram, rank: u32, scratch: &mut Vec<ReadyOp>) -> Option<()> {
        let steps = program.rank_steps(rank);
        while self.places[rank as usize].step < steps {
            let Place { step, parts, .. } = self.places[rank as usize];
            scratch.clear();
            program.step(rank, step, scratch);
            let is_done = if scratch.iter().any(|op| self.costs[op.shape as usize].rendezvous) {
                if !program.meets_in_steps() {
                    return None;
                }
                self.meet(rank, scratch)?
            } else {
                if parts == 0 {
                    self.begin(rank, scratch)?;
                    self.places[rank as usize].parts = 1;
                }
                self.handle(rank, scratch)?
            };
            let place = &mut self.places[rank as usize];
            if !is_done {
                place.waits = true;
                return Some(());
            }
            (place.parts, place.step) = (0, step + 1);
        }
        Some(())
    }

    /// Fetches what the next ranks need into the cache: their places first, and then their messages.
    #[inline]
    fn prepare(&self, next: &[u32]) {
        if let Some(&later) = next.get(5) {
            prefetch::<_, 1>(&self.places[later as usize]);
            self.ops.prepare(later);
        }
        if let Some(&soon) = next.get(2)
            && let Some(message) = self.messages.get(self.places[soon as usize].first as usize)
        {
            prefetch::<_, 1>(message);
        }
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
            self.ops.op(Op { rank, shape: 0, action: Action::Post })?;
        }
        for op in step.iter().filter(|op| self.costs[op.shape as usize].kind == Kind::Send) {
            let slot = self.send(rank, op, Content::Eager)?;
            self.ops.op(Op { rank, shape: op.shape, action: Action::Send(slot) })?;
        }
        for op in step.iter().filter(|op| self.costs[op.shape as usize].kind == Kind::Calc) {
            self.ops.op(Op { rank, shape: op.shape, action: Action::Work })?;
        }
        Some(())
    }

    /// Puts a message into its receiver's list and returns its slot.
    fn send(&mut self, from: u32, op: &ReadyOp, content: Content) -> Option<u32> {
        let message = Message { from, shape: op.shape, content, next: NONE };
        let slot = self.unused.pop().unwrap_or(self.messages.len() as u32);
        match self.messages.get_mut(slot as usize) {
            Some(unused) => *unused = message,
            None => self.messages.push(message),
        }
        self.deliver(op.peer, slot)?;
        Some(slot)
    }

    /// Puts a message into a rank's list.
    fn deliver(&mut self, rank: u32, slot: u32) -> Option<()> {
        let to = self.places.get_mut(rank as usize)?;
        match to.last {
            NONE => to.first = slot,
            last => self.messages[last as usize].next = slot,
        }
        to.last = slot;
        if std::mem::take(&mut to.waits) {
            self.next.push(rank);
        }
        Some(())
    }

    /// Adds those parts of a step with a rendezvous that do not wait; returns whether all were added. `None` if the step has no order.
    fn meet(&mut self, rank: u32, step: &[ReadyOp]) -> Option<bool> {
        if !has_order(step, self.costs) {
            return None;
        }
        self.found.clear();
        let of = |kind| step.iter().find(|op| self.costs[op.shape as usize].kind == kind).copied();
        let (send, receive) = (of(Kind::Send), of(Kind::Recv));
        loop {
            let part = self.places[rank as usize].parts;
            match (part, send, receive) {
                (0, Some(send), _) => {
                    let slot = self.send(rank, &send, Content::Request)?;
                    self.ops.op(Op { rank, shape: send.shape, action: Action::Request(slot) })?;
                    self.rendezvous += 1;
                }
                (1 | 3, _, Some(receive)) => {
                    let content = if part == 1 { Content::Request } else { Content::Data };
                    let Some(slot) = self.find(rank, &receive, content) else { return Some(false) };
                    let shape = self.messages[slot as usize].shape;
                    self.remove(rank, slot);
                    if part == 1 {
                        self.ops.op(Op { rank, shape, action: Action::Answer(slot) })?;
                        self.pass_on(rank, receive.peer, slot, Content::Answer)?;
                    } else {
                        self.ops.op(Op { rank, shape, action: Action::HandleData(slot) })?;
                        self.unused.push(slot);
                    }
                }
                (2, Some(send), _) => {
                    let Some(slot) = self.find(rank, &send, Content::Answer) else { return Some(false) };
                    self.remove(rank, slot);
                    self.ops.op(Op { rank, shape: send.shape, action: Action::SendData(slot) })?;
                    self.pass_on(rank, send.peer, slot, Content::Data)?;
                }
                (4.., _, _) => return Some(true),
                _ => {}
            }
            self.places[rank as usize].parts += 1;
        }
    }

    /// Sends the next part of a rendezvous in its slot.
    fn pass_on(&mut self, from: u32, to: u32, slot: u32, content: Content) -> Option<()> {
        let message = &mut self.messages[slot as usize];
        (message.from, message.content, message.next) = (from, content, NONE);
        self.deliver(to, slot)
    }

    /// The first message of a rank that an operation takes, and that no other operation of the step has found.
    fn find(&self, rank: u32, op: &ReadyOp, content: Content) -> Option<u32> {
        let tag = self.costs[op.shape as usize].tag;
        let mut at = self.places[rank as usize].first;
        while at != NONE {
            let message = self.messages[at as usize];
            let is_its = message.from == op.peer
                && message.content == content
                && self.costs[message.shape as usize].tag == tag;
            if is_its && !self.found.contains(&at) {
                return Some(at);
            }
            at = message.next;
        }
        None
    }

    /// Adds the handling of all messages of a step, if all were sent; returns whether they were.
    fn handle(&mut self, rank: u32, step: &[ReadyOp]) -> Option<bool> {
        self.found.clear();
        for op in step.iter().filter(|op| self.costs[op.shape as usize].kind == Kind::Recv) {
            match self.find(rank, op, Content::Eager) {
                Some(slot) => self.found.push(slot),
                None => return Some(false),
            }
        }
        for number in 0..self.found.len() {
            let slot = self.found[number];
            let more = number + 1 < self.found.len();
            let shape = self.messages[slot as usize].shape;
            self.ops.op(Op { rank, shape, action: Action::Handle { slot, more } })?;
            self.remove(rank, slot);
            self.unused.push(slot);
        }
        self.found.clear();
        Some(true)
    }

    /// Takes a message out of a rank's list.
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
    }
}

/// Whether all messages between two ranks have [one latency](play::has_one_latency): then none is held back by another. Where latencies differ
/// between levels, each message must take time: one that arrives at the instant of its send could be handled after another that
/// arrives then, too.
pub(super) fn has_one_latency(costs: &[Cost]) -> bool {
    let sends = || costs.iter().filter(|cost| cost.kind == Kind::Send);
    let Some(any) = sends().next() else { return true };
    sends().all(|cost| cost.latency == any.latency)
        || play::has_one_latency(costs) && sends().all(|cost| cost.latency + cost.overhead > 0)
}

/// Whether the parts of a step with a rendezvous have an order that does not depend on times: at most one send and one receive, of the same
/// rank, that cost CPU time.
///
/// Such a rank handles its partner's request before it sends its data: the answer comes later than the request, which its partner
/// sent before it answered. And data come later than the answer, which their sender sent before them.
pub(super) fn has_order(step: &[ReadyOp], costs: &[Cost]) -> bool {
    let of = |kind| step.iter().find(|op| costs[op.shape as usize].kind == kind);
    let (send, receive) = (of(Kind::Send), of(Kind::Recv));
    let apart = send.zip(receive).is_some_and(|(send, receive)| send.peer != receive.peer);
    let cost = |op: &ReadyOp| &costs[op.shape as usize];
    let plain = |op: &ReadyOp| cost(op).rendezvous && cost(op).overhead > 0 && is_playable(cost(op));
    let others = step.len() > usize::from(send.is_some()) + usize::from(receive.is_some());
    !apart && !others && step.iter().all(plain)
}
