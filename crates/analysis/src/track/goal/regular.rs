//! What all ranks do alike: the same steps, with peers by the same rules in a grid.

use std::cell::Cell;

use quell_recording::mpi::{Definitions, UNKNOWN};
use rustc_hash::FxHashSet;

use super::grid::{Grid, Offset};
use super::lockstep::{Doing, Failure, Merged, Message, merge};
use super::matching::Matching;
use super::relative::{Irregular, RelativeSequence};
use super::repeats::{self, Repeat};
use super::sequence::Sequence;
use super::way::Way;

/// How many looks at a rank the search for a grid may take: some ten seconds, or more in a large run, whose first grids take long.
const EFFORT: u64 = 500_000_000;
const EFFORT_PER_OPERATION: u64 = 32;

/// The regular run: what every rank does.
#[derive(Debug)]
pub(super) struct Regular {
    pub merged: Merged,
    pub grid: Grid,
    pub repeats: Vec<Repeat>,
    /// Of two ranks, what leads from one to the other is a guess.
    guessed: bool,
}

impl Regular {
    fn messages(&self) -> impl Iterator<Item = &Message> {
        self.merged.steps.iter().filter_map(|step| match &step.doing {
            Doing::Send(message) | Doing::Receive(message, _) => Some(message),
            _ => None,
        })
    }

    pub fn ways(&self) -> impl Iterator<Item = &Way> {
        self.messages().map(|message| &message.way)
    }

    /// The number of messages with sizes, ways and places of their own.
    pub fn kinds_of_messages(&self) -> usize {
        let kind =
            |message: &Message| (message.sizes, message.way.clone(), message.across.clone(), message.line);
        self.messages().map(kind).collect::<FxHashSet<_>>().len()
    }

    /// A grid of the same kind in which the same rules lead to other ranks.
    pub fn resized(&self, ranks: u32, dims: Option<&[u32]>) -> Option<Grid> {
        self.grid.resized(ranks, dims).filter(|grid| self.ways().all(|way| way.fits(grid)))
    }

    /// The assumed grid, in words.
    pub fn describe(&self, larger: &Grid) -> String {
        if self.ways().next().is_none() {
            return "no messages but those of collectives".to_owned();
        }
        let mut words = format!("messages on a {}, now {}", self.grid.words(), larger.words());
        let both_ways = self.guessed && self.grid.periodic[0];
        if both_ways {
            words.push_str("; of two ranks each is before and behind the other: sends are taken to go up, receives to come from below");
        } else if self.guessed {
            words.push_str(
                "; of two ranks, that each is the next of the other is a guess: trace three or more",
            );
        }
        let mut repeats: Vec<&str> = self.repeats.iter().map(Repeat::words).collect();
        repeats.sort_unstable();
        repeats.dedup();
        if !repeats.is_empty() && self.grid.dims != larger.dims {
            words.push_str(&format!("; rounds of {} in proportion to it", repeats.join(" and ")));
        }
        let no_inner = self.grid.dims.iter().zip(&larger.dims).any(|(old, new)| *old == 2 && *new > 2);
        if no_inner && !both_ways && self.merged.sizes.iter().any(|sizes| differ(sizes)) {
            words.push_str(
                "; sizes of ranks between the ends are those of the ends: trace three or more in each direction",
            );
        }
        words
    }
}

fn differ(sizes: &[Option<u64>]) -> bool {
    let mut known = sizes.iter().flatten();
    known.next().is_some_and(|first| known.any(|bytes| bytes != first))
}

/// Finds what all ranks do.
pub(super) fn find(
    definitions: &Definitions,
    sequences: &[Sequence],
    matching: &Matching,
) -> Result<Regular, Irregular> {
    let all: Vec<RelativeSequence> = sequences
        .iter()
        .enumerate()
        .map(|(place, sequence)| {
            RelativeSequence::new(definitions, (place as u32, sequence), sequences.len(), matching)
        })
        .collect::<Result<_, _>>()?;
    let operations: usize = all.iter().map(|one| one.all.len()).sum();
    let effort = Cell::new(EFFORT.max(EFFORT_PER_OPERATION.saturating_mul(operations as u64)));
    let mut best: Option<Failure> = None;
    for lines in [false, true] {
        for grid in Grid::all(all.len() as u32) {
            if effort.get() == 0 && best.is_some() {
                break;
            }
            match explain(grid, lines, &all, &effort) {
                Ok(regular) => return Ok(regular),
                Err(failure) => {
                    if best.as_ref().is_none_or(|best| failure.0 > best.0) {
                        best = Some(failure);
                    }
                }
            }
        }
    }
    let nothing = || Irregular {
        rank: 0,
        operation: 1,
        what: "nothing".to_owned(),
        expected: "there are no ranks".to_owned(),
    };
    Err(best.map_or_else(nothing, |(_, why)| why))
}

/// Checks whether all ranks do the same in this grid.
fn explain(
    grid: Grid,
    lines: bool,
    all: &[RelativeSequence],
    effort: &Cell<u64>,
) -> Result<Regular, Failure> {
    let mut merged = merge(all, &grid, lines, effort)?;
    let failure = |step, why: &str| {
        let (rank, at) = merged.first_at(step);
        (all.iter().map(|one| one.all.len()).sum::<usize>(), all[rank].broken(at, why.to_owned()))
    };
    let ambiguous =
        |step| failure(step, "more than one rule leads to its peer: trace three or more in each direction");
    if let Some(step) = without_direction(&merged, &grid) {
        return Err(ambiguous(step));
    }
    if let Some(step) = to_every_other(&merged, &grid) {
        return Err(failure(step, "each rank sends to every other, and with more ranks perhaps to more"));
    }
    if let Some(step) = of_one_rank(&merged, &grid) {
        let (rank, at) = merged.first_at(step);
        let why = "no other rank does the same: trace more ranks";
        // What is irregular in another grid is the better reason.
        return Err((0, all[rank].broken(at, why.to_owned())));
    }
    let repeats = repeats::find(&merged.steps, &grid).map_err(ambiguous)?;
    repeats::divide_by_cells(&mut merged.steps, &repeats);
    let guessed = grid.ranks() == 2 && merged.has_messages();
    Ok(Regular { merged, grid, repeats, guessed })
}

/// The last of the sends by which each rank reaches every other: either its neighbours, which are all in a small grid, or all that there are.
fn to_every_other(merged: &Merged, grid: &Grid) -> Option<usize> {
    let ranks = grid.ranks();
    let to = |rank| {
        let mut peers = FxHashSet::default();
        let mut last = None;
        for (place, step) in merged.steps.iter().enumerate() {
            let Doing::Send(message) = &step.doing else { continue };
            if message.way.at(grid, rank).is_some_and(|peer| peer != rank && peers.insert(peer)) {
                last = Some(place);
            }
        }
        (peers.len() as u32 == ranks - 1).then_some(last).flatten()
    };
    // Both neighbours on a ring of three, and a ring of four, are common.
    if ranks <= 4 {
        return None;
    }
    let first = to(0)?;
    (1..ranks).all(|rank| to(rank).is_some()).then_some(first)
}

/// A message of a single rank. In a small grid each rank has places that no other has, by which any program could be explained.
fn of_one_rank(merged: &Merged, grid: &Grid) -> Option<usize> {
    merged.steps.iter().position(|step| {
        let Doing::Send(message) = &step.doing else { return false };
        let ranks = merged.sizes[message.sizes as usize].iter().flatten().count();
        grid.ranks() > 2 && message.line.is_none() && ranks == 1
    })
}

/// A send with a tag that is used in both directions, where no rank has peers in both: its ends may be neighbours or not.
fn without_direction(merged: &Merged, grid: &Grid) -> Option<usize> {
    let mut seen: FxHashSet<(&Offset, u32)> = FxHashSet::default();
    merged.steps.iter().position(|step| {
        let Doing::Send(Message { way: Way::Offset(way), tag, one_tag, .. }) = &step.doing else {
            return false;
        };
        let tag = if *one_tag { tag } else { &UNKNOWN };
        if !seen.insert((way, *tag)) {
            return false;
        }
        let back: Offset = way.iter().map(|way| -way).collect();
        let both = |rank| grid.at(rank, way).is_some() && grid.at(rank, &back).is_some();
        seen.contains(&(&back, *tag)) && back != *way && !(0..grid.ranks()).any(both)
    })
}
