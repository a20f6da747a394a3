//! The meaning of an event, once its request, message and collective are known.

use quell_recording::mpi::Operation;

use super::message_matching::MessageKey;
use crate::warning::track::UndefinedName;

/// An operation that begins with one event and ends with another: what a request stands for. Unique in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::track) struct OperationId(pub u64);

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::track) struct CollectivePart {
    pub comm: u32,
    /// Its number among the communicator's collectives, from 0: the same for all ranks that take part.
    pub number: u64,
    /// The rank's index among all that take part in the communicator's collectives.
    pub place: u32,
}

/// A team of threads: the index of its process, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::track) struct TeamId {
    pub process: u32,
    pub number: u32,
}

/// A thread's part in a barrier of its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) struct TeamBarrier {
    pub team: TeamId,
    /// Its number among the team's barriers, from 0.
    pub number: u32,
    /// Number of threads in the team.
    pub threads: u32,
    /// The thread's place among them.
    pub place: u32,
}

/// A fact and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) struct Timed {
    /// In ns on the archive's clock. Times of a location never decrease.
    pub time_ns: u64,
    pub fact: Fact,
}

/// What happened at a location. An operation of `None` is blocking, or began without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) enum Fact {
    /// A region begins, and with it the outermost MPI call, if `begins_call`.
    Enter { region: u32, begins_call: bool },
    /// A region ends, and with it the regions that were left open in it: `closed` in all.
    Leave { region: u32, closed: usize },
    /// A region ends that was never entered.
    NeverEntered { region: u32 },
    /// Total noise of a source on the thread until now.
    Noise { source: u32, total_ns: u64 },
    /// The clock goes back. The event gets the time of the earlier one.
    ClockBackwards { from_ns: u64, to_ns: u64 },
    /// The innermost region turns out to be a call, which began with the region; `depth` regions are open around it. If `depth` is
    /// `None`, a call without a region begins now.
    CallBegin { region: u32, depth: Option<usize> },
    /// The call ends. `unsuccessful` if it polled without success.
    CallEnd { unsuccessful: bool },
    /// The event refers to something that the archive does not define.
    Undefined(UndefinedName),
    /// A message is sent.
    Send { operation: Option<OperationId>, message: Option<MessageKey>, bytes: u64 },
    /// A non-blocking send is complete.
    SendDone { operation: Option<OperationId> },
    /// A non-blocking receive begins. Its message is known if the receive ends soon enough, or if it specifies sender and tag.
    ReceivePosted { operation: OperationId, message: Option<MessageKey> },
    /// A receive is complete.
    Received { operation: Option<OperationId>, message: Option<MessageKey>, bytes: u64 },
    /// A message was probed; the next receive on its channel receives it.
    Probed { message: Option<MessageKey> },
    /// A request was cancelled.
    Cancelled { operation: Option<OperationId> },
    /// A blocking collective begins.
    CollectiveBegin,
    /// A non-blocking collective begins.
    CollectivePosted { operation: OperationId, part: Option<CollectivePart> },
    /// A collective is complete. Its root is an index among its ranks.
    Collective { operation: Option<OperationId>, part: Option<CollectivePart>, ends: CollectiveEnd },
    /// The thread forks a team.
    Forked { team: TeamId },
    /// The thread's share in a team begins; `forked_it` if it is the thread that forked the team.
    TeamBegin { team: TeamId, forked_it: bool },
    /// The thread's share is complete.
    TeamEnd { team: TeamId, forked_it: bool },
    /// The team is joined. `begun` threads had a share, and `came` others than this one have completed it.
    Joined { team: TeamId, begun: u32, came: u32 },
    /// The region that was entered last is a barrier of the thread's team: a call begins with it.
    BarrierBegin { region: u32, depth: usize },
    /// All threads of the team have come to the barrier.
    Barrier(TeamBarrier),
}

impl Fact {
    /// The region of the outermost call that begins with this fact, if one does.
    pub fn begins_call(&self) -> Option<u32> {
        match *self {
            Self::Enter { region, begins_call: true } | Self::CallBegin { region, .. } => Some(region),
            _ => None,
        }
    }
}

/// What the end of a collective reports about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) struct CollectiveEnd {
    pub kind: Operation,
    pub root: Option<u32>,
    /// Number of bytes that the rank sent and received.
    pub sent: u64,
    pub received: u64,
}
