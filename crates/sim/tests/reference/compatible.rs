//! LogGOPSim's rules: one ordered set of all waiting elements, by (time, age).

use std::collections::BTreeMap;

use quell_sim::loggops::{Kind, Network, Program, ReadyOp};

use super::strikes::Strikes;
use super::{Message, Operation, Reference};

#[derive(Clone, Copy)]
enum Element {
    Operation(Operation),
    Message(Message),
}

struct Machine<'a, P: Program> {
    program: &'a P,
    net: Network,
    strikes: Option<&'a Strikes>,
    states: Vec<P::Rank>,
    queue: BTreeMap<(u64, u64), (u32, Element)>,
    /// The age of the next new element.
    age: u64,
    next_cpu: Vec<Vec<u64>>,
    next_out: Vec<Vec<u64>>,
    next_in: Vec<Vec<u64>>,
    posted: Vec<Vec<Operation>>,
    unexpected: Vec<Vec<Message>>,
    /// What the current event freed, by rank.
    freed: BTreeMap<u32, Vec<ReadyOp>>,
    noise: Vec<u64>,
    latest: u64,
    widest: usize,
}

pub fn compatible<P: Program>(program: &P, net: Network, strikes: Option<&Strikes>) -> Reference {
    let ranks = program.ranks() as usize;
    let mut machine = Machine {
        program,
        net,
        strikes,
        states: vec![],
        queue: BTreeMap::new(),
        age: 0,
        next_cpu: vec![vec![0; program.cpus() as usize]; ranks],
        next_out: vec![vec![0; program.nics() as usize]; ranks],
        next_in: vec![vec![0; program.nics() as usize]; ranks],
        posted: vec![vec![]; ranks],
        unexpected: vec![vec![]; ranks],
        freed: BTreeMap::new(),
        noise: vec![0; ranks],
        latest: 0,
        widest: 0,
    };
    for rank in 0..program.ranks() {
        let state = program.begin(rank, machine.freed.entry(rank).or_default());
        machine.states.push(state);
    }
    machine.queue_freed();
    while let Some(((time, age), (rank, element))) = machine.queue.pop_first() {
        let again = match element {
            Element::Message(message) => machine.message(rank, time, message),
            Element::Operation(op) => match op.shape.kind {
                Kind::Calc => machine.calc(rank, time, op),
                Kind::Send => machine.send(rank, time, op),
                Kind::Recv => machine.recv(rank, time, op),
            },
        };
        match again {
            Some(later) => drop(machine.queue.insert((later, age), (rank, element))),
            None => machine.queue_freed(),
        }
    }
    machine.into_reference()
}

/// Times are LogGOPSim's: unsigned, and wrapping.
impl<P: Program> Machine<'_, P> {
    fn calc(&mut self, rank: u32, time: u64, op: Operation) -> Option<u64> {
        let (r, cpu) = (rank as usize, op.shape.cpu as usize);
        if self.next_cpu[r][cpu] > time {
            return Some(self.next_cpu[r][cpu]);
        }
        let noise = self.strike(rank, time, op.shape.size);
        self.next_cpu[r][cpu] = self.seen(time.wrapping_add(op.shape.size).wrapping_add(noise));
        self.release_started(rank, op.op, time);
        self.release_done(rank, op.op, time);
        None
    }

    fn send(&mut self, rank: u32, time: u64, op: Operation) -> Option<u64> {
        let (r, cpu, nic) = (rank as usize, op.shape.cpu as usize, op.shape.nic as usize);
        let free = self.next_cpu[r][cpu].max(self.next_out[r][nic]);
        if free > time {
            return Some(free);
        }
        self.release_started(rank, op.op, time);
        let noise = self.strike(rank, time, self.net.overhead);
        let (wire, copy) = self.further_bytes(op.shape.size);
        let busy = time.wrapping_add(self.net.overhead).wrapping_add(copy).wrapping_add(noise);
        self.next_cpu[r][cpu] = self.seen(busy);
        self.next_out[r][nic] = self.seen(time.wrapping_add(self.net.gap).wrapping_add(wire));
        let arrival = self.seen(time.wrapping_add(self.net.overhead).wrapping_add(self.net.latency));
        let message = Message { from: rank, op: op.op, shape: op.shape };
        self.queue.insert((arrival, self.age), (op.peer, Element::Message(message)));
        self.age += 1;
        if op.shape.size <= self.net.eager_limit {
            self.release_done(rank, op.op, time);
        }
        None
    }

    fn recv(&mut self, rank: u32, time: u64, op: Operation) -> Option<u64> {
        self.release_started(rank, op.op, time);
        let unexpected = &mut self.unexpected[rank as usize];
        match unexpected.iter().position(|message| op.takes(message)) {
            Some(first) => {
                let message = unexpected.remove(first);
                if op.shape.size > self.net.eager_limit {
                    self.end_rendezvous(&message, (op.shape.cpu, op.shape.nic), time);
                }
                self.release_done(rank, op.op, time);
            }
            None => self.posted[rank as usize].push(op),
        }
        None
    }

    fn message(&mut self, rank: u32, time: u64, message: Message) -> Option<u64> {
        let (r, cpu, nic) = (rank as usize, message.shape.cpu as usize, message.shape.nic as usize);
        let free = self.next_cpu[r][cpu].max(self.next_in[r][nic]);
        if free > time {
            return Some(free);
        }
        let noise = self.strike(rank, time, self.net.overhead);
        let (wire, copy) = self.further_bytes(message.shape.size);
        let busy = time.wrapping_add(self.net.overhead).wrapping_add(noise).wrapping_add(copy.max(wire));
        self.next_cpu[r][cpu] = self.seen(busy);
        self.next_in[r][nic] = self.seen(time.wrapping_add(self.net.gap).wrapping_add(wire));
        let posted = &mut self.posted[r];
        match posted.iter().position(|op| op.takes(&message)) {
            Some(first) => {
                let op = posted.remove(first);
                if message.shape.size > self.net.eager_limit {
                    self.end_rendezvous(&message, (message.shape.cpu, message.shape.nic), time);
                }
                self.release_done(rank, op.op, time);
            }
            None => self.unexpected[r].push(message),
        }
        None
    }

    fn end_rendezvous(&mut self, message: &Message, (cpu, nic): (u8, u8), time: u64) {
        self.release_done(message.from, message.op, time);
        let next_cpu = &mut self.next_cpu[message.from as usize][cpu as usize];
        *next_cpu = time.max(*next_cpu);
        let next_out = &mut self.next_out[message.from as usize][nic as usize];
        *next_out = time.max(*next_out);
    }

    /// Time of all bytes but the first on the wire and on a CPU; for an empty message it wraps below zero.
    fn further_bytes(&self, size: u64) -> (u64, u64) {
        let times = |per_byte: u64| size.wrapping_sub(1).wrapping_mul(per_byte);
        (
            times(self.net.gap_per_byte.whole_nanos().unwrap()),
            times(self.net.overhead_per_byte.whole_nanos().unwrap()),
        )
    }

    fn strike(&mut self, rank: u32, time: u64, length: u64) -> u64 {
        let noise = self.strikes.map_or(0, |strikes| strikes.window_delay(rank, time, length));
        self.noise[rank as usize] += noise;
        noise
    }

    fn release_started(&mut self, rank: u32, op: u32, at: u64) {
        let freed = self.freed.entry(rank).or_default();
        self.program.started(rank, &mut self.states[rank as usize], op, at, freed);
    }

    fn release_done(&mut self, rank: u32, op: u32, at: u64) {
        let freed = self.freed.entry(rank).or_default();
        self.program.done(rank, &mut self.states[rank as usize], op, at, freed);
    }

    /// Queues what the event freed: rank by rank, sends first, then receives, then work.
    fn queue_freed(&mut self) {
        for (rank, mut batch) in std::mem::take(&mut self.freed) {
            self.widest = self.widest.max(batch.len());
            let shape = |free: &ReadyOp| self.program.shapes()[free.shape as usize];
            batch.sort_by_key(|free| shape(free).kind);
            for free in batch {
                let op = Operation { op: free.op, peer: free.peer, shape: shape(&free) };
                let r = rank as usize;
                let cpu = self.next_cpu[r][op.shape.cpu as usize];
                let time = match op.shape.kind {
                    Kind::Send => cpu.max(self.next_out[r][op.shape.nic as usize]),
                    Kind::Recv | Kind::Calc => cpu,
                };
                self.queue.insert((time, self.age), (rank, Element::Operation(op)));
                self.age += 1;
            }
        }
    }

    fn seen(&mut self, time: u64) -> u64 {
        self.latest = self.latest.max(time);
        time
    }

    fn into_reference(self) -> Reference {
        let mut reference = Reference { latest: self.latest, widest: self.widest, ..Reference::default() };
        for rank in 0..self.program.ranks() {
            let r = rank as usize;
            reference.found.finish.push(*self.next_cpu[r].iter().max().unwrap());
            reference.receives.extend(self.posted[r].iter().map(|op| op.waiting(rank)));
            reference.messages.extend(self.unexpected[r].iter().map(|message| message.waiting(rank)));
            reference.found.left_over[2] += self.program.unfreed(rank, &self.states[r]);
        }
        reference.found.events = self.age;
        reference.found.noise = self.noise;
        reference.found.left_over[0] = reference.receives.len() as u64;
        reference.found.left_over[1] = reference.messages.len() as u64;
        reference
    }
}
