//! Defects of an archive of an MPI run, as typed values. Their sentences are in `text/track.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A gap or a contradiction in an archive. Times `at_ns` count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ArchiveWarning {
    /// The events of a location break off.
    BreaksOff {
        /// The location.
        location: Location,
        /// The time of its last event.
        at_ns: i64,
        /// The damage to its file.
        damage: String,
    },
    /// A region is left that was not entered.
    LeavesUnentered {
        /// The location.
        location: Location,
        /// The region.
        region: String,
    },
    /// A region is left while others are open within it.
    LeavesOpen {
        /// The location.
        location: Location,
        /// The region.
        region: String,
        /// Number of regions that are open.
        open: u64,
    },
    /// A noise counter goes back.
    CounterBackwards {
        /// The location.
        location: Location,
        /// The counter's source of noise.
        source: String,
        /// The new value.
        to_ns: u64,
    },
    /// A clock goes back.
    ClockBackwards {
        /// The location.
        location: Location,
        /// The difference.
        by_ns: i64,
        /// The time of the previous event.
        at_ns: i64,
    },
    /// A call ends before what it waited for.
    EndsBeforeCause {
        /// The location.
        location: Location,
        /// The end of the call.
        at_ns: i64,
        /// Time from the end of the call to its cause.
        by_ns: i64,
    },
    /// An event refers to something that the archive does not define.
    Undefined {
        /// The location.
        location: Location,
        /// What it refers to.
        what: UndefinedName,
        /// The time of the event.
        at_ns: i64,
    },
    /// A message is received that was never sent.
    NeverSent {
        /// The receiving location.
        location: Location,
        /// The time of the receive.
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
        /// The operation, if it is known.
        operation: Option<String>,
        /// The first few of the missing ranks.
        ranks: Vec<u32>,
        /// Number of further missing ranks.
        more: u64,
    },
    /// Not all members leave a collective.
    NotLeft {
        /// The collective.
        collective: Collective,
    },
    /// Ranks disagree on the operation of a collective.
    RanksDisagree {
        /// The collective.
        collective: Collective,
    },
    /// A location ends within a region.
    EndsWithin {
        /// The location.
        location: Location,
        /// The time of its last event.
        at_ns: i64,
        /// The region.
        region: String,
    },
    /// A rank ends without `MPI_Finalize`.
    WithoutFinalize {
        /// The location.
        location: Location,
        /// The time of its last event.
        at_ns: i64,
    },
}

/// What an event can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UndefinedName {
    /// A source of noise.
    NoiseSource,
    /// A rank or a communicator.
    Peer,
    /// A communicator of which the event's rank is not a member.
    Communicator,
}

/// A thread of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Its number in the archive.
    pub number: u32,
    /// Its rank and thread; null if the archive does not define it.
    pub thread: Option<[u32; 2]>,
}

/// The properties by which a message is matched.
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
    /// When the last of the ranks that entered did so.
    pub entered_ns: i64,
}
