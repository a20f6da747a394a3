//! Parts of a program that have more rounds with more ranks: reductions by halves, and sweeps through all ranks of a dimension.

use super::grid::Grid;
use super::lockstep::{Doing, Message, Step};
use super::scaling::corresponding;
use super::way::Way;

/// Equal rounds, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    /// The first step, and the number of steps of a round.
    pub first: usize,
    pub length: usize,
    pub rounds: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A round for each bit of the coordinate.
    Halves { dimension: usize, descending: bool },
    /// A message to each other rank of a dimension, passed from neighbour to neighbour.
    Sweep { dimension: usize },
}

impl Repeat {
    /// Number of rounds in another grid.
    fn rounds_in(&self, grid: &Grid) -> usize {
        match self.kind {
            Kind::Halves { dimension, .. } => grid.dims[dimension].ilog2() as usize,
            Kind::Sweep { dimension } => grid.dims[dimension] as usize - 1,
        }
    }

    fn way(&self, way: &Way, round: usize, rounds: usize) -> Way {
        match self.kind {
            Kind::Halves { dimension, descending } => {
                let bit = if descending { rounds - 1 - round } else { round };
                Way::Flip { dimension, bit: bit as u32 }
            }
            Kind::Sweep { .. } => way.clone(),
        }
    }

    fn steps(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.length * self.rounds
    }

    /// What it is, in words.
    pub fn words(&self) -> &'static str {
        match self.kind {
            Kind::Halves { .. } => "exchanges at powers of two",
            Kind::Sweep { .. } => "sweeps",
        }
    }
}

/// Finds all repeats; otherwise returns a step whose peer differs in one bit, without the steps for the other bits.
pub(super) fn find(steps: &[Step], grid: &Grid) -> Result<Vec<Repeat>, usize> {
    let waits = waits(steps);
    let mut found = Vec::new();
    let mut first = 0;
    while first < steps.len() {
        let repeat = match way(&steps[first]) {
            Some(Way::Flip { dimension, .. }) => {
                Some(halves(steps, &waits, grid, first, *dimension).ok_or(first)?)
            }
            Some(Way::Offset(_)) => sweep(steps, &waits, grid, first),
            _ => None,
        };
        first = match repeat {
            Some(repeat) => repeat.steps().end,
            None => first + 1,
        };
        found.extend(repeat.filter(|repeat| repeat.rounds == repeat.rounds_in(grid)));
    }
    Ok(found)
}

fn message(step: &Step) -> Option<&Message> {
    match &step.doing {
        Doing::Send(message) | Doing::Receive(message, _) => Some(message),
        _ => None,
    }
}

fn way(step: &Step) -> Option<&Way> {
    message(step).map(|message| &message.way)
}

/// For each step, the one that waits for it.
fn waits(steps: &[Step]) -> Vec<Option<usize>> {
    let mut waits = vec![None; steps.len()];
    for (at, step) in steps.iter().enumerate() {
        if let Doing::Wait(on) = step.doing {
            waits[on as usize] = Some(at);
        }
    }
    waits
}

/// The rounds of a reduction by halves: in each, one message to the peer and one from it. Two rounds may be an exchange with both neighbours in a
/// plane of two by two ranks, unless a square is known.
fn halves(
    steps: &[Step],
    waits: &[Option<usize>],
    grid: &Grid,
    first: usize,
    dimension: usize,
) -> Option<Repeat> {
    let bit = |at: usize| match way(&steps[at]) {
        Some(Way::Flip { dimension: along, bit }) if *along == dimension => Some(*bit),
        _ => None,
    };
    let begin = bit(first)?;
    let length = (first..steps.len()).find(|at| bit(*at).is_some_and(|bit| bit != begin))? - first;
    let bits = grid.dims[dimension].ilog2();
    let descending = begin > 0;
    let repeat =
        Repeat { first, length, rounds: bits as usize, kind: Kind::Halves { dimension, descending } };
    let is_round = |round: u32| {
        let bit_of_round = if descending { bits - 1 - round } else { round };
        let begin = first + round as usize * length;
        let messages =
            || (begin..begin + length).filter_map(|at| message(&steps[at]).map(|message| (at, message)));
        messages().count() == 2
            && messages().all(|(at, message)| message.one_tag && bit(at) == Some(bit_of_round))
            && is_closed(steps, waits, begin, length)
            && is_like(steps, first, begin, length)
            && is_as_large(steps, first, begin, length)
    };
    let transposes = || steps.iter().any(|step| way(step) == Some(&Way::Transposed));
    let whole = repeat.steps().end <= steps.len() && (0..bits).all(is_round) && (bits > 2 || transposes());
    whole.then_some(repeat)
}

/// Equal rounds of messages in one direction of a torus of squares. They are a sweep if there is one less than ranks in it.
fn sweep(steps: &[Step], waits: &[Option<usize>], grid: &Grid, first: usize) -> Option<Repeat> {
    let Some(Way::Offset(to)) = way(&steps[first]) else { return None };
    let back: Vec<i64> = to.iter().map(|way| -way).collect();
    let dimension = (0..to.len()).find(|dimension| to[*dimension] != 0)?;
    let torus = grid.is_square() && grid.periodic.iter().all(|ends| *ends) && grid.dims[dimension] > 2;
    if !torus || to.iter().any(|way| way.abs() > 1) {
        return None;
    }
    let is_same = |at: &usize| {
        let sends = |at: usize| matches!(steps[at].doing, Doing::Send(_));
        way(&steps[*at]) == way(&steps[first]) && sends(*at) == sends(first)
    };
    let length = (first + 1..steps.len()).find(is_same)? - first;
    let one_way = steps[first..first + length].iter().all(|step| match &step.doing {
        Doing::Collective { .. } => false,
        Doing::Wait(_) => true,
        _ => matches!(way(step), Some(Way::Offset(way)) if way == to || *way == back),
    });
    if !one_way {
        return None;
    }
    let is_round = |round: &usize| {
        let begin = first + round * length;
        begin + length <= steps.len()
            && is_closed(steps, waits, begin, length)
            && is_like(steps, first, begin, length)
            && (0..length).all(|at| way(&steps[first + at]) == way(&steps[begin + at]))
    };
    let rounds = (0..).take_while(is_round).count();
    (rounds > 0).then_some(Repeat { first, length, rounds, kind: Kind::Sweep { dimension } })
}

/// Whether all that begins in a round ends in it, and nothing else does.
fn is_closed(steps: &[Step], waits: &[Option<usize>], begin: usize, length: usize) -> bool {
    let round = begin..begin + length;
    round.clone().all(|at| match steps[at].doing {
        Doing::Wait(on) => round.contains(&(on as usize)),
        Doing::Collective { .. } => false,
        _ => waits[at].is_some_and(|wait| round.contains(&wait)),
    })
}

/// Whether two rounds have the same kinds of steps.
fn is_like(steps: &[Step], one: usize, other: usize, length: usize) -> bool {
    (0..length).all(|at| match (&steps[one + at].doing, &steps[other + at].doing) {
        (Doing::Send(_), Doing::Send(_)) | (Doing::Receive(..), Doing::Receive(..)) => true,
        (Doing::Wait(on), Doing::Wait(of)) => *on as usize - one == *of as usize - other,
        _ => false,
    })
}

/// Whether the messages of two rounds have the same sizes.
fn is_as_large(steps: &[Step], one: usize, other: usize, length: usize) -> bool {
    let sizes = |at: usize| message(&steps[at]).map(|message| message.sizes);
    (0..length).all(|at| sizes(one + at) == sizes(other + at))
}

/// In a torus with sweeps, each rank has a cell of the problem in each row and column (Bruno and Cappello 1988): a message of a sweep is about one
/// cell, and the others are about as many as there are rows. Sets how their sizes change in a problem that the grid divides.
pub(super) fn divide_by_cells(steps: &mut [Step], repeats: &[Repeat]) {
    let sweeps = || repeats.iter().filter(|repeat| matches!(repeat.kind, Kind::Sweep { .. }));
    if sweeps().next().is_none() {
        return;
    }
    let every = 0..steps.len();
    let mut all = |range: std::ops::Range<usize>, across: [bool; 2]| {
        for step in &mut steps[range] {
            if let Doing::Send(message) | Doing::Receive(message, _) = &mut step.doing {
                message.across = across.to_vec();
            }
        }
    };
    all(every, [true, false]);
    sweeps().for_each(|repeat| all(repeat.steps(), [true, true]));
}

/// A step of the run, as it is done in another grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// Index of the traced step.
    pub step: usize,
    /// The peer, if it is another than that of the step.
    pub way: Option<Way>,
    /// What a wait waits for: an index among the planned steps.
    pub on: u32,
}

/// The steps in another grid, in which repeats have other numbers of rounds.
pub(super) fn plan(steps: &[Step], repeats: &[Repeat], grid: &Grid) -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::with_capacity(steps.len());
    let mut latest = vec![u32::MAX; steps.len()];
    let mut add = |at: usize, way: Option<Way>| {
        latest[at] = planned.len() as u32;
        let on = if let Doing::Wait(on) = steps[at].doing { latest[on as usize] } else { u32::MAX };
        planned.push(Planned { step: at, way, on });
    };
    let mut next = 0;
    for repeat in repeats {
        (next..repeat.first).for_each(|at| add(at, None));
        let rounds = repeat.rounds_in(grid);
        for round in 0..rounds {
            let like = corresponding(round as u32, repeat.rounds as u32, rounds as u32) as usize;
            for at in (repeat.first + like * repeat.length..).take(repeat.length) {
                add(at, way(&steps[at]).map(|way| repeat.way(way, round, rounds)));
            }
        }
        next = repeat.steps().end;
    }
    (next..steps.len()).for_each(|at| add(at, None));
    planned
}
