//! What makes a schedule unfit to run, whatever its origin.

use std::fmt::{self, Display, Formatter};

use super::MAX_SIZE;

/// What is wrong with an operation. Messages count operations from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// Its peer is not a rank of the schedule. LogGOPSim would crash.
    #[error("its peer is rank {peer}, but the ranks are 0 to {}; name one of these", ranks.saturating_sub(1))]
    Peer {
        /// The peer that it names.
        peer: u32,
        /// How many ranks there are.
        ranks: u32,
    },
    /// It sends to any rank, which only a receive may name.
    #[error("it sends to any rank, which only a receive may name; send to one rank")]
    SendToAny,
    /// It waits for itself.
    #[error("it waits for itself and can never start; remove that dependency")]
    Itself,
    /// It waits for itself through others. Their numbers, from 0: each waits for the next, the last for the first.
    #[error("{}; none of them can ever start; remove one of these dependencies", Chain(.0))]
    Cycle(Vec<u32>),
    /// Its bytes or nanoseconds are too many to add up.
    #[error("its size is {size}, above the limit of {MAX_SIZE} (2^62) bytes or nanoseconds; write less")]
    Size {
        /// Bytes or nanoseconds.
        size: u64,
    },
    /// A dependency names an operation that its rank does not have.
    #[error("a dependency names operation {} of a rank that has {ops}; add the operation first", u64::from(*.op) + 1)]
    NoSuchOp {
        /// The number that it names, from 0.
        op: u32,
        /// How many operations the rank has so far.
        ops: u32,
    },
    /// Its rank has too many operations or dependencies to be numbered.
    #[error("its rank has too many operations or dependencies; 2147483648 are the most")]
    TooMany,
}

/// Number of operations of a cycle that a message names.
pub(super) const SHOWN: usize = 8;

/// Displays a cycle as a sentence.
struct Chain<'a>(&'a [u32]);

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = |op: &u32| format!("operation {}", u64::from(*op) + 1);
        let names: Vec<String> = self.0.iter().take(SHOWN).map(name).collect();
        f.write_str(&in_a_circle(&names, self.0.len()))
    }
}

/// "a waits for b waits for a", of `count` operations of which the first few are named.
pub(super) fn in_a_circle(names: &[String], count: usize) -> String {
    let mut steps = names.to_vec();
    if count > names.len() {
        steps.push(format!("{} more", count - names.len()));
    }
    steps.extend(names.first().cloned());
    steps.join(" waits for ")
}

/// Why a builder makes no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// An operation is unfit.
    #[error("rank {rank}, operation {}: {defect}", u64::from(*.op) + 1)]
    Op {
        /// Its rank.
        rank: u32,
        /// Its number in its rank, from 0.
        op: u32,
        /// What is wrong with it.
        defect: Defect,
    },
    /// Fewer ranks were built than announced.
    #[error("the schedule has {given} of {ranks} ranks; give the rest, empty where they do nothing")]
    MissingRanks {
        /// Number of ranks that were built.
        given: u32,
        /// Number of ranks that were announced.
        ranks: u32,
    },
    /// More ranks were begun than announced, or a rank was begun within another.
    #[error(
        "a rank was begun where none can be: {begun} were begun, {ranks} promised; begin and end each once"
    )]
    ExtraRank {
        /// Number of ranks that were begun.
        begun: u32,
        /// Number of ranks that were announced.
        ranks: u32,
    },
    /// An operation was added outside of a rank.
    #[error("an operation was given outside of a rank; begin the rank first")]
    OutsideRank,
    /// No rank has an operation.
    #[error("the schedule has no operation; give at least one")]
    Empty,
}
