//! quell's own rules: each step takes, of everything that waits on all ranks, what can start first.

use std::collections::{HashMap, HashSet};

use quell_sim::loggops::{Kind, Level, Network, PerByte, Program, ReadyOp, Shape, SizeRange};

use super::strikes::Strikes;
use super::{Message, Operation, Reference};

#[derive(Clone, Copy)]
enum What {
    Operation(Operation),
    /// In flight.
    OnItsWay(Message),
    /// Arrived, with the CPU and the interface that it will use.
    Arrived(Message, u8, u8),
    /// An answer to the request of this message: its data are sent.
    Answer(Message),
    /// The data of a rendezvous, and the receive that waits for them.
    DataOnTheirWay(Message, Operation),
    Data(Message, Operation),
    /// Under progress in the call: a receive that has its message, and handles it.
    Handling(Message, Operation),
}

/// The start of the element that made another, and its rank.
type Maker = (u64, u32);

/// Something that waits on a rank.
#[derive(Clone, Copy)]
struct Element {
    rank: u32,
    /// It cannot start before this time.
    ready: u64,
    maker: Maker,
    what: What,
}

impl Element {
    /// The order of elements that can start at the same time.
    fn order(&self) -> (Maker, u8, u32) {
        let (kind, op) = match self.what {
            What::Operation(op) => (op.shape.kind as u8, op.op),
            What::Handling(_, receive) => (3, receive.op),
            What::OnItsWay(message) | What::Arrived(message, ..) => (4, message.op),
            What::Answer(message) => (5, message.op),
            What::DataOnTheirWay(message, _) | What::Data(message, _) => (6, message.op),
        };
        (self.maker, kind, op)
    }
}

/// A message without a receive, and the time until which its rank works on it.
type Unexpected = (Message, u64);

struct Machine<'a, P: Program> {
    program: &'a P,
    net: Network,
    ranges: &'a [SizeRange],
    levels: &'a [Level],
    strikes: Option<&'a Strikes>,
    /// Whether messages are handled only in the call.
    in_call: bool,
    states: Vec<P::Rank>,
    waiting: Vec<Element>,
    cpu: Vec<Vec<u64>>,
    out: Vec<Vec<u64>>,
    r#in: Vec<Vec<u64>>,
    posted: Vec<Vec<Operation>>,
    unexpected: Vec<Vec<Unexpected>>,
    /// Receives that wait for data, on each rank, with the message that brings them.
    granted: Vec<Vec<(Message, Operation)>>,
    /// Whether messages between two ranks have different latencies, so that one could overtake another.
    latencies_differ: bool,
    /// When the last message of a rank reaches another.
    arrivals: HashMap<(u32, u32), u64>,
    reference: Reference,
}

pub fn physical<P: Program>(
    program: &P,
    net: Network,
    ranges: &[SizeRange],
    levels: &[Level],
    strikes: Option<&Strikes>,
    in_call: bool,
) -> Reference {
    let ranks = program.ranks() as usize;
    let mut machine = Machine {
        program,
        net,
        ranges,
        levels,
        strikes,
        in_call,
        states: vec![],
        waiting: vec![],
        cpu: vec![vec![0; program.cpus() as usize]; ranks],
        out: vec![vec![0; program.nics() as usize]; ranks],
        r#in: vec![vec![0; program.nics() as usize]; ranks],
        posted: vec![vec![]; ranks],
        unexpected: vec![vec![]; ranks],
        granted: vec![vec![]; ranks],
        latencies_differ: latencies_differ(program, net, ranges, levels),
        arrivals: HashMap::new(),
        reference: Reference::default(),
    };
    machine.reference.found.noise = vec![0; ranks];
    for rank in 0..program.ranks() {
        let mut free = vec![];
        machine.states.push(program.begin(rank, &mut free));
        // Ages as if an event at 0 had freed it.
        machine.wait(rank, (0, rank), free);
    }
    loop {
        let order = |element: &Element| (machine.start(element), element.order(), element.rank);
        let Some(next) = (0..machine.waiting.len()).min_by_key(|&n| order(&machine.waiting[n])) else {
            break;
        };
        let element = machine.waiting.swap_remove(next);
        let t = machine.start(&element);
        machine.go(element, t);
    }
    machine.into_reference()
}

/// The parameters of a size; an empty message costs what one of a byte costs.
fn net_of_size(network: Network, ranges: &[SizeRange], size: u64) -> Network {
    let holds = |range: &&SizeRange| range.from_bytes <= size.max(1) && size.max(1) <= range.to_bytes;
    ranges.iter().find(holds).map_or(network, |range| range.network)
}

/// Whether the program's messages have different latencies on one of the networks.
fn latencies_differ<P: Program>(program: &P, net: Network, ranges: &[SizeRange], levels: &[Level]) -> bool {
    let sizes = || program.shapes().iter().filter(|shape| shape.kind == Kind::Send).map(|shape| shape.size);
    let near = levels.iter().map(|level| (level.network, &level.ranges[..]));
    std::iter::once((net, ranges)).chain(near).any(|(network, ranges)| {
        sizes().map(|size| net_of_size(network, ranges, size).latency).collect::<HashSet<_>>().len() > 1
    })
}

impl<P: Program> Machine<'_, P> {
    /// The latest of an element's own time and of the times from which what it uses is free.
    fn start(&self, element: &Element) -> u64 {
        let rank = element.rank as usize;
        if self.in_call {
            // A call that waits for its interface has begun.
            let cpu = match element.what {
                What::Operation(op) => (op.shape.kind != Kind::Recv).then_some(op.shape.cpu),
                What::Handling(_, receive) | What::Data(_, receive) => Some(receive.shape.cpu),
                What::Answer(message) => Some(message.shape.cpu),
                What::Arrived(..) | What::OnItsWay(_) | What::DataOnTheirWay(..) => None,
            };
            return element.ready.max(cpu.map_or(0, |cpu| self.cpu[rank][cpu as usize]));
        }
        let used = match element.what {
            What::Operation(op) => match op.shape.kind {
                Kind::Send => self.free_to_send(rank, op.shape),
                Kind::Calc => self.cpu[rank][op.shape.cpu as usize],
                Kind::Recv => 0,
            },
            What::Arrived(_, cpu, nic) => self.cpu[rank][cpu as usize].max(self.r#in[rank][nic as usize]),
            What::Answer(message) => self.free_to_send(rank, message.shape),
            What::Data(_, receive) => {
                self.cpu[rank][receive.shape.cpu as usize].max(self.r#in[rank][receive.shape.nic as usize])
            }
            What::OnItsWay(_) | What::DataOnTheirWay(..) | What::Handling(..) => 0,
        };
        element.ready.max(used)
    }

    fn free_to_send(&self, rank: usize, shape: Shape) -> u64 {
        self.cpu[rank][shape.cpu as usize].max(self.out[rank][shape.nic as usize])
    }

    fn go(&mut self, element: Element, t: u64) {
        let rank = element.rank;
        match element.what {
            What::Operation(op) => {
                self.notify_started(rank, op.op, t);
                match op.shape.kind {
                    Kind::Send => self.send(rank, t, op),
                    Kind::Recv => self.recv(rank, t, op),
                    Kind::Calc => {
                        let end = self.work(rank, t, op.shape.size);
                        self.note_noise(rank, end, t + op.shape.size);
                        self.cpu[rank as usize][op.shape.cpu as usize] = end;
                        self.notify_done(rank, op.op, end, t);
                    }
                }
            }
            What::OnItsWay(message) if self.in_call => {
                let posted = &mut self.posted[rank as usize];
                match posted.iter().position(|op| op.takes(&message)) {
                    Some(first) => {
                        let receive = posted.remove(first);
                        self.handle_at(rank, t, message, receive);
                    }
                    None => self.unexpected[rank as usize].push((message, t)),
                }
            }
            What::Handling(message, receive) => {
                let rendezvous = self.is_rendezvous(rank, message);
                let bytes = if rendezvous { (0, 0) } else { self.further_bytes(rank, message) };
                let place = (receive.shape.cpu, receive.shape.nic);
                let end = self.take_in(rank, t, message, bytes, place);
                self.meet(rank, message, receive, end, t);
            }
            What::OnItsWay(message) => {
                let posted = self.posted[rank as usize].iter().find(|op| op.takes(&message));
                let shape = posted.map_or(message.shape, |op| op.shape);
                let what = What::Arrived(message, shape.cpu, shape.nic);
                self.waiting.push(Element { what, ..element });
            }
            What::Arrived(message, cpu, nic) => self.message(rank, t, message, (cpu, nic)),
            What::Answer(message) => {
                // The receiver granted the oldest request of this send first.
                let granted = &mut self.granted[element.maker.1 as usize];
                let same = |(other, _): &(Message, Operation)| (other.from, other.op) == (rank, message.op);
                let (_, receive) = granted.remove(granted.iter().position(same).unwrap());
                let bytes = self.further_bytes(element.maker.1, message);
                let what = What::DataOnTheirWay(message, receive);
                let end = self.transmit(rank, t, message.shape, bytes, element.maker.1, what);
                self.notify_done(rank, message.op, end, t);
            }
            What::DataOnTheirWay(message, receive) => {
                self.waiting.push(Element { what: What::Data(message, receive), ..element });
            }
            What::Data(message, receive) => {
                let bytes = self.further_bytes(rank, message);
                let end = self.take_in(rank, t, message, bytes, (receive.shape.cpu, receive.shape.nic));
                self.notify_done(rank, receive.op, end, t);
            }
        }
    }

    fn is_rendezvous(&self, to: u32, message: Message) -> bool {
        message.shape.size > self.level(message.from, to).0.eager_limit
    }

    fn send(&mut self, rank: u32, t: u64, op: Operation) {
        let message = Message { from: rank, op: op.op, shape: op.shape };
        let rendezvous = self.is_rendezvous(op.peer, message);
        let bytes = if rendezvous { (0, 0) } else { self.further_bytes(op.peer, message) };
        let end = self.transmit(rank, t, op.shape, bytes, op.peer, What::OnItsWay(message));
        if !rendezvous {
            self.notify_done(rank, op.op, end, t);
        }
    }

    /// Sends bytes of this wire and CPU time from `t` on, and returns when the CPU is free again.
    fn transmit(
        &mut self,
        rank: u32,
        t: u64,
        Shape { cpu, nic, size, .. }: Shape,
        (wire, copy): (u64, u64),
        peer: u32,
        what: What,
    ) -> u64 {
        let Network { overhead, gap, latency, .. } = self.net_of(rank, peer, size);
        let maker = (t, rank);
        let t = if self.in_call { t.max(self.out[rank as usize][nic as usize]) } else { t };
        let end = self.work(rank, t, overhead + copy);
        self.note_noise(rank, end, t + overhead + copy);
        let departure = self.work(rank, t, overhead);
        let mut ready = departure + latency;
        if self.latencies_differ && matches!(what, What::OnItsWay(_)) {
            let last = self.arrivals.entry((rank, peer)).or_insert(0);
            *last = ready.max(*last);
            ready = *last;
        }
        self.cpu[rank as usize][cpu as usize] = end;
        self.out[rank as usize][nic as usize] = departure - overhead + gap + wire;
        self.waiting.push(Element { rank: peer, ready, maker, what });
        self.reference.found.events += 1;
        end
    }

    fn recv(&mut self, rank: u32, t: u64, op: Operation) {
        let unexpected = &mut self.unexpected[rank as usize];
        match unexpected.iter().position(|(message, _)| op.takes(message)) {
            Some(first) => {
                let (message, end) = unexpected.remove(first);
                if self.in_call {
                    return self.handle_at(rank, t, message, op);
                }
                self.meet(rank, message, op, end.max(t), t);
            }
            None => self.posted[rank as usize].push(op),
        }
    }

    /// Lets a receive handle its message once its CPU is free, as an operation that the rank freed at `t`.
    fn handle_at(&mut self, rank: u32, t: u64, message: Message, receive: Operation) {
        let what = What::Handling(message, receive);
        self.waiting.push(Element { rank, ready: t, maker: (t, rank), what });
    }

    fn message(&mut self, rank: u32, t: u64, message: Message, place: (u8, u8)) {
        let rendezvous = self.is_rendezvous(rank, message);
        let bytes = if rendezvous { (0, 0) } else { self.further_bytes(rank, message) };
        let end = self.take_in(rank, t, message, bytes, place);
        let posted = &mut self.posted[rank as usize];
        match posted.iter().position(|op| op.takes(&message)) {
            Some(first) => {
                let op = posted.remove(first);
                self.meet(rank, message, op, end, t);
            }
            None => self.unexpected[rank as usize].push((message, end)),
        }
    }

    /// Receives bytes of this wire and CPU time from `t` on, and returns when the CPU is free again.
    fn take_in(
        &mut self,
        rank: u32,
        t: u64,
        message: Message,
        (wire, copy): (u64, u64),
        (cpu, nic): (u8, u8),
    ) -> u64 {
        let Network { overhead, gap, .. } = self.net_of(rank, message.from, message.shape.size);
        let t = if self.in_call { t.max(self.r#in[rank as usize][nic as usize]) } else { t };
        let end = self.work(rank, t, overhead + copy).max(self.work(rank, t + wire, overhead));
        self.note_noise(rank, end, t + overhead + copy.max(wire));
        self.cpu[rank as usize][cpu as usize] = end;
        self.r#in[rank as usize][nic as usize] = t + gap + wire;
        end
    }

    /// Message and receive meet at `at`, in an event that started at `t`: the receive is done, or a rendezvous gets its answer.
    fn meet(&mut self, rank: u32, message: Message, op: Operation, at: u64, t: u64) {
        if self.is_rendezvous(rank, message) {
            self.granted[rank as usize].push((message, op));
            self.waiting.push(Element {
                rank: message.from,
                ready: at + self.net_of(rank, message.from, message.shape.size).latency,
                maker: (t, rank),
                what: What::Answer(message),
            });
        } else {
            self.notify_done(rank, op.op, at, t);
        }
    }

    /// The network between two ranks, with its parameters for ranges of sizes.
    fn level(&self, a: u32, b: u32) -> (Network, &[SizeRange]) {
        let group = |rank: u32, level: &Level| rank - rank % level.ranks;
        let shared = self.levels.iter().find(|level| group(a, level) == group(b, level));
        shared.map_or((self.net, self.ranges), |level| (level.network, &level.ranges))
    }

    /// The parameters of a size between two ranks.
    fn net_of(&self, a: u32, b: u32, size: u64) -> Network {
        let (network, ranges) = self.level(a, b);
        net_of_size(network, ranges, size)
    }

    /// Time of all bytes but the first on the wire and on a CPU.
    fn further_bytes(&self, to: u32, message: Message) -> (u64, u64) {
        let size = message.shape.size;
        let bytes = size.saturating_sub(1);
        let rounded = |per_byte: PerByte| per_byte.time(bytes);
        let net = self.net_of(message.from, to, size);
        (rounded(net.gap_per_byte), rounded(net.overhead_per_byte))
    }

    fn work(&self, rank: u32, t: u64, work: u64) -> u64 {
        self.strikes.map_or(t + work, |strikes| strikes.end_of_work(rank, t, work))
    }

    fn note_noise(&mut self, rank: u32, end: u64, silent_end: u64) {
        self.reference.found.noise[rank as usize] += end - silent_end;
    }

    fn notify_started(&mut self, rank: u32, op: u32, t: u64) {
        let mut free = vec![];
        self.program.started(rank, &mut self.states[rank as usize], op, t, &mut free);
        self.wait(rank, (t, rank), free);
    }

    fn notify_done(&mut self, rank: u32, op: u32, at: u64, t: u64) {
        let mut free = vec![];
        self.program.done(rank, &mut self.states[rank as usize], op, at, &mut free);
        self.wait(rank, (t, rank), free);
    }

    fn wait(&mut self, rank: u32, maker: Maker, freed: Vec<ReadyOp>) {
        self.reference.found.events += freed.len() as u64;
        self.waiting.extend(freed.into_iter().map(|free| {
            let shape = self.program.shapes()[free.shape as usize];
            let what = What::Operation(Operation { op: free.op, peer: free.peer, shape });
            Element { rank, ready: free.ready, maker, what }
        }));
    }

    fn into_reference(self) -> Reference {
        let mut reference = self.reference;
        for rank in 0..self.program.ranks() {
            let r = rank as usize;
            reference.found.finish.push(*self.cpu[r].iter().max().unwrap());
            reference.receives.extend(self.posted[r].iter().map(|op| op.waiting(rank)));
            reference.messages.extend(self.unexpected[r].iter().map(|message| message.0.waiting(rank)));
            reference.found.left_over[2] += self.program.unfreed(rank, &self.states[r]);
        }
        reference.found.left_over[0] = reference.receives.len() as u64;
        reference.found.left_over[1] = reference.messages.len() as u64;
        reference.latest = *reference.found.finish.iter().max().unwrap_or(&0);
        reference
    }
}
