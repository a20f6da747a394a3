//! The critical path of a run in passes.

use std::ops::{ControlFlow, Range};

use super::{Played, Sections, add, delay, last};
use crate::loggops::rounds::arrays::Arrays;
use crate::loggops::rounds::kernel::{INWARD, MESSAGE, OUT};
use crate::loggops::rounds::passes::Player;
use crate::loggops::rounds::plan::Pass;
use crate::loggops::watch::Struck;
use crate::loggops::{Peers, RankClocks};

/// What a rank on the path waited for last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Message,
    Cpu,
    /// Its interface, before it handled a message.
    Inward,
    /// Its interface, before it sent.
    Out,
}

/// The part of a pass that is on the path.
#[derive(Clone, Copy, Debug)]
struct Step {
    rank: u32,
    waited: Waited,
}

/// From where on a rank's pass is on the path: from its end back, or only from the start of its handling.
#[derive(Clone, Copy, Debug)]
pub(in crate::loggops::rounds) struct Place {
    rank: u32,
    is_start: bool,
}

/// A run in passes.
pub(in crate::loggops::rounds) struct InPasses<'a> {
    player: &'a Player<'a>,
    arrays: Arrays,
    clocks: Option<&'a RankClocks>,
    /// What each rank waited for, pass after pass.
    choices: Vec<u8>,
}

impl<'a> InPasses<'a> {
    pub(in crate::loggops::rounds) fn new(
        player: &'a Player<'a>,
        arrays: Arrays,
        clocks: Option<&'a RankClocks>,
    ) -> Self {
        Self { player, arrays, clocks, choices: Vec::new() }
    }

    pub(in crate::loggops::rounds) fn into_arrays(self) -> Arrays {
        self.arrays
    }
}

impl Sections for InPasses<'_> {
    type State = Arrays;
    type Place = Place;

    fn parts(&self) -> u64 {
        self.player.plan.total(self.player.iterations)
    }

    fn recorded(&self) -> u64 {
        self.ranks() as u64
    }

    fn ranks(&self) -> usize {
        self.arrays.times.len()
    }

    fn state(&self) -> Arrays {
        self.arrays.clone()
    }

    fn set(&mut self, arrays: Arrays) {
        self.arrays = arrays;
    }

    fn play(&mut self, parts: Range<u64>, played: Played<'_>) -> ControlFlow<()> {
        self.player.play(&mut self.arrays, parts, played)
    }

    fn record(&mut self, parts: Range<u64>, played: Played<'_>) -> ControlFlow<()> {
        self.player.record(&mut self.arrays, parts, &mut self.choices, played)
    }

    fn end(&self) -> Place {
        Place { rank: last(self.arrays.times.iter().copied()), is_start: false }
    }

    fn follow(&self, parts: Range<u64>, place: Place, before: &Arrays, struck: &mut Vec<Struck>) -> Place {
        let (steps, begin) = self.back(parts.clone(), place);
        Path { run: self, struck }.forward(parts, &steps, begin, place, before);
        begin
    }
}

/// The rank that sent the message that `rank` handles in a pass.
fn sender(pass: &Pass, rank: u32, ranks: usize) -> u32 {
    match pass.handling.map(|handling| handling.peers) {
        None => rank,
        Some(Peers::Xor(bits)) => rank ^ bits,
        Some(Peers::Ahead(distance)) => ((rank as usize + ranks - distance as usize % ranks) % ranks) as u32,
    }
}

impl InPasses<'_> {
    /// Walks back through some passes from `place`; returns what is on the path in each of them, and where it was before.
    fn back(&self, numbers: Range<u64>, mut place: Place) -> (Vec<Step>, Place) {
        let Player { plan, iterations, .. } = *self.player;
        let ranks = self.ranks();
        let mut steps = Vec::with_capacity((numbers.end - numbers.start) as usize);
        for (number, choices) in numbers.rev().zip(self.choices.chunks(ranks).rev()) {
            let Place { rank, is_start } = place;
            let choice = choices[rank as usize];
            let waited = match choice & !OUT {
                _ if choice & OUT != 0 && !is_start => Waited::Out,
                MESSAGE => Waited::Message,
                INWARD => Waited::Inward,
                _ => Waited::Cpu,
            };
            steps.push(Step { rank, waited });
            let from = match waited {
                Waited::Message => sender(plan.turn(number, iterations).pass, rank, ranks),
                _ => rank,
            };
            place = Place { rank: from, is_start: waited == Waited::Inward };
        }
        steps.reverse();
        (steps, place)
    }
}

/// The critical path, played forward.
struct Path<'a> {
    run: &'a InPasses<'a>,
    struck: &'a mut Vec<Struck>,
}

impl Path<'_> {
    /// Plays what is on the path in some passes, from the state of all ranks before them on.
    fn forward(mut self, numbers: Range<u64>, steps: &[Step], begin: Place, end: Place, before: &Arrays) {
        let Player { plan, iterations, .. } = *self.run.player;
        let Some(first) = steps.first() else { return };
        let (mut left, ..) = before.of_rank(begin.rank);
        let (_, mut out, mut inward) = before.of_rank(first.rank);
        for (number, at) in numbers.zip(0..) {
            let Step { rank, waited } = steps[at];
            let turn = plan.turn(number, iterations);
            let handling = turn.pass.handling.map(|handling| handling.cost).unwrap_or_default();
            let mut t = match waited {
                Waited::Message => left + handling.latency,
                Waited::Cpu => left,
                Waited::Inward => inward,
                Waited::Out => out,
            };
            if waited != Waited::Out {
                inward = t + handling.gap + handling.wire;
                if steps.get(at + 1).map_or(end.is_start, |next| next.waited == Waited::Inward) {
                    continue;
                }
                t = self.work(rank, turn.iteration, t, handling.wire, handling.overhead);
                t = turn.works.iter().fold(t, |t, &work| self.work(rank, turn.iteration, t, 0, work));
                t = turn.begins.iter().fold(t, |t, &work| self.work(rank, turn.next, t, 0, work));
            }
            if let Some(send) = turn.pass.send {
                t = self.work(rank, turn.next, t, 0, send.overhead);
                out = t - send.overhead + send.gap + send.wire;
            }
            left = t;
        }
    }

    /// When work ends that waits for `wire` nanoseconds after its start for bytes.
    fn work(&mut self, rank: u32, iteration: u32, start: i64, wire: i64, work: i64) -> i64 {
        let delay = delay(self.run.clocks, rank, start + wire, work);
        let end = start + wire + work + delay;
        add(self.struck, rank, iteration, [start, end], delay);
        end
    }
}
