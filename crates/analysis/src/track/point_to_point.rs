//! Sends and receives of a location.

use quell_recording::mpi::Run;

use super::Watch;
use super::engine::Engine;
use super::event_reader::{MessageKey, OperationId};
use super::place::Request;

/// Sends of more bytes may have to wait for their receivers: no MPI has a smaller eager limit.
const SURELY_EAGER: u64 = 4096;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    pub(super) fn send(
        &mut self,
        location: u32,
        operation: Option<OperationId>,
        message: Option<MessageKey>,
        bytes: u64,
    ) {
        let Some(message) = message else { return };
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        let synchronous = self.events.kind(call.region).synchronous;
        let held = (synchronous || bytes > SURELY_EAGER) && self.of_rank.contains_key(&message.channel.to);
        let (id, waited) =
            self.messages.send(message, bytes, (location, place.now), &place.ledger.accumulated, held);
        if held {
            match operation {
                Some(operation) => drop(self.requests.insert(operation, Request::Sent(id))),
                None => call.sent.push(id),
            }
        }
        self.wake(waited);
    }

    pub(super) fn send_done(&mut self, location: u32, operation: Option<OperationId>) {
        let sent = operation.and_then(|operation| self.requests.remove(&operation));
        if let (Some(Request::Sent(id)), Some(call)) = (sent, &mut self.places[location as usize].call) {
            call.sent.push(id);
        }
    }

    pub(super) fn post(&mut self, location: u32, operation: OperationId, message: Option<MessageKey>) {
        let place = &mut self.places[location as usize];
        let (now, accumulated) = (place.now, &place.ledger.accumulated);
        let (state, waited) = match message {
            Some(message) => {
                let (id, waited) = self.messages.receive(message, now, accumulated);
                (Request::Receiving(id), waited)
            }
            None => (Request::Posted(now, accumulated.clone()), None),
        };
        self.requests.insert(operation, state);
        self.wake(waited);
    }

    pub(super) fn receive(
        &mut self,
        location: u32,
        operation: Option<OperationId>,
        message: Option<MessageKey>,
    ) {
        let request = operation.and_then(|operation| self.requests.remove(&operation));
        let Some(message) = message else { return };
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        let (begun, accumulated) = match request {
            Some(Request::Receiving(id)) if self.messages.get(id).key == message => {
                call.received.push(id);
                return;
            }
            Some(Request::Posted(at, accumulated)) => (at, accumulated),
            other => {
                if let Some(Request::Receiving(other)) = other {
                    self.messages.give_back(other);
                }
                (call.entered, place.ledger.accumulated.clone())
            }
        };
        let (id, waited) = self.messages.receive(message, begun, &accumulated);
        call.received.push(id);
        self.wake(waited);
    }

    pub(super) fn probed(&mut self, location: u32, message: Option<MessageKey>) {
        let sent = message.and_then(|message| self.messages.sent(message));
        if let Some(call) = &mut self.places[location as usize].call {
            call.probed.extend(sent);
        }
    }

    pub(super) fn cancelled(&mut self, operation: Option<OperationId>) {
        match operation.and_then(|operation| self.requests.remove(&operation)) {
            Some(Request::Receiving(id)) => self.messages.give_back(id),
            Some(Request::Sent(id)) => self.messages.release(id),
            _ => {}
        }
    }
}
