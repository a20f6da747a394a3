//! Random schedules, networks and noise, small enough that many events fall on the same instant.

pub mod listed;
pub mod patterns;
pub mod shrink;

use std::ops::Range;
use std::sync::Arc;

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_sim::ProgressClock;
use quell_sim::loggops::{
    ANY, Kind, Level, Network, Noise, PerByte, Place, Program, RankClocks, Shape, SizeRange,
};

use crate::reference::strikes::{Detours, Strikes};
use listed::{Listed, Op};

/// A linear congruential generator (Knuth's MMIX) of our own, so that the tests share no code with what they test.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        dice.below(2);
        dice
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn one_of(&mut self, numbers: &[u64]) -> u64 {
        numbers[self.below(numbers.len() as u64) as usize]
    }
}

/// A test case: a program on a network, perhaps with noise.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub program: Listed,
    pub net: Network,
    /// Parameters of some sizes, under the physical rules only.
    pub ranges: Vec<SizeRange>,
    /// Networks among near ranks, under the physical rules only.
    pub levels: Vec<Level>,
    pub strikes: Option<Strikes>,
}

/// The `seed`-th schedule.
pub fn schedule(seed: u64) -> Schedule {
    let dice = &mut Dice::new(seed);
    let (scale, net) = scale_and_net(dice);
    let mut maker = Maker::new(dice, net.eager_limit, scale);
    let (wild, crowd) = (maker.dice.once_in(4), maker.dice.once_in(25));
    let mut steps = 1 + maker.dice.below(if maker.ranks.len() > 8 { 60 } else { 32 });
    if crowd {
        maker.most_ops = 150;
        steps = 250;
    }
    (0..steps).for_each(|_| if wild { maker.lone_op() } else { maker.pair() });
    let program = Listed::new(maker.ranks);
    let strikes = dice.once_in(2).then(|| strikes(dice, &program, &net, scale));
    let ranges = ranges(dice, scale, &net);
    let levels = levels(dice, scale);
    Schedule { program, net, ranges, levels, strikes }
}

/// No ranges of sizes, or some of those that messages have.
fn ranges(dice: &mut Dice, scale: u64, net: &Network) -> Vec<SizeRange> {
    if !dice.once_in(3) {
        return Vec::new();
    }
    let mut from_bytes = 1;
    let mut next = || {
        let network = Network { eager_limit: net.eager_limit, ..scaled_net(dice, scale) };
        let to_bytes = from_bytes + dice.below(20);
        let range = SizeRange { from_bytes, to_bytes, network };
        from_bytes = to_bytes + 1 + dice.below(3);
        range
    };
    (0..3).map(|_| next()).collect()
}

/// No levels, or networks of their own among two to eight ranks.
fn levels(dice: &mut Dice, scale: u64) -> Vec<Level> {
    let mut ranks = 1;
    let mut next = |dice: &mut Dice| {
        ranks *= 2 + dice.below(3) as u32;
        let network = scaled_net(dice, scale);
        Level { ranks, network, ranges: ranges(dice, scale, &network) }
    };
    let number = if dice.once_in(3) { 1 + dice.below(2) } else { 0 };
    (0..number).map(|_| next(dice)).collect()
}

/// The typical nanoseconds of work, and a network on which messages take a similar time.
fn scale_and_net(dice: &mut Dice) -> (u64, Network) {
    let scale = dice.one_of(&[3, 30, 3_000]);
    (scale, scaled_net(dice, scale))
}

fn scaled_net(dice: &mut Dice, scale: u64) -> Network {
    let nanos = |dice: &mut Dice| if dice.once_in(8) { 0 } else { dice.below(scale + 1) };
    Network {
        latency: nanos(dice),
        overhead: nanos(dice),
        gap: nanos(dice),
        gap_per_byte: PerByte::from_nanos(dice.one_of(&[0, 1, 2, 6, 20])),
        overhead_per_byte: PerByte::from_nanos(dice.one_of(&[0, 0, 1, 2, 9, 30])),
        eager_limit: dice.one_of(&[0, 1, 8, 60, 60, 60]),
    }
}

struct Maker<'a> {
    dice: &'a mut Dice,
    ranks: Vec<Vec<Op>>,
    eager_limit: u64,
    scale: u64,
    cpus: u64,
    nics: u64,
    tags: u64,
    /// One in this number of receives and sends takes a wildcard.
    wildcards: u64,
    /// One in this number of operations has no dependencies.
    roots: u64,
    /// Whether receives may be missing, differ in size from their send, or be on the same rank.
    loose: bool,
    /// Only one CPU, eager messages and no dependencies on starts: the cases for which engines may have shortcuts.
    plain: bool,
    /// Whether each operation needs all of the step before its own, and where both begin on each rank.
    steps: Option<Vec<Range<usize>>>,
    /// Maximum number of operations. Up to 16, LogGOPSim keeps the order of those that become free at once.
    most_ops: usize,
    /// The sizes of messages by tag, if they must not differ.
    sizes: Vec<u64>,
}

impl<'a> Maker<'a> {
    fn new(dice: &'a mut Dice, eager_limit: u64, scale: u64) -> Self {
        let ranks = if dice.once_in(20) { 30 } else { 1 + dice.below(8) };
        let plain = dice.once_in(2);
        let (cpus, nics) =
            if plain { (1, 1) } else { (dice.one_of(&[1, 1, 2, 3]), dice.one_of(&[1, 1, 1, 2])) };
        let (tags, wildcards) = (1 + dice.below(3), dice.one_of(&[3, 15, 1_000, 1_000]));
        let (roots, loose) = (dice.one_of(&[2, 4, 30]), dice.once_in(5));
        let steps = dice.once_in(3).then(|| vec![0..0; ranks as usize]);
        let ranks = vec![vec![]; ranks as usize];
        let (most_ops, sizes) = (16, vec![]);
        let mut maker = Self {
            dice,
            ranks,
            eager_limit,
            scale,
            cpus,
            nics,
            tags,
            wildcards,
            roots,
            loose,
            plain,
            steps,
            most_ops,
            sizes,
        };
        maker.sizes = (0..tags).map(|_| maker.size()).collect();
        maker
    }

    fn rank(&mut self) -> u64 {
        self.dice.below(self.ranks.len() as u64)
    }

    fn size(&mut self) -> u64 {
        match self.dice.below(8) {
            0 => 0,
            1 => self.eager_limit.min(1),
            2 => self.eager_limit,
            3 if !self.plain => self.eager_limit + 1 + self.dice.below(20),
            _ if self.plain => self.dice.below(20).min(self.eager_limit),
            _ => 1 + self.dice.below(20),
        }
    }

    fn tag(&mut self) -> u32 {
        self.dice.below(self.tags) as u32
    }

    fn calc(&mut self) -> Shape {
        Shape::calc(if self.dice.once_in(if self.plain { 60 } else { 6 }) {
            0
        } else {
            1 + self.dice.below(3 * self.scale)
        })
    }

    /// A send, its receive, and perhaps some work.
    fn pair(&mut self) {
        let (from, to, tag) = (self.rank(), self.rank(), self.tag());
        let size = if self.loose { self.size() } else { self.sizes[tag as usize] };
        let any = |dice: &mut Dice, times, number| if dice.once_in(times) { ANY } else { number };
        let (sent, taken) = (any(self.dice, 20 * self.wildcards, tag), any(self.dice, self.wildcards, tag));
        let source = any(self.dice, self.wildcards, from as u32);
        if self.ranks[from as usize].len().max(self.ranks[to as usize].len()) + 2 > self.most_ops
            || (from == to && !self.loose)
        {
            return;
        }
        let room = if self.loose && self.dice.once_in(6) { self.size() } else { size };
        self.add(from, Shape::send(size, sent), to as u32);
        if !(self.loose && self.dice.once_in(20)) {
            self.add(to, Shape::recv(room, taken), source);
        }
        if self.dice.once_in(3) {
            let (rank, work) = (self.rank(), self.calc());
            self.add(rank, work, 0);
        }
    }

    fn lone_op(&mut self) {
        let (rank, mut peer, size, mut tag) = (self.rank(), self.rank() as u32, self.size(), self.tag());
        let shape = match self.dice.below(3) {
            0 => Shape::send(size, tag),
            1 => {
                peer = if self.dice.once_in(self.wildcards) { ANY } else { peer };
                tag = if self.dice.once_in(self.wildcards) { ANY } else { tag };
                Shape::recv(size, tag)
            }
            _ => self.calc(),
        };
        self.add(rank, shape, if shape.kind == Kind::Calc { 0 } else { peer });
    }

    fn add(&mut self, rank: u64, shape: Shape, peer: u32) {
        let number = self.ranks[rank as usize].len();
        if number == self.most_ops {
            return;
        }
        let nic = if shape.kind == Kind::Calc { 0 } else { self.dice.below(self.nics) as u8 };
        let shape = Shape { cpu: self.dice.below(self.cpus) as u8, nic, ..shape };
        let mut op = Op::new(shape, peer);
        if let Some(steps) = &mut self.steps {
            let before = &mut steps[rank as usize];
            if self.dice.once_in(2) {
                *before = before.end..number;
            }
            op.requires.extend(before.clone());
            return self.ranks[rank as usize].push(op);
        }
        let needs = if number == 0 || self.dice.once_in(self.roots) { 0 } else { 1 + self.dice.below(2) };
        for _ in 0..needs {
            let near = self.dice.once_in(2).then_some(number - 1);
            let need = near.unwrap_or_else(|| self.dice.below(number as u64) as usize);
            if !self.plain && self.dice.once_in(5) { op.irequires.push(need) } else { op.requires.push(need) }
        }
        let ops = &mut self.ranks[rank as usize];
        ops.push(op);
        if number > 0 && self.dice.once_in(400) {
            // A dependency on a later operation, which may cause a deadlock.
            let earlier = self.dice.below(number as u64) as usize;
            ops[earlier].requires.push(number);
        }
    }
}

/// Noise that strikes most work, in a trace longer than the longest work.
fn strikes(dice: &mut Dice, program: &impl Program, net: &Network, scale: u64) -> Strikes {
    let work = program.shapes().iter().filter(|shape| shape.kind == Kind::Calc);
    let longest = work.map(|shape| shape.size).max().unwrap_or(0).max(net.overhead);
    let mut trace = || {
        let (mut detours, mut at) = (vec![], dice.below(scale));
        for _ in 0..1 + dice.below(12) {
            let duration = 1 + dice.below(2 * scale);
            detours.push((at, duration));
            // Some detours overlap or touch.
            at += if dice.once_in(6) { dice.below(duration + 1) } else { duration + 1 + dice.below(scale) };
        }
        detours.push((at.max(longest + 1) + dice.below(scale), dice.below(scale)));
        let end = detours.iter().map(|detour| detour.0 + detour.1).max().unwrap_or(0);
        (detours, end + 1 + dice.below(scale))
    };
    let traces: Vec<_> = (0..3).map(|_| trace()).collect();
    let together = dice.once_in(4);
    let place = |_| match together {
        true => (0, scale),
        false => (dice.below(3) as usize, dice.below(traces[0].1)),
    };
    let places = (0..program.ranks()).map(place).collect();
    Strikes { traces, places }
}

/// The same noise for the engine, on progress clocks.
pub fn rank_clocks(strikes: &Strikes) -> Noise {
    let ns = Nanos::from_nanos;
    let detour =
        |&(start, duration): &(u64, u64)| Detour { start: ns(start), duration: ns(duration), own: false };
    let clock = |(detours, period): &(Detours, u64)| {
        let span = Span { start: ns(0), end: ns(*period) };
        let trace = Trace { cpu: Cpu(0), span, detours: detours.iter().map(detour).collect() };
        Arc::new(ProgressClock::new(&trace).unwrap())
    };
    let place = |&(trace, offset): &(usize, u64)| Place { clock: trace as u32, offset };
    let clocks = strikes.traces.iter().map(clock).collect();
    Noise::Clocks(RankClocks::new(clocks, strikes.places.iter().map(place).collect()).unwrap())
}
