//! Sends and receives of a location.

use quell_recording::mpi::Run;

use super::Watch;
use super::eager_limits::Sent;
use super::engine::Engine;
use super::event_reader::{MessageKey, OperationId};
use super::messages::End;
use super::place::Request;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    pub(super) fn send(
        &mut self,
        location: u32,
        operation: Option<OperationId>,
        message: Option<MessageKey>,
        bytes: u64,
    ) {
        let Some(message) = message else { return };
        let Some(call) = &self.places[location as usize].call else { return };
        let (kind, entered) = (self.events.kind(call.region), call.entered);
        let to = self.of_rank.get(&message.channel.to).copied();
        let way = to.map(|to| self.way(location, to));
        let standard = way.filter(|_| !kind.synchronous && !kind.buffered);
        let held = (kind.synchronous && to.is_some())
            || standard.is_some_and(|way| self.limits.may_wait(way, bytes));
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        call.posted |= operation.is_some();
        let (id, waited) =
            self.messages.send(message, bytes, (location, place.now), &place.ledger.accumulated, held);
        self.messages.keep_noise(id, End::Send, &place.ledger.local);
        if let (Some(evidence), Some(way), true) = (&mut self.evidence, standard, to != Some(location)) {
            let sent = Sent { key: message, way, bytes, entered };
            match operation {
                Some(operation) => drop(evidence.pending.insert(operation, sent)),
                None => call.observed.push(sent),
            }
        }
        if held {
            match operation {
                Some(operation) => drop(self.requests.insert(operation, Request::Sent(id))),
                None => call.sent.push(id),
            }
        }
        waited.into_iter().for_each(|location| self.wake(location));
    }

    pub(super) fn send_done(&mut self, location: u32, operation: Option<OperationId>) {
        let observed = operation
            .zip(self.evidence.as_mut())
            .and_then(|(operation, evidence)| evidence.pending.remove(&operation));
        if let (Some(observed), Some(call)) = (observed, &mut self.places[location as usize].call) {
            call.observed.push(observed);
        }
        let sent = operation.and_then(|operation| self.requests.remove(&operation));
        if let (Some(Request::Sent(id)), Some(call)) = (sent, &mut self.places[location as usize].call) {
            call.sent.push(id);
        }
    }

    pub(super) fn post(&mut self, location: u32, operation: OperationId, message: Option<MessageKey>) {
        let place = &mut self.places[location as usize];
        let (now, accumulated) = (place.now, &place.ledger.accumulated);
        place.call.iter_mut().for_each(|call| call.posted = true);
        let (state, waited) = match message {
            Some(message) => {
                let (id, waited) = self.messages.receive(message, now, accumulated);
                self.messages.keep_noise(id, End::Receive, &place.ledger.local);
                let came = place.call.as_ref().map(|call| call.came);
                self.evidence.iter_mut().for_each(|evidence| evidence.came(message, came));
                (Request::Receiving(id), waited)
            }
            None => (Request::Posted(now, accumulated.clone(), place.ledger.local.clone()), None),
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
        let came = operation.is_none().then_some(call.came);
        let (begun, accumulated, local) = match request {
            Some(Request::Receiving(id)) if self.messages.get(id).key == message => {
                call.received.push(id);
                return;
            }
            Some(Request::Posted(at, accumulated, local)) => (at, accumulated, local),
            other => {
                if let Some(Request::Receiving(other)) = other {
                    self.messages.give_back(other);
                }
                let ledger = &place.ledger;
                (call.entered, ledger.accumulated.clone(), ledger.local_before_call())
            }
        };
        let (id, waited) = self.messages.receive(message, begun, &accumulated);
        self.messages.keep_noise(id, End::Receive, &local);
        call.received.push(id);
        self.evidence.iter_mut().for_each(|evidence| evidence.came(message, came));
        self.wake(waited);
    }

    pub(super) fn probed(&mut self, location: u32, message: Option<MessageKey>) {
        let (Some(message), Some(call)) = (message, &mut self.places[location as usize].call) else { return };
        call.probed.push(self.messages.probe(message));
    }

    pub(super) fn cancelled(&mut self, operation: Option<OperationId>) {
        if let (Some(operation), Some(evidence)) = (operation, &mut self.evidence) {
            evidence.pending.remove(&operation);
        }
        match operation.and_then(|operation| self.requests.remove(&operation)) {
            Some(Request::Receiving(id)) => self.messages.give_back(id),
            Some(Request::Sent(id)) => self.messages.release(id),
            _ => {}
        }
    }
}
