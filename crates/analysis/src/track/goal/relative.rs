//! What a rank did in a form that is comparable with other ranks, and the first operation that breaks the common form.

use std::fmt;

use quell_recording::mpi::Definitions;

use super::expand::What;
use super::matching::Matching;
use super::sequence::Sequence;
use super::steps::{Message, Operation};
use crate::track::event_reader::MessageKey;

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

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Index of the other rank among the sequences.
    pub peer: u32,
    pub tag: u32,
    pub bytes: u64,
    pub key: Option<MessageKey>,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelativeOperation {
    Send(End),
    Receive(End),
    Collective {
        what: What,
        blocking: bool,
    },
    /// Waits for the operation with this index.
    Wait(u32),
}

/// A rank's operations, and the work before each.
#[derive(Debug, Default)]
pub(super) struct RelativeSequence {
    pub rank: u32,
    pub all: Vec<(u64, RelativeOperation)>,
    pub rest_ns: u64,
}

impl RelativeSequence {
    /// What a rank did, without what was omitted. Work before an omitted operation is added to that before the next one.
    pub fn new(
        definitions: &Definitions,
        (place, sequence): (u32, &Sequence),
        ranks: usize,
        matching: &Matching,
    ) -> Result<Self, Irregular> {
        let mut ops = Self { rank: sequence.rank, ..Self::default() };
        let mut kept = vec![u32::MAX; sequence.steps.len()];
        let mut gap = 0u64;
        let end = |message: &Message| End {
            peer: message.peer,
            tag: matching.tag(message),
            bytes: message.bytes,
            key: message.key,
        };
        for (at, step) in sequence.steps.iter().enumerate() {
            gap = gap.saturating_add(step.gap_ns);
            let op = match &step.operation {
                Operation::Send(to) => Some(RelativeOperation::Send(end(to))),
                Operation::Receive(from) => Some(RelativeOperation::Receive(end(from))),
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

    pub fn get(&self, at: usize) -> Option<&RelativeOperation> {
        self.all.get(at).map(|(_, op)| op)
    }

    /// The number of an operation among those that are not waits, from 1.
    fn number(&self, at: usize) -> usize {
        let before = &self.all[..at.min(self.all.len())];
        before.iter().filter(|(_, op)| !matches!(op, RelativeOperation::Wait(_))).count() + 1
    }

    /// The operation at this index, as one that breaks the common form.
    pub fn broken(&self, at: usize, expected: String) -> Irregular {
        let what = self.get(at).map_or_else(|| "missing".to_owned(), words);
        Irregular { rank: self.rank, operation: self.number(at), what, expected }
    }
}

/// The operation in words.
pub(super) fn words(op: &RelativeOperation) -> String {
    match op {
        RelativeOperation::Send(End { peer, bytes, .. }) => format!("a send of {bytes} bytes to rank {peer}"),
        RelativeOperation::Receive(End { peer, bytes, .. }) => {
            format!("a receive of {bytes} bytes from rank {peer}")
        }
        RelativeOperation::Collective { what, blocking } => {
            let kind = if *blocking { "" } else { "non-blocking " };
            format!("{kind}{:?} of {} bytes", what.operation, what.bytes)
        }
        RelativeOperation::Wait(_) => "a wait".to_owned(),
    }
}
