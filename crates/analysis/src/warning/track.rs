//! What is wrong with an archive of an MPI run, as typed values. Their sentences are in `text/track.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an archive lacks, or where it contradicts itself. Times `at_ns` count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ArchiveWarning {
    /// The events of a location break off.
    BreaksOff {
        /// Where.
        location: Location,
        /// The time of its last event.
        at_ns: i64,
        /// What is wrong with its file.
        damage: String,
    },
    /// A region is left that was not entered.
    LeavesUnentered {
        /// Where.
        location: Location,
        /// The region.
        region: String,
    },
    /// A region is left while others are open within it.
    LeavesOpen {
        /// Where.
        location: Location,
        /// The region.
        region: String,
        /// How many are open.
        open: u64,
    },
    /// A noise counter goes back.
    CounterBackwards {
        /// Where.
        location: Location,
        /// The counter's source of noise.
        source: String,
        /// To this value.
        to_ns: u64,
    },
    /// A clock goes back.
    ClockBackwards {
        /// Where.
        location: Location,
        /// By so much.
        by_ns: i64,
        /// The time of the event before.
        at_ns: i64,
    },
    /// A call ends before what it waited for.
    EndsBeforeCause {
        /// Where.
        location: Location,
        /// When.
        at_ns: i64,
        /// So much before.
        by_ns: i64,
    },
    /// An event names what the archive does not define.
    Undefined {
        /// Where.
        location: Location,
        /// What it names.
        what: UndefinedName,
        /// When.
        at_ns: i64,
    },
    /// A message is received that was never sent.
    NeverSent {
        /// Who receives it.
        location: Location,
        /// When.
        at_ns: i64,
        /// The message.
        message: Envelope,
    },
    /// A message is sent and never received.
    NeverReceived {
        /// When it was sent.
        at_ns: i64,
        /// The message.
        message: Envelope,
    },
    /// Not all members of a communicator enter a collective.
    RanksMissing {
        /// The collective.
        collective: Collective,
        /// Which it is, where that is known.
        operation: Option<String>,
        /// The first of the missing ranks.
        ranks: Vec<u32>,
        /// Further ranks.
        more: u64,
    },
    /// Not all members leave a collective.
    NotLeft {
        /// The collective.
        collective: Collective,
    },
    /// Ranks do not agree on what a collective is.
    RanksDisagree {
        /// The collective.
        collective: Collective,
    },
    /// A location ends within a region.
    EndsWithin {
        /// Where.
        location: Location,
        /// The time of its last event.
        at_ns: i64,
        /// The region.
        region: String,
    },
    /// A rank ends without `MPI_Finalize`.
    WithoutFinalize {
        /// Where.
        location: Location,
        /// The time of its last event.
        at_ns: i64,
    },
}

/// What an event can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UndefinedName {
    /// A source of noise.
    NoiseSource,
    /// A rank or a communicator.
    Peer,
    /// A communicator that the event's rank is no member of.
    Communicator,
}

/// A thread of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Its number in the archive.
    pub number: u32,
    /// Its rank and thread; null where the archive does not define it.
    pub thread: Option<[u32; 2]>,
}

/// What a message is matched by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// The rank that sends it.
    pub from: u32,
    /// The rank that receives it.
    pub to: u32,
    /// Its tag.
    pub tag: u32,
    /// Its communicator.
    pub communicator: String,
}

/// A collective operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collective {
    /// Its number on its communicator.
    pub number: u64,
    /// Its communicator.
    pub communicator: String,
    /// When the last of those who came entered it.
    pub entered_ns: i64,
}
