//! One thread of a rank: its events, the events read ahead, the open regions and call, and its requests.

use std::collections::VecDeque;

use quell_recording::mpi::{BLOCKING, Event, Run, UNKNOWN, What};
use rustc_hash::FxHashMap;

use super::calls::CallKind;
use super::fact::{CollectivePart, Fact, OperationId, Timed};
use super::message_matching::MessageKey;
use super::teams::Member;

/// Maximum number of events ahead in which the end of a posted operation is searched for.
const LOOK_AHEAD: usize = 4096;

/// A run, and the number of its events that were read.
#[derive(Debug)]
pub(super) struct Input<'a, R: Run + ?Sized> {
    pub run: &'a mut R,
    pub read: u64,
}

/// How a posted operation ends, as far as it matters at its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// It received a message from this rank, with this tag.
    Received { comm: u32, from: u32, tag: u32 },
    /// It was a collective on this communicator.
    Collective { comm: u32 },
    /// It was cancelled.
    Cancelled,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub operation: OperationId,
    /// Its number among the operations that the thread posted and whose ends are searched for ahead.
    pub posted: Option<u64>,
    pub kind: RequestKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RequestKind {
    Send,
    Receive(Option<MessageKey>),
    Collective(Option<CollectivePart>),
}

/// The outermost open call.
#[derive(Clone, Copy, Debug)]
struct OpenCall {
    region: u32,
    /// Number of regions that are open around it; `None` if no region surrounds the communication.
    depth: Option<usize>,
    /// Whether it began, completed or probed an operation.
    did: bool,
    /// Whether it is a barrier of the thread's team.
    barrier: bool,
}

/// A region that was entered and not left.
#[derive(Clone, Copy, Debug)]
struct OpenRegion {
    region: u32,
    /// Whether no region was entered and nothing was communicated in it yet.
    fresh: bool,
}

/// One thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub location: usize,
    pub rank: u32,
    events: Vec<Event>,
    next: usize,
    more: bool,
    pub damage: Option<String>,
    /// Posted operations without an end among the events that were read: by request, the number among all that were posted.
    unended: FxHashMap<u64, u64>,
    /// Number of receives and collectives that were posted in the events that were read, and in those that were processed.
    posted_ahead: u64,
    posted: u64,
    outcomes: FxHashMap<u64, Outcome>,
    pub now_ns: u64,
    regions: Vec<OpenRegion>,
    call: Option<OpenCall>,
    /// The barrier of a team in which it is, during a call of MPI within.
    suspended: Option<OpenCall>,
    pub requests: FxHashMap<u64, Request>,
    pub member: Member,
    pub facts: VecDeque<Timed>,
}

impl Thread {
    pub fn new(location: usize, rank: u32) -> Self {
        Self {
            location,
            rank,
            events: Vec::new(),
            next: 0,
            more: true,
            damage: None,
            unended: FxHashMap::default(),
            posted_ahead: 0,
            posted: 0,
            outcomes: FxHashMap::default(),
            now_ns: 0,
            regions: Vec::new(),
            call: None,
            suspended: None,
            requests: FxHashMap::default(),
            member: Member::default(),
            facts: VecDeque::new(),
        }
    }

    /// The next event, without removing it.
    pub fn peek<R: Run + ?Sized>(&mut self, input: &mut Input<'_, R>) -> Option<Event> {
        while self.next == self.events.len() {
            if !self.more {
                self.events = Vec::new();
                self.next = 0;
                return None;
            }
            self.read_more(input);
        }
        Some(self.events[self.next])
    }

    pub fn advance(&mut self) {
        self.next += 1;
    }

    fn read_more<R: Run + ?Sized>(&mut self, input: &mut Input<'_, R>) {
        self.events.drain(..self.next);
        self.next = 0;
        let before = self.events.len();
        match input.run.read(self.location, &mut self.events) {
            Ok(more) => self.more = more,
            Err(damage) => {
                self.more = false;
                self.damage = Some(damage.0);
            }
        }
        let of_program = |event: &&Event| !matches!(event.what, What::Noise { .. });
        input.read += self.events[before..].iter().filter(of_program).count() as u64;
        for event in before..self.events.len() {
            self.look_at(self.events[event].what);
        }
    }

    /// Records a posted operation, and how it ends.
    fn look_at(&mut self, what: What) {
        let (request, outcome) = match what {
            What::RecvPosted { request, .. } | What::CollectivePosted { request, .. } => {
                if request != BLOCKING {
                    self.unended.insert(request, self.posted_ahead);
                }
                self.posted_ahead += 1;
                return;
            }
            What::Recv { comm, from, tag, request, .. } => (request, Outcome::Received { comm, from, tag }),
            What::Collective { comm, request, .. } => (request, Outcome::Collective { comm }),
            What::Cancelled { request } => (request, Outcome::Cancelled),
            _ => return,
        };
        if let Some(posted) = self.unended.remove(&request) {
            self.outcomes.insert(posted, outcome);
        }
    }

    /// Posts an operation: returns its number among all that the thread posts, and how it ends, if that is soon.
    pub fn post<R: Run + ?Sized>(&mut self, input: &mut Input<'_, R>) -> (u64, Option<Outcome>) {
        let posted = self.posted;
        self.posted += 1;
        loop {
            if let Some(outcome) = self.outcomes.remove(&posted) {
                return (posted, Some(outcome));
            }
            if !self.more || self.events.len() - self.next >= LOOK_AHEAD {
                return (posted, None);
            }
            self.read_more(input);
        }
    }

    /// Removes a request of the thread that ends.
    pub fn take_request(&mut self, request: u64) -> Option<Request> {
        let taken = self.requests.remove(&request)?;
        if let Some(posted) = taken.posted {
            self.outcomes.remove(&posted);
        }
        Some(taken)
    }

    pub fn push(&mut self, fact: Fact) {
        self.facts.push_back(Timed { time_ns: self.now_ns, fact });
    }

    pub fn enter(&mut self, region: u32, kind: CallKind) {
        if let Some(open) = self.regions.last_mut() {
            open.fresh = false;
        }
        if kind.mpi && self.call.is_some_and(|call| call.barrier) {
            // A task that the thread runs while it waits in the barrier: what it waits for there is the call's.
            self.suspended = self.call.take();
            self.push(Fact::CallEnd { unsuccessful: false });
        }
        let begins_call = self.call.is_none() && kind.mpi;
        let barrier = self.call.is_none() && kind.team_barrier && self.member.in_team();
        let depth = self.regions.len();
        if begins_call || barrier {
            self.call = Some(OpenCall { region, depth: Some(depth), did: false, barrier });
        }
        self.regions.push(OpenRegion { region, fresh: true });
        self.push(Fact::Enter { region, begins_call });
        if barrier {
            self.push(Fact::BarrierBegin { region, depth });
        }
    }

    pub fn in_call(&self) -> bool {
        self.call.is_some()
    }

    /// Whether a barrier of the thread's team ends with this region.
    pub fn ends_barrier(&self, region: u32) -> bool {
        let Some(depth) = self.call.filter(|call| call.barrier).and_then(|call| call.depth) else {
            return false;
        };
        self.regions.iter().rposition(|open| open.region == region).is_some_and(|at| depth >= at)
    }

    pub fn leave(&mut self, region: u32, kind_of: impl Fn(u32) -> CallKind) {
        let Some(at) = self.regions.iter().rposition(|open| open.region == region) else {
            return self.push(Fact::NeverEntered { region });
        };
        let closed = self.regions.len() - at;
        self.regions.truncate(at);
        self.push(Fact::Leave { region, closed });
        while self.call.is_some_and(|call| call.depth.is_some_and(|depth| depth >= at)) {
            self.end_call(&kind_of);
        }
    }

    /// Begins the call of a communication: the open call, a region that was entered for it alone, whatever its name, or a call without region.
    pub fn begin_call(&mut self) {
        if self.call.is_some() {
            return;
        }
        let depth = self.regions.len();
        let open = self.regions.last().copied().filter(|open| open.fresh && depth > 1);
        let (region, depth) = open.map_or((UNKNOWN, None), |open| (open.region, Some(depth - 1)));
        self.call = Some(OpenCall { region, depth, did: false, barrier: false });
        self.push(Fact::CallBegin { region, depth });
    }

    /// Records that the call began, completed or probed an operation.
    pub fn did(&mut self) {
        if let Some(call) = &mut self.call {
            call.did = true;
        }
    }

    /// Ends a call without a region.
    pub fn end_bare_call(&mut self, kind_of: impl Fn(u32) -> CallKind) {
        if self.call.is_some_and(|call| call.depth.is_none()) {
            self.end_call(&kind_of);
        }
    }

    fn end_call(&mut self, kind_of: &impl Fn(u32) -> CallKind) {
        if let Some(call) = self.call.take() {
            self.push(Fact::CallEnd { unsuccessful: !call.did && kind_of(call.region).polls });
        }
        if let Some(OpenCall { region, depth: Some(depth), .. }) = self.suspended {
            self.call = self.suspended.take();
            self.push(Fact::BarrierBegin { region, depth });
        }
    }
}
