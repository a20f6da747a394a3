//! The state of one location while its events are processed.

use super::collectives::CollectiveId;
use super::eager_limits::{Came, Sent};
use super::event_reader::polls_again;
use super::ledger::Ledger;
use super::messages::MessageId;
use super::paths;
use super::teams::TeamWait;

/// A region that was entered and not left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub region: u32,
    pub entered: i64,
    pub path: u32,
}

impl Frame {
    pub fn left(&self, location: u32, now: i64) -> super::RegionExit {
        super::RegionExit { location, region: self.region, entered_ns: self.entered, left_ns: now }
    }
}

/// An open MPI call: the outermost one.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub region: u32,
    pub path: u32,
    pub entered: i64,
    /// How the location came to MPI for this call.
    pub came: Came,
    /// Number of regions that are open around it; the call ends when the stack is back at this depth. `None` if no region surrounds the communication.
    pub depth: Option<usize>,
    /// Messages that it received or probed.
    pub received: Vec<MessageId>,
    pub probed: Vec<MessageId>,
    /// Messages whose receiver the sender may have had to wait for.
    pub sent: Vec<MessageId>,
    /// Standard sends that it made, or whose completion it saw: they may show an eager limit.
    pub observed: Vec<Sent>,
    /// Collectives that it completed, each with this location's part of it.
    pub collectives: Vec<(CollectiveId, usize)>,
    /// The collective that it is, if it is a blocking one.
    pub blocking: Option<(CollectiveId, usize)>,
    pub begun: Option<i64>,
    pub left: i64,
    /// Whether it polled without success.
    pub unsuccessful: bool,
    pub announced: bool,
    /// Whether it posted an operation that ends later.
    pub posted: bool,
    /// Whether it needs no more of the noise of those that it exchanged messages with.
    pub knows_noise: bool,
    /// What it waits for, if it is a wait in a team of threads.
    pub team: Option<TeamWait>,
    /// Whether it is the first thing that the location does: the runtime made the thread for it.
    pub is_first: bool,
}

impl Call {
    pub fn new(region: u32, path: u32, entered: i64, depth: Option<usize>) -> Self {
        Self {
            region,
            path,
            entered,
            came: Came { entered, before: i64::MIN },
            depth,
            received: Vec::new(),
            probed: Vec::new(),
            sent: Vec::new(),
            observed: Vec::new(),
            collectives: Vec::new(),
            blocking: None,
            begun: None,
            left: entered,
            unsuccessful: false,
            announced: false,
            posted: false,
            knows_noise: false,
            team: None,
            is_first: false,
        }
    }

    /// Whether it received a message, or completed a collective that began earlier.
    pub fn completes(&self) -> bool {
        !self.received.is_empty() || !self.collectives.is_empty()
    }

    /// Whether it posted operations, and did nothing else.
    fn only_posts(&self) -> bool {
        let nothing = self.received.is_empty() && self.observed.is_empty() && self.sent.is_empty();
        self.posted && nothing && self.collectives.is_empty() && self.blocking.is_none()
    }
}

/// What remains of a call that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastCall {
    came: Came,
    entered: i64,
    left: i64,
    only_posts: bool,
}

impl From<&Call> for LastCall {
    fn from(call: &Call) -> Self {
        Self { came: call.came, entered: call.entered, left: call.left, only_posts: call.only_posts() }
    }
}

/// The operation of a request.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// A message that was sent, and whose sender may wait for its receiver.
    Sent(MessageId),
    /// A receive that was matched with its message when it was posted.
    Receiving(MessageId),
    /// A receive not matched yet, because its sender is unknown, with the time at which it was posted, and the delay and the noise until then.
    Posted(i64, Vec<i64>, Vec<i64>),
    /// A collective that the location entered.
    Entered(CollectiveId, usize),
    /// A collective whose communicator was not known yet, and when it began.
    Begun(i64, Vec<i64>),
}

/// Why a location is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// The message was not sent yet.
    Send(MessageId),
    /// The send may have had to wait for its receiver.
    Receiver(MessageId),
    /// Another location's noise until the end of the call is not known yet.
    Noise(u32),
    /// Other ranks have not entered yet.
    Ranks(CollectiveId),
    /// The team was not forked yet, or others have not come to its join.
    Team,
}

/// Repeated unsuccessful polls: together with the one that succeeds they wait as a blocking call does.
#[derive(Clone, Debug)]
pub(super) struct Polling {
    pub since: i64,
    /// Noise since then, by lane.
    pub noise: Vec<i64>,
    /// When the last of them ended, its duration, and the noise until then.
    pub left: i64,
    pub length: i64,
    pub noise_by_then: i64,
}

/// One location.
#[derive(Debug)]
pub(super) struct LocationState {
    pub rank: u32,
    pub first: Option<i64>,
    pub now: i64,
    pub stack: Vec<Frame>,
    pub call: Option<Call>,
    pub blocked: Option<Blocked>,
    /// Whether it is in the engine's queue.
    pub queued: bool,
    pub ended: bool,
    /// Whether it left `MPI_Init`, and `MPI_Finalize`.
    pub initialized: bool,
    pub finalized: bool,
    pub polling: Option<Polling>,
    pub last: Option<LastCall>,
    /// Since when it has waited for its team, if it did nothing else since.
    pub idle_since: Option<i64>,
    /// Senders that wait to see whether this location receives, each with the end of its call.
    pub watchers: Vec<(u32, i64)>,
    pub ledger: Ledger,
    /// Time in calls: in all, and in those that begin or end MPI.
    pub in_calls: i64,
    pub in_begin_and_end: i64,
    /// Noise that struck outside of calls.
    pub noise_outside: i64,
}

impl LocationState {
    pub fn new(rank: u32, sources: usize) -> Self {
        Self {
            rank,
            first: None,
            now: 0,
            stack: Vec::new(),
            call: None,
            blocked: None,
            // All locations begin in the queue.
            queued: true,
            ended: false,
            initialized: false,
            finalized: false,
            polling: None,
            last: None,
            idle_since: None,
            watchers: Vec::new(),
            ledger: Ledger::new(sources),
            in_calls: 0,
            in_begin_and_end: 0,
            noise_outside: 0,
        }
    }

    /// Time outside of calls, without the noise that struck there.
    pub fn work(&self) -> i64 {
        let run = self.first.map_or(0, |first| self.now - first);
        (run - self.in_calls - self.noise_outside).max(0)
    }

    /// Begins a call.
    pub fn begin_call(&mut self, call: Call) {
        let came = match self.last {
            Some(last)
                if last.only_posts && polls_again(call.entered - last.left, last.left - last.entered) =>
            {
                last.came
            }
            last => Came { entered: call.entered, before: last.map_or(i64::MIN, |last| last.left) },
        };
        self.call = Some(Call { came, ..call });
    }

    /// Its current path in the program.
    pub fn path(&self) -> u32 {
        match &self.call {
            Some(call) => call.path,
            None => self.stack.last().map_or(paths::ROOT, |frame| frame.path),
        }
    }
}
