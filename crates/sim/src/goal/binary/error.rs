//! What can be wrong with a binary schedule.

use std::io;

use crate::goal::defect::BuildError;

/// Why bytes are not a binary schedule. Messages count operations from 1.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// The file has another format.
    #[error(
        "this is no binary GOAL schedule: it begins with {0:#018x} instead of 0x000000000000107f (4223); \
         if it is text, read it as text"
    )]
    Magic(u64),
    /// LogGOPSim has overwritten the file.
    #[error(
        "this binary schedule was used up by `LogGOPSim --save-mem`, which counts down in the file itself; \
         make it anew from its text"
    )]
    UsedUp,
    /// It ends too early.
    #[error("the schedule ends within {0}, after {1} bytes; it was cut short: make or copy it again")]
    Truncated(Part, u64),
    /// It contradicts itself.
    #[error("{part}: {damage}; make the schedule anew with txt2bin or quell")]
    Damaged {
        /// Where.
        part: Part,
        /// How.
        damage: Damage,
    },
    /// What it describes is unfit to run.
    #[error(transparent)]
    Unfit(#[from] BuildError),
    /// Reading failed.
    #[error("reading the schedule failed: {0}")]
    Io(#[from] io::Error),
}

/// A part of a binary schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Part {
    /// The head, with the number of ranks.
    #[error("the head")]
    Head,
    /// The table of where each rank's part is.
    #[error("the table of ranks")]
    Table,
    /// A rank's part.
    #[error("rank {0}")]
    Rank(u32),
    /// An operation; its number counts from 0.
    #[error("rank {rank}, operation {}", u64::from(*.op) + 1)]
    Op {
        /// Its rank.
        rank: u32,
        /// Its number in its rank.
        op: u32,
    },
}

/// How a binary schedule contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It has no ranks.
    #[error("it has no ranks")]
    NoRanks,
    /// A rank's part begins before that of the rank before it ends, or ends before it begins.
    #[error("bytes {begin} to {end} cannot be its part, for the part before ends at {before}")]
    Range {
        /// Where it begins according to the file, in bytes from the 8th.
        begin: u64,
        /// Where it ends according to the file.
        end: u64,
        /// Where the part before it ends.
        before: u64,
    },
    /// A rank's part is too small for what it claims to hold.
    #[error("{ops} operations and {roots} roots need more than the {bytes} bytes of its part")]
    TooSmall {
        /// Number of operations that it claims to hold.
        ops: u32,
        /// Number of roots that it claims to hold.
        roots: u32,
        /// Number of bytes that it has.
        bytes: u64,
    },
    /// The rest of a rank's part does not fit its dependencies.
    #[error("{named} dependents are named, but there are {there} in its part")]
    Dependents {
        /// Number that the operations name.
        named: u64,
        /// Number that the part holds.
        there: u64,
    },
    /// The type of an operation is unknown.
    #[error("type {0} is none of 1 (send), 2 (receive) and 3 (work)")]
    Type(u8),
    /// The CPU or interface of an operation is above the highest of the head.
    #[error("CPU {cpu}, interface {nic} is above the highest that the head names")]
    AboveHighest {
        /// The CPU.
        cpu: u8,
        /// The network interface.
        nic: u8,
    },
    /// The list of dependents of an operation leaves its part.
    #[error("its {count} dependents from number {first} on leave the {there} of its rank")]
    DependentsOutside {
        /// How many it names.
        count: u32,
        /// The number of the first.
        first: u32,
        /// How many its rank has.
        there: u64,
    },
    /// The count of an operation's needs differs from the number of dependents that name it.
    #[error("it should depend on {printed} others, but {named} name it")]
    Needs {
        /// The count in the file.
        printed: u32,
        /// Number of times that it is named.
        named: u32,
    },
    /// The list of roots differs from the operations that need nothing.
    #[error("the list of what can start at once differs from the operations that need nothing")]
    Roots,
}
