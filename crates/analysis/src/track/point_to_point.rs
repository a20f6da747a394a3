//! What a location sends and receives.

use quell_recording::mpi::{BLOCKING, Run, UNKNOWN, What};

use super::Watch;
use super::engine::Engine;
use super::messages::Channel;
use super::place::{Place, Received, Request};
use crate::warning::track::UndefinedName;

/// Messages of more bytes may have to wait for their receivers: no MPI has a smaller limit for what it sends at once.
const SURELY_EAGER: u64 = 4096;
/// How many events ahead it is looked for the end of a receive that was posted earlier.
const LOOK_AHEAD: usize = 512;
/// Of more receives that wait for no one in particular it is not known whose turn it is.
const MOST_POSTED: usize = 1024;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    pub(super) fn channel(
        &mut self,
        location: u32,
        (comm, peer, tag): (u32, u32, u32),
        sends: bool,
    ) -> Option<Channel> {
        let here = self.places[location as usize].rank;
        let comm_of = self.definitions.comms.get(comm as usize);
        let there = comm_of.and_then(|comm| comm.peers(here).get(peer as usize).copied());
        let Some(there) = there else {
            self.undefined(location, UndefinedName::Peer);
            return None;
        };
        let (from, to) = if sends { (here, there) } else { (there, here) };
        Some(Channel { comm, from, to, tag })
    }

    pub(super) fn send(&mut self, location: u32, to: (u32, u32, u32), bytes: u64, request: u64) {
        self.open_call(location);
        let Some(channel) = self.channel(location, to, true) else { return };
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        let synchronous = self.kinds.get(call.region as usize).is_some_and(|kind| kind.synchronous);
        let held = (synchronous || bytes > SURELY_EAGER) && self.of_rank.contains_key(&channel.to);
        let (id, waited) =
            self.messages.send(channel, bytes, (location, place.now), &place.ledger.accumulated, held);
        if held && request == BLOCKING {
            call.sent.push(id);
        } else if held {
            place.requests.insert(request, Request::Sent(id));
        }
        self.wake(waited);
    }

    pub(super) fn post(&mut self, location: u32, from: (u32, u32, u32), request: u64) {
        self.open_call(location);
        let known = from.0 != UNKNOWN && from.1 != UNKNOWN && from.2 != UNKNOWN;
        let channel = if known { self.channel(location, from, false) } else { None };
        if let Some(channel) = channel {
            self.give_turns(location, from, channel, request);
        }
        let place = &mut self.places[location as usize];
        let (now, accumulated) = (place.now, &place.ledger.accumulated);
        let (state, waited) = match channel {
            Some(channel) => {
                let (id, waited) = self.messages.receive(channel, now, accumulated);
                (Request::Receiving(id), waited)
            }
            None => {
                if place.posted.len() < MOST_POSTED {
                    place.posted.push(request);
                }
                (Request::Posted(now, accumulated.clone()), None)
            }
        };
        place.requests.insert(request, state);
        self.wake(waited);
    }

    pub(super) fn receive(&mut self, location: u32, from: (u32, u32, u32), request: u64) {
        self.open_call(location);
        let Some(channel) = self.channel(location, from, false) else { return };
        self.give_turns(location, from, channel, request);
        let request = self.take_request(location, request);
        let messages = &self.messages;
        let known = Place::receiving(request, |id| messages.get(id).channel, channel);
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        let (id, waited) = match known {
            Received::Message(id) => (id, None),
            Received::Other(other) => {
                self.messages.give_back(other);
                self.messages.receive(channel, call.entered, &place.ledger.accumulated)
            }
            Received::Posted(at, accumulated) => self.messages.receive(channel, at, &accumulated),
            Received::Unknown => self.messages.receive(channel, call.entered, &place.ledger.accumulated),
        };
        call.received.push(id);
        call.found = true;
        self.wake(waited);
    }

    /// Receives from anybody take a channel's messages in the order in which they were posted, but may be found complete in another: those
    /// that were posted before this one, and will be found to have received from the same, come first.
    pub(super) fn give_turns(
        &mut self,
        location: u32,
        from: (u32, u32, u32),
        channel: Channel,
        request: u64,
    ) {
        let place = &mut self.places[location as usize];
        let own = place.posted.iter().position(|posted| *posted == request);
        let at = own.unwrap_or(place.posted.len());
        if own.is_some() {
            place.posted.remove(at);
        }
        if at == 0 {
            return;
        }
        self.see_ahead(location, LOOK_AHEAD);
        let place = &self.places[location as usize];
        let mut earlier: Vec<u64> = place.posted[..at].to_vec();
        let ahead = place.events[place.next..].iter().take(LOOK_AHEAD);
        let mut turns = Vec::new();
        for event in ahead.map(|event| event.what) {
            if earlier.is_empty() {
                break;
            }
            let What::Recv { comm, from: peer, tag, request, .. } = event else { continue };
            let Some(found) = earlier.iter().position(|posted| *posted == request) else { continue };
            earlier.remove(found);
            if (comm, peer, tag) == from {
                turns.push(request);
            }
        }
        for request in place.posted.clone().into_iter().take(at).filter(|request| turns.contains(request)) {
            let place = &mut self.places[location as usize];
            let Some(Request::Posted(posted, accumulated)) = place.requests.get(&request).cloned() else {
                continue;
            };
            let (id, waited) = self.messages.receive(channel, posted, &accumulated);
            place.requests.insert(request, Request::Receiving(id));
            place.posted.retain(|posted| *posted != request);
            self.wake(waited);
        }
    }

    pub(super) fn probed(&mut self, location: u32, from: (u32, u32, u32)) {
        self.open_call(location);
        let Some(channel) = self.channel(location, from, false) else { return };
        let message = self.messages.next(channel);
        if let Some(call) = &mut self.places[location as usize].call {
            call.probed.extend(message);
            call.found = true;
        }
    }

    pub(super) fn cancelled(&mut self, location: u32, request: u64) {
        self.places[location as usize].posted.retain(|posted| *posted != request);
        match self.take_request(location, request) {
            Some(Request::Receiving(id)) => self.messages.give_back(id),
            Some(Request::Sent(id)) => self.messages.release(id),
            _ => {}
        }
    }
}
