//! One location while its events are gone through.

use super::collectives::CollectiveId;
use super::ledger::Ledger;
use super::messages::MessageId;
use super::paths;

/// A region that was entered and not left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub region: u32,
    pub entered: i64,
    pub path: u32,
}

impl Frame {
    pub fn left(&self, location: u32, now: i64) -> super::Stayed {
        super::Stayed { location, region: self.region, entered_ns: self.entered, left_ns: now }
    }
}

/// A call of the MPI that goes on: the outermost.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub region: u32,
    pub path: u32,
    pub entered: i64,
    /// How many regions are open around it; it ends when so many are again. `None` where no region stands around what was communicated.
    pub depth: Option<usize>,
    /// Messages that it received or looked at.
    pub received: Vec<MessageId>,
    pub probed: Vec<MessageId>,
    /// Messages whose receiver the sender may have had to wait for.
    pub sent: Vec<MessageId>,
    /// Collectives that it completed, each with this location's part of it.
    pub collectives: Vec<(CollectiveId, usize)>,
    /// The one that it is, if it is a blocking one.
    pub blocking: Option<(CollectiveId, usize)>,
    pub begun: Option<i64>,
    pub left: i64,
    /// It polled, and nothing was there.
    pub in_vain: bool,
    pub announced: bool,
}

impl Call {
    pub fn new(region: u32, path: u32, entered: i64, depth: Option<usize>) -> Self {
        Self {
            region,
            path,
            entered,
            depth,
            received: Vec::new(),
            probed: Vec::new(),
            sent: Vec::new(),
            collectives: Vec::new(),
            blocking: None,
            begun: None,
            left: entered,
            in_vain: false,
            announced: false,
        }
    }
}

/// What a request stands for.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// A message that was sent, and for whose receiver its sender may wait.
    Sent(MessageId),
    /// A receive that took its message's turn when it was posted.
    Receiving(MessageId),
    /// One that did not, for it was not known yet from whom it will receive; and when it was posted.
    Posted(i64, Vec<i64>),
    /// A collective.
    Entered(CollectiveId, usize),
    /// One of which it was not known where, and when it began.
    Begun(i64, Vec<i64>),
}

/// Why a location cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// The message has not been sent.
    Send(MessageId),
    /// The message may have had to wait for its receiver.
    Receiver(MessageId),
    /// Others have yet to come.
    Ranks(CollectiveId),
}

/// Calls that asked again and again and found nothing: together with the one that finds something they wait as a blocking call does.
#[derive(Clone, Debug)]
pub(super) struct Polling {
    pub since: i64,
    /// Noise since then, by lane.
    pub noise: Vec<i64>,
    /// When the last of them ended, how long it took, and the noise by then.
    pub left: i64,
    pub length: i64,
    pub noise_by_then: i64,
}

/// A location.
#[derive(Debug)]
pub(super) struct Place {
    pub rank: u32,
    pub first: Option<i64>,
    pub now: i64,
    pub stack: Vec<Frame>,
    pub call: Option<Call>,
    pub blocked: Option<Blocked>,
    /// It stands in the engine's queue.
    pub queued: bool,
    pub ended: bool,
    /// It left `MPI_Init`, and `MPI_Finalize`.
    pub initialized: bool,
    pub finalized: bool,
    pub polling: Option<Polling>,
    /// Senders that watch whether this one receives, each with the end of its call.
    pub watchers: Vec<(u32, i64)>,
    pub ledger: Ledger,
}

impl Place {
    pub fn new(rank: u32, sources: usize) -> Self {
        Self {
            rank,
            first: None,
            now: 0,
            stack: Vec::new(),
            call: None,
            blocked: None,
            // All begin there.
            queued: true,
            ended: false,
            initialized: false,
            finalized: false,
            polling: None,
            watchers: Vec::new(),
            ledger: Ledger::new(sources),
        }
    }

    /// Where in the program it is.
    pub fn path(&self) -> u32 {
        match &self.call {
            Some(call) => call.path,
            None => self.stack.last().map_or(paths::ROOT, |frame| frame.path),
        }
    }
}
