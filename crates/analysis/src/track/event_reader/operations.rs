//! Communication: requests, the messages of receives, and the collectives of calls.

use quell_recording::mpi::{BLOCKING, Run, UNKNOWN, What};

use super::EventReader;
use super::communicators::{Peer, channel, root};
use super::fact::{CollectiveEnd, CollectivePart, Fact, OperationId};
use super::message_matching::{Channel, MessageKey};
use super::thread::{Outcome, Request, RequestKind};
use crate::warning::track::UndefinedName;

impl<R: Run + ?Sized> EventReader<'_, R> {
    /// Processes one event of communication.
    pub(super) fn communicates(&mut self, location: usize, what: What) {
        let fact = match what {
            What::Send { comm, to, tag, bytes, request } => {
                let channel = self.channel(location, (comm, Peer::To(to), tag));
                let message = channel.map(|channel| self.channels.send(channel));
                let begins = request != BLOCKING;
                let operation = begins.then(|| self.begin(location, request, None, RequestKind::Send));
                Fact::Send { operation, message, bytes }
            }
            What::SendDone { request } => Fact::SendDone {
                operation: self.take_request(location, request).map(|ended| ended.operation),
            },
            What::RecvPosted { comm, from, tag, request } => self.post(location, (comm, from, tag), request),
            What::Recv { comm, from, tag, bytes, request } => {
                let channel = self.channel(location, (comm, Peer::From(from), tag));
                let ended = self.take_request(location, request);
                let message = channel.map(|channel| self.received(channel, ended));
                Fact::Received { operation: ended.map(|ended| ended.operation), message, bytes }
            }
            What::Probed { comm, from, tag } => {
                // It sees the message that a receive in its place would match (MPI 4.0, 3.8.1).
                let channel = self.channel(location, (comm, Peer::From(from), tag));
                Fact::Probed { message: channel.map(|channel| self.channels.probe(channel)) }
            }
            What::Cancelled { request } => self.cancelled(location, request),
            What::CollectivePosted { comm, request } => self.post_collective(location, comm, request),
            What::Collective { operation, comm, root: reported, sent, received, request } => {
                let ends = CollectiveEnd {
                    kind: operation,
                    root: root(&self.definitions, comm, reported),
                    sent,
                    received,
                };
                self.collective(location, comm, request, ends)
            }
            What::CollectiveBegin => return self.threads[location].push(Fact::CollectiveBegin),
            // An unsuccessful test is recognised by a call that completes nothing, because not all tracers record it.
            What::Pending { .. }
            | What::Enter(_)
            | What::Leave(_)
            | What::Noise { .. }
            | What::Fork { .. }
            | What::TeamBegin
            | What::TeamEnd
            | What::Join => return,
        };
        self.threads[location].did();
        self.threads[location].push(fact);
    }

    /// The channel of a message; if the archive does not define it, adds [`Fact::Undefined`].
    fn channel(&mut self, location: usize, message: (u32, Peer, u32)) -> Option<Channel> {
        let thread = &mut self.threads[location];
        let channel = channel(&self.definitions, thread.rank, message);
        if channel.is_none() {
            thread.push(Fact::Undefined(UndefinedName::Peer));
        }
        channel
    }

    fn begin(
        &mut self,
        location: usize,
        request: u64,
        posted: Option<u64>,
        kind: RequestKind,
    ) -> OperationId {
        let operation = OperationId(self.operations);
        self.operations += 1;
        if request != BLOCKING {
            self.threads[location].requests.insert(request, Request { operation, posted, kind });
        }
        operation
    }

    /// Removes a request that ends: one of the thread, or of another thread of the rank.
    fn take_request(&mut self, location: usize, request: u64) -> Option<Request> {
        if request == BLOCKING {
            return None;
        }
        if let Some(own) = self.threads[location].take_request(request) {
            return Some(own);
        }
        let process = &self.processes[self.process_of[location]];
        process.locations.iter().find_map(|other| self.threads[*other as usize].take_request(request))
    }

    /// A receive is numbered when it is posted, in the channel of its later message: so receives from any source are in order with the
    /// others (MPI 4.0, 3.5). One that will be cancelled gets no number, because it matches nothing (3.8.4).
    fn post(&mut self, location: usize, (comm, from, tag): (u32, u32, u32), request: u64) -> Fact {
        let known = comm != UNKNOWN && from != UNKNOWN && tag != UNKNOWN;
        let (posted, outcome) = self.threads[location].post(&mut self.input);
        let asked = if known { self.channel(location, (comm, Peer::From(from), tag)) } else { None };
        let rank = self.threads[location].rank;
        let channel = match outcome {
            Some(Outcome::Cancelled) => None,
            Some(Outcome::Received { comm, from, tag }) => {
                channel(&self.definitions, rank, (comm, Peer::From(from), tag)).or(asked)
            }
            Some(Outcome::Collective { .. }) | None => asked,
        };
        let message = channel.map(|channel| self.channels.receive(channel));
        let operation = self.begin(location, request, Some(posted), RequestKind::Receive(message));
        Fact::ReceivePosted { operation, message }
    }

    /// The message of a receive that ends.
    fn received(&mut self, channel: Channel, ended: Option<Request>) -> MessageKey {
        match ended.map(|ended| ended.kind) {
            Some(RequestKind::Receive(Some(message))) if message.channel == channel => message,
            Some(RequestKind::Receive(Some(other))) => {
                self.channels.give_back(other);
                self.channels.receive(channel)
            }
            _ => self.channels.receive(channel),
        }
    }

    fn cancelled(&mut self, location: usize, request: u64) -> Fact {
        let ended = self.take_request(location, request);
        if let Some(Request { kind: RequestKind::Receive(Some(message)), .. }) = ended {
            self.channels.give_back(message);
        }
        Fact::Cancelled { operation: ended.map(|ended| ended.operation) }
    }

    /// Non-blocking collectives are ordered by their posts, among one another and with blocking ones (MPI 4.0, 6.12).
    fn post_collective(&mut self, location: usize, comm: u32, request: u64) -> Fact {
        let (posted, outcome) = self.threads[location].post(&mut self.input);
        let comm = match outcome {
            Some(Outcome::Collective { comm: known }) if comm == UNKNOWN => known,
            _ => comm,
        };
        let part = if comm == UNKNOWN { None } else { self.part(location, comm) };
        let operation = self.begin(location, request, Some(posted), RequestKind::Collective(part));
        Fact::CollectivePosted { operation, part }
    }

    fn collective(&mut self, location: usize, comm: u32, request: u64, ends: CollectiveEnd) -> Fact {
        let ended = self.take_request(location, request);
        let posted = ended.and_then(|ended| match ended.kind {
            RequestKind::Collective(part) => Some((ended.operation, part)),
            _ => None,
        });
        let part = posted.and_then(|(_, part)| part).or_else(|| self.part(location, comm));
        Fact::Collective { operation: posted.map(|(operation, _)| operation), part, ends }
    }

    /// Numbers the rank's next collective on a communicator. All threads of a rank call them in one order (MPI 4.0, 6.14).
    fn part(&mut self, location: usize, comm: u32) -> Option<CollectivePart> {
        let rank = self.threads[location].rank;
        let Some(place) = self.communicators.place(&self.definitions, comm, rank) else {
            self.threads[location].push(Fact::Undefined(UndefinedName::Communicator));
            return None;
        };
        let next = self.collectives.entry((rank, comm)).or_default();
        let number = *next;
        *next += 1;
        Some(CollectivePart { comm, number, place })
    }
}
