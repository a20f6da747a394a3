//! A machine without limits: every operation begins when it is ready, and takes a time that depends on a hash.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::loggops::{Kind, Program, ReadyOp, Shape};

/// Result of playing a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Operations that became free, on each rank: when, which shape, and the peer.
    pub(super) freed: Vec<Vec<(u64, u32, u32)>>,
    pub(super) operations: u64,
    pub(super) sends: u64,
    /// Number of receives and messages without a match.
    pub(super) left: usize,
    /// Number of operations that never became free.
    pub(super) unfreed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Message { from: u32, shape: u32 },
    Start { op: u32, peer: u32, shape: u32 },
}

type Queues = HashMap<(u32, u32, u32), (VecDeque<u64>, VecDeque<(u32, u64)>)>;

struct Machine<'a, P: Program> {
    program: &'a P,
    seed: u64,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u32, Event)>>,
    states: Vec<P::Rank>,
    /// By receiver, sender and tag: the sizes of the messages and of the receives that wait.
    queues: Queues,
    /// When the last message of a pair of ranks arrived: messages do not overtake one another.
    arrived: HashMap<(u32, u32), u64>,
    /// How often a rank did the same operation before.
    before: HashMap<(u32, Shape, u32), u64>,
    outcome: Outcome,
}

/// Plays a program to its end, and checks that sizes match and that nothing becomes ready in the past.
pub(super) fn play<P: Program>(program: &P, seed: u64) -> Outcome {
    let ranks = program.ranks();
    let mut machine = Machine {
        program,
        seed,
        now: 0,
        events: BinaryHeap::new(),
        states: Vec::new(),
        queues: HashMap::new(),
        arrived: HashMap::new(),
        before: HashMap::new(),
        outcome: Outcome { freed: vec![Vec::new(); ranks as usize], ..Outcome::default() },
    };
    for rank in 0..ranks {
        let mut free = Vec::new();
        machine.states.push(program.begin(rank, &mut free));
        machine.free(rank, &free);
    }
    while let Some(Reverse((at, rank, event))) = machine.events.pop() {
        machine.now = at;
        match event {
            Event::Message { from, shape } => machine.message(rank, from, shape),
            Event::Start { op, peer, shape } => machine.start(rank, op, peer, shape),
        }
    }
    machine.end()
}

impl<P: Program> Machine<'_, P> {
    fn free(&mut self, rank: u32, free: &[ReadyOp]) {
        for &ReadyOp { op, peer, shape, ready } in free {
            assert!(ready >= self.now, "rank {rank} is ready at {ready}, before {}", self.now);
            self.outcome.freed[rank as usize].push((ready, shape, peer));
            self.outcome.operations += 1;
            self.events.push(Reverse((ready, rank, Event::Start { op, peer, shape })));
        }
    }

    fn start(&mut self, rank: u32, op: u32, peer: u32, number: u32) {
        let shape = self.program.shapes()[number as usize];
        let takes = self.takes(rank, shape, peer);
        match shape.kind {
            Kind::Calc => self.done(rank, op, self.now + shape.size + takes),
            Kind::Send => {
                self.outcome.sends += 1;
                let last = self.arrived.entry((rank, peer)).or_default();
                *last = (*last + 1).max(self.now + 10 + 3 * takes);
                let message = Event::Message { from: rank, shape: number };
                self.events.push(Reverse((*last, peer, message)));
                self.done(rank, op, self.now + takes);
            }
            Kind::Recv => {
                let (messages, receives) = self.queues.entry((rank, peer, shape.tag)).or_default();
                match messages.pop_front() {
                    Some(size) => self.meet(rank, op, size, shape.size),
                    None => receives.push_back((op, shape.size)),
                }
            }
        }
    }

    fn message(&mut self, rank: u32, from: u32, shape: u32) {
        let shape = self.program.shapes()[shape as usize];
        let (messages, receives) = self.queues.entry((rank, from, shape.tag)).or_default();
        match receives.pop_front() {
            Some((op, size)) => self.meet(rank, op, shape.size, size),
            None => messages.push_back(shape.size),
        }
    }

    fn meet(&mut self, rank: u32, op: u32, sent: u64, received: u64) {
        assert_eq!(sent, received, "rank {rank} takes a message of another size");
        self.done(rank, op, self.now + 1);
    }

    fn done(&mut self, rank: u32, op: u32, at: u64) {
        let mut free = Vec::new();
        self.program.done(rank, &mut self.states[rank as usize], op, at, &mut free);
        self.free(rank, &free);
    }

    /// A number below 50 that depends on the operation, and on how often it was done before.
    fn takes(&mut self, rank: u32, shape: Shape, peer: u32) -> u64 {
        let before = self.before.entry((rank, shape, peer)).or_default();
        *before += 1;
        let what = [shape.kind as u64, shape.size, u64::from(rank), u64::from(peer)];
        let parts = what.into_iter().chain([self.seed, *before]);
        let mix = |sum: u64, part: u64| (sum ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        parts.fold(1, mix) % 50
    }

    fn end(self) -> Outcome {
        let left = self.queues.values().map(|(messages, receives)| messages.len() + receives.len()).sum();
        let ranks = (0..).zip(&self.states);
        let unfreed = ranks.map(|(rank, state)| self.program.unfreed(rank, state)).sum();
        Outcome { left, unfreed, ..self.outcome }
    }
}
