//! What an event means, once it is known which request, message and collective it is about.

use quell_recording::mpi::Operation;

use super::message_matching::MessageKey;
use crate::warning::track::UndefinedName;

/// Something that began with one event and ends with another: what a request stands for. No two of a run are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::track) struct OperationId(pub u64);

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) struct CollectivePart {
    pub comm: u32,
    /// Which of the communicator's collectives it is, from 0: the same for all ranks that take part.
    pub number: u64,
    /// The rank's place among all who take part in the communicator's collectives.
    pub place: u32,
}

/// A fact, and when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) struct Timed {
    /// In ns on the archive's clock. Times of a location never fall.
    pub time_ns: u64,
    pub fact: Fact,
}

/// What happened at a location. An operation of `None` blocks, or began where no event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) enum Fact {
    /// A region begins; with it the outermost call of the MPI, if `begins_call`.
    Enter { region: u32, begins_call: bool },
    /// A region ends, and those that were left open in it: `closed` in all.
    Leave { region: u32, closed: usize },
    /// A region ends that never began.
    NeverEntered { region: u32 },
    /// So much noise of a source had struck the thread by now.
    Noise { source: u32, total_ns: u64 },
    /// The clock goes back. The event's time is taken to be the earlier one's.
    ClockBackwards { from_ns: u64, to_ns: u64 },
    /// The innermost region turns out to be a call, which began where the region did; `depth` regions are open around it. If `depth` is
    /// `None`, a call begins now that no region stands around.
    CallBegin { region: u32, depth: Option<usize> },
    /// The call ends. `in_vain` if it polled, and nothing was there.
    CallEnd { in_vain: bool },
    /// The event names something that the archive does not define.
    Undefined(UndefinedName),
    /// A message is handed over.
    Send { operation: Option<OperationId>, message: Option<MessageKey>, bytes: u64 },
    /// A non-blocking send is complete.
    SendDone { operation: Option<OperationId> },
    /// A non-blocking receive begins. Its message is known if it ends soon enough, or is one of a known sender and tag.
    ReceivePosted { operation: OperationId, message: Option<MessageKey> },
    /// A receive is complete.
    Received { operation: Option<OperationId>, message: Option<MessageKey>, bytes: u64 },
    /// A message was seen, which the next receive on its channel will take.
    Probed { message: Option<MessageKey> },
    /// A request was given up.
    Cancelled { operation: Option<OperationId> },
    /// A blocking collective begins.
    CollectiveBegin,
    /// A non-blocking collective begins.
    CollectivePosted { operation: OperationId, part: Option<CollectivePart> },
    /// A collective is complete. Its root is a place among its ranks.
    Collective { operation: Option<OperationId>, part: Option<CollectivePart>, ends: CollectiveEnd },
}

impl Fact {
    /// The region of the outermost call that begins with it, if one does.
    pub fn begins_call(&self) -> Option<u32> {
        match *self {
            Self::Enter { region, begins_call: true } | Self::CallBegin { region, .. } => Some(region),
            _ => None,
        }
    }
}

/// What the end of a collective says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) struct CollectiveEnd {
    pub kind: Operation,
    pub root: Option<u32>,
    /// Bytes that the rank sent and received.
    pub sent: u64,
    pub received: u64,
}
