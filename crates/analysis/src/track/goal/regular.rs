//! What all ranks do alike: the same steps, with peers at constant offsets in a grid.

use std::fmt;

use quell_recording::mpi::Definitions;

use super::expand::What;
use super::grid::{Grid, Offset};
use super::matching::Matching;
use super::sequence::{Operation, Sequence};

/// A step that violates the regularity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Irregular {
    /// Its rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Its number among the rank's sends, receives and collectives, from 1.
    pub operation: usize,
    /// The actual operation.
    pub what: String,
    /// The operation that would be regular.
    pub expected: String,
}

impl fmt::Display for Irregular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, operation, what, expected } = self;
        write!(
            f,
            "the run is not regular, so it cannot be extrapolated: rank {rank}, operation {operation}, is {what}, \
             where {expected}; leave out --extrapolate"
        )
    }
}

impl std::error::Error for Irregular {}

/// An operation of a rank, in a form that applies to other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelativeOperation {
    Send {
        peer: u32,
        tag: u32,
        bytes: u64,
    },
    Receive {
        peer: u32,
        tag: u32,
        bytes: u64,
    },
    Collective {
        what: What,
        blocking: bool,
    },
    /// Waits for the operation with this index.
    Wait(u32),
}

/// A rank's operations, and the work before each.
#[derive(Debug, Default)]
struct RelativeSequence {
    rank: u32,
    all: Vec<(u64, RelativeOperation)>,
    rest_ns: u64,
}

/// The regular run: what every rank does.
#[derive(Debug)]
pub(super) struct Regular {
    /// The operations of a rank that does all of them, the offset of the peer of each that has one, and the ranks' work before it, in ns.
    pub ops: Vec<(RelativeOperation, Option<Offset>, Vec<u64>)>,
    /// The ranks' work after the last operation.
    pub rests: Vec<u64>,
    pub grid: Grid,
    /// Two ranks are each other's neighbours in both directions, so the direction is a guess.
    guessed: bool,
}

impl Regular {
    pub fn ways(&self) -> impl Iterator<Item = &Offset> {
        self.ops.iter().filter_map(|(_, way, _)| way.as_ref())
    }

    /// The assumed grid, in words.
    pub fn describe(&self, ranks: u32) -> String {
        if self.ways().next().is_none() {
            return "no messages but those of collectives".to_owned();
        }
        let larger = self.grid.resized(ranks, self.ways());
        let larger = larger.map_or_else(String::new, |grid| format!(", now {}", grid.words()));
        let guessed = if self.guessed {
            "; of two ranks each is before and behind the other: sends are taken to go up, receives to come from below"
        } else {
            ""
        };
        format!("messages on a {}{larger}{guessed}", self.grid.words())
    }
}

/// How much of the run a grid explains: number of ranks, then of steps of the next rank.
type Reach = (usize, usize);

/// Finds what all ranks do.
pub(super) fn find(
    definitions: &Definitions,
    sequences: &[Sequence],
    matching: &Matching,
) -> Result<Regular, Irregular> {
    let all: Vec<RelativeSequence> = sequences
        .iter()
        .enumerate()
        .map(|(place, sequence)| ops(definitions, (place as u32, sequence), sequences.len(), matching))
        .collect::<Result<_, _>>()?;
    // Ranks at the ends of the grid may do less.
    let longest = all.iter().enumerate().max_by_key(|(place, ops)| (ops.all.len(), usize::MAX - place));
    let Some((model, template)) = longest else {
        let nothing = || "nothing".to_owned();
        return Err(Irregular {
            rank: 0,
            operation: 1,
            what: nothing(),
            expected: "there are no ranks".into(),
        });
    };
    let mut best: Option<(Reach, Irregular)> = None;
    for grid in Grid::all(all.len() as u32) {
        match explain(grid, model as u32, template, &all) {
            Ok(regular) => return Ok(regular),
            Err((reach, why)) => {
                if best.as_ref().is_none_or(|(best, _)| reach > *best) {
                    best = Some((reach, why));
                }
            }
        }
    }
    Err(best
        .map_or_else(|| broken(template, 0, "there is no grid of that many ranks".into()), |(_, why)| why))
}

/// What a rank did, without what was omitted. Work before an omitted operation is added to that before the next one.
fn ops(
    definitions: &Definitions,
    (place, sequence): (u32, &Sequence),
    ranks: usize,
    matching: &Matching,
) -> Result<RelativeSequence, Irregular> {
    let mut ops = RelativeSequence { rank: sequence.rank, ..RelativeSequence::default() };
    let mut kept = vec![u32::MAX; sequence.steps.len()];
    let mut gap = 0u64;
    for (at, step) in sequence.steps.iter().enumerate() {
        gap = gap.saturating_add(step.gap_ns);
        let op = match &step.operation {
            Operation::Send(to) => {
                Some(RelativeOperation::Send { peer: to.peer, tag: matching.tag(to), bytes: to.bytes })
            }
            Operation::Receive(from) => Some(RelativeOperation::Receive {
                peer: from.peer,
                tag: matching.tag(from),
                bytes: from.bytes,
            }),
            Operation::Wait(on) => {
                Some(kept[*on as usize]).filter(|on| *on != u32::MAX).map(RelativeOperation::Wait)
            }
            Operation::Collective(call) => {
                let part = matching.part(place, call).filter(|part| part.members.len() > 1);
                if let Some(part) = part.as_ref().filter(|part| part.members.len() != ranks) {
                    let name = call.part.and_then(|part| definitions.comms.get(part.comm as usize));
                    let name = name.map_or("?", |comm| &comm.name);
                    let (operation, n) = (part.what.operation, part.members.len());
                    return Err(Irregular {
                        rank: sequence.rank,
                        operation: ops.number(ops.all.len()),
                        what: format!("{operation:?} on {name}, of {n} ranks"),
                        expected: format!("all {ranks} would have to take part"),
                    });
                }
                part.map(|part| RelativeOperation::Collective {
                    // The root is given by its world rank.
                    what: What { root: part.members[part.what.root as usize], ..part.what },
                    blocking: call.blocking,
                })
            }
            Operation::Nothing => None,
        };
        if let Some(op) = op {
            kept[at] = ops.all.len() as u32;
            ops.all.push((std::mem::take(&mut gap), op));
        }
    }
    ops.rest_ns = gap.saturating_add(sequence.rest_ns);
    Ok(ops)
}

impl RelativeSequence {
    /// The number of an operation among those that are not waits, from 1.
    fn number(&self, at: usize) -> usize {
        let before = &self.all[..at.min(self.all.len())];
        before.iter().filter(|(_, op)| !matches!(op, RelativeOperation::Wait(_))).count() + 1
    }
}

/// Checks whether all ranks do what the model does, in this grid.
fn explain(
    grid: Grid,
    model: u32,
    template: &RelativeSequence,
    all: &[RelativeSequence],
) -> Result<Regular, (Reach, Irregular)> {
    let mut guessed = false;
    let mut ops = Vec::with_capacity(template.all.len());
    for (at, (_, op)) in template.all.iter().enumerate() {
        let way = match *op {
            RelativeOperation::Send { peer, .. } => Some(grid.offset(model, peer, true)),
            RelativeOperation::Receive { peer, .. } => Some(grid.offset(model, peer, false)),
            _ => None,
        };
        if way.as_ref().is_some_and(|way| grid.is_ambiguous(way)) {
            guessed = true;
            if all.len() > 2 {
                let why = "its peer is as far up as down: trace more ranks";
                return Err(((0, at), broken(template, at, why.to_owned())));
            }
        }
        ops.push((*op, way, Vec::with_capacity(all.len())));
    }
    let mut regular = Regular { ops, rests: Vec::with_capacity(all.len()), grid, guessed };
    for (rank, one) in all.iter().enumerate() {
        if let Err((at, expected)) = regular.takes(rank as u32, one) {
            return Err(((rank, at), broken(one, at, format!("{expected}, as rank {} did", template.rank))));
        }
    }
    Ok(regular)
}

impl Regular {
    /// Adds a rank's work if it does the same; otherwise returns the first operation that differs, and the expected one.
    fn takes(&mut self, rank: u32, one: &RelativeSequence) -> Result<(), (usize, String)> {
        let mut at = 0;
        let mut places = vec![u32::MAX; self.ops.len()];
        // If a rank at an end skips an operation, the work before it is recorded with that before the next one, so neither is known separately.
        let mut skipped = false;
        for (number, (op, way, gaps)) in self.ops.iter_mut().enumerate() {
            let expected = match (*op, way) {
                (RelativeOperation::Wait(on), _) => match places[on as usize] {
                    u32::MAX => continue,
                    place => RelativeOperation::Wait(place),
                },
                (op, None) => op,
                (op, Some(way)) => match self.grid.at(rank, way) {
                    None => {
                        skipped = true;
                        continue;
                    }
                    Some(there) => towards(op, there),
                },
            };
            match one.all.get(at) {
                Some((gap, op)) if *op == expected => {
                    if !std::mem::take(&mut skipped) {
                        gaps.push(*gap);
                    }
                }
                _ => return Err((at, words(&expected))),
            }
            places[number] = at as u32;
            at += 1;
        }
        if at < one.all.len() {
            return Err((at, "the rank would have to be done".to_owned()));
        }
        if !skipped {
            self.rests.push(one.rest_ns);
        }
        Ok(())
    }
}

/// The same operation with another peer.
pub(super) fn towards(op: RelativeOperation, peer: u32) -> RelativeOperation {
    match op {
        RelativeOperation::Send { tag, bytes, .. } => RelativeOperation::Send { peer, tag, bytes },
        RelativeOperation::Receive { tag, bytes, .. } => RelativeOperation::Receive { peer, tag, bytes },
        op => op,
    }
}

fn broken(ops: &RelativeSequence, at: usize, expected: String) -> Irregular {
    let what = ops.all.get(at).map_or_else(|| "missing".to_owned(), |(_, op)| words(op));
    Irregular { rank: ops.rank, operation: ops.number(at), what, expected }
}

fn words(op: &RelativeOperation) -> String {
    match op {
        RelativeOperation::Send { peer, bytes, .. } => format!("a send of {bytes} bytes to rank {peer}"),
        RelativeOperation::Receive { peer, bytes, .. } => {
            format!("a receive of {bytes} bytes from rank {peer}")
        }
        RelativeOperation::Collective { what, blocking } => {
            let kind = if *blocking { "" } else { "non-blocking " };
            format!("{kind}{:?} of {} bytes", what.operation, what.bytes)
        }
        RelativeOperation::Wait(_) => "a wait".to_owned(),
    }
}
