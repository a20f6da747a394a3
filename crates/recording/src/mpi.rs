//! The events of an MPI run: the data types between the tracer's logs, OTF2 archives, and the analysis of noise.
//!
//! A run has locations, one for each thread of a rank, and each has a stream of [`Event`]s in the order in which they happened there.
//! [`Definitions`] define the numbers in events: all of them are indices into its lists.

mod operation;

use std::collections::BTreeMap;
use std::fmt;

pub use operation::Operation;

/// The definitions of the numbers in events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Calls and parts of the program.
    pub regions: Vec<Region>,
    /// Communicators.
    pub comms: Vec<Comm>,
    /// Threads of ranks, in order of rank and thread.
    pub locations: Vec<Location>,
    /// Noise sources: the SOURCE of each metric `quell.noise.SOURCE`.
    pub sources: Vec<String>,
    /// When the run began and ended on the archive's clock, in ns.
    pub span_ns: [u64; 2],
}

/// A call or a part of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Region {
    /// Its name: `MPI_Send`, `phase 1`.
    pub name: String,
    /// The place in the program from which it was called, if known.
    pub site: Option<String>,
    /// Whether it belongs to MPI.
    pub mpi: bool,
}

/// A communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comm {
    /// Its name.
    pub name: String,
    /// For each of its own ranks, the rank in `MPI_COMM_WORLD`.
    pub members: Vec<u32>,
    /// The world ranks of the other group, if it joins two.
    pub remote: Option<Vec<u32>>,
}

impl Comm {
    /// The world ranks that a rank's peers are numbered in: its own group, or the other one if there are two.
    pub fn peers(&self, rank: u32) -> &[u32] {
        match &self.remote {
            Some(remote) if !remote.contains(&rank) => remote,
            _ => &self.members,
        }
    }

    /// The world ranks that take part in its collectives.
    pub fn all_world_ranks(&self) -> impl Iterator<Item = u32> + Clone {
        self.members.iter().chain(self.remote.iter().flatten()).copied()
    }
}

/// A thread of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Its number in the archive.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// The rank's thread, from 0.
    pub thread: u32,
    /// Its host; empty if it is not known.
    pub host: String,
}

/// Something that happened at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its time, in ns on the archive's clock.
    pub time_ns: u64,
    /// What happened.
    pub what: What,
}

/// A tag, a rank or a communicator that is not known: a wildcard, or one that the archive does not record.
pub const UNKNOWN: u32 = u32::MAX;
/// The request of a blocking call.
pub const BLOCKING: u64 = u64::MAX;

/// What happened. `comm`, `region` and `source` are indices into [`Definitions`]; `to`, `from` and `root` are ranks of the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are MPI's own words; those that are not are described")]
pub enum What {
    /// A call or a part of the program begins.
    Enter(u32),
    /// A call or a part of the program ends.
    Leave(u32),
    /// The cumulative noise of a source on the thread since it began.
    Noise { source: u32, total_ns: u64 },
    /// A message is sent. `request` is [`BLOCKING`] or the one that [`What::SendDone`] will refer to.
    Send { comm: u32, to: u32, tag: u32, bytes: u64, request: u64 },
    /// A non-blocking send is complete.
    SendDone { request: u64 },
    /// A non-blocking receive begins. Each of `comm`, `from` and `tag` may be [`UNKNOWN`].
    RecvPosted { comm: u32, from: u32, tag: u32, request: u64 },
    /// A message was received. `request` is [`BLOCKING`] or the one of [`What::RecvPosted`].
    Recv { comm: u32, from: u32, tag: u32, bytes: u64, request: u64 },
    /// A message was seen by a probe, and is not received yet.
    Probed { comm: u32, from: u32, tag: u32 },
    /// A request was tested, and was not complete.
    Pending { request: u64 },
    /// A request was cancelled.
    Cancelled { request: u64 },
    /// A blocking collective begins.
    CollectiveBegin,
    /// A non-blocking collective begins. `comm` may be [`UNKNOWN`].
    CollectivePosted { comm: u32, request: u64 },
    /// A collective is complete. `root` is [`UNKNOWN`] if there is none; `request` as in [`What::Recv`].
    Collective { operation: Operation, comm: u32, root: u32, sent: u64, received: u64, request: u64 },
    /// The thread forks a team of OpenMP threads. `threads` is the number that it asks for; 0 if it leaves that to the runtime.
    Fork { threads: u32 },
    /// The thread's share in the team of its process begins.
    TeamBegin,
    /// The thread's share is complete: it has come to the join.
    TeamEnd,
    /// All threads of the team that this thread forked have come.
    Join,
}

/// Which ranks a rank of a collective waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Each rank waits for all.
    All,
    /// Each rank waits for the root.
    ForRoot,
    /// The root waits for each rank.
    Root,
    /// Each rank waits for those before it.
    Prefix,
    /// No rank has to wait.
    NoOne,
}

impl Operation {
    /// Which ranks wait for which, whatever algorithm MPI uses.
    pub fn waits(self) -> Waits {
        match self {
            Self::Bcast | Self::Scatter | Self::Scatterv => Waits::ForRoot,
            Self::Gather | Self::Gatherv | Self::Reduce => Waits::Root,
            Self::Scan | Self::Exscan => Waits::Prefix,
            Self::Destroy => Waits::NoOne,
            _ => Waits::All,
        }
    }
}

/// Why a location's events end before the location's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(pub String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damage {}

/// An MPI run that can be read, each location at its own pace.
pub trait Run {
    /// The definitions of the numbers in its events.
    fn definitions(&self) -> &Definitions;

    /// Appends the next few thousand events of the location at this index of [`Definitions::locations`] to `events`. Times rise except
    /// where the clock itself went back. `false` once there are no more.
    ///
    /// # Errors
    /// What is wrong with the rest. The events that were appended are valid.
    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage>;

    /// Time that counters left out of the events had counted by now, over all locations, in ns.
    fn own_work_ns(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

#[cfg(test)]
mod tests;
