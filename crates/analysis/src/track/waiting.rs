//! The ends of calls: whether everything that they need has happened, and which locations wait.

use quell_recording::mpi::Run;

use super::Watch;
use super::engine::Engine;
use super::messages::MessageId;
use super::place::Blocked;

/// A shorter call was not made longer by noise of others.
pub(super) const SHORT_NS: i64 = 1_000;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    pub(super) fn close_call(&mut self, location: u32, unsuccessful: bool) {
        let place = &mut self.places[location as usize];
        if let Some(call) = &mut place.call {
            call.left = place.now;
            call.unsuccessful = unsuccessful;
            let (length, kind) = (call.left - call.entered, self.events.kind(call.region));
            place.in_calls += length;
            if kind.initializes || kind.finalizes {
                place.in_begin_and_end += length;
            }
        }
        self.end_call(location);
        self.notify_watchers(location);
    }

    /// Ends the call of a location, if everything that it needs has happened.
    pub(super) fn end_call(&mut self, location: u32) -> bool {
        let blocked = self.missing(location);
        self.places[location as usize].blocked = blocked;
        if blocked.is_some() {
            self.notify_of_block(location);
            return false;
        }
        let Some(call) = self.places[location as usize].call.take() else { return true };
        self.complete_call(location, &call);
        self.notify_watchers(location);
        true
    }

    /// What the call of a location still needs from others.
    pub(super) fn missing(&mut self, location: u32) -> Option<Blocked> {
        let place = &mut self.places[location as usize];
        let call = place.call.as_mut()?;
        if let Some(wait) = call.team {
            return (!self.teams.has_happened(wait, location)).then_some(Blocked::Team);
        }
        if let Some((id, part)) = call.blocking {
            if !call.announced {
                call.announced = true;
                let length = call.left - call.entered;
                let noise: Vec<i64> = (0..place.ledger.accounts())
                    .map(|account| place.ledger.noise_of_call(account, length))
                    .collect();
                let left = call.left;
                for waiting in self.collectives.leave(id, part, left, &noise) {
                    self.wake(Some(waiting));
                }
            }
            if !self.collectives.may_go(id, part, true, location) {
                return Some(Blocked::Ranks(id));
            }
        }
        let call = self.places[location as usize].call.as_ref()?;
        for (id, part) in &call.collectives {
            if !self.collectives.may_go(*id, *part, false, location) {
                return Some(Blocked::Ranks(*id));
            }
        }
        let call = self.places[location as usize].call.as_ref()?;
        let unsent = |id: &&MessageId| {
            let message = self.messages.get(**id);
            message.sent.is_none() && !message.lost
        };
        if let Some(id) = call.received.iter().find(unsent).copied() {
            self.messages.get_mut(id).receiver_waits = Some(location);
            return Some(Blocked::Send(id));
        }
        // Of several threads that probe a message, one waits.
        let waits = |id: &&MessageId| {
            self.messages.get(**id).prober_waits.is_none_or(|prober| prober == location) && unsent(id)
        };
        if let Some(id) = call.probed.iter().find(waits).copied() {
            self.messages.get_mut(id).prober_waits = Some(location);
            return Some(Blocked::Send(id));
        }
        let left = call.left;
        let Some(unreceived) = call.sent.iter().find(|id| self.messages.get(**id).begun.is_none()).copied()
        else {
            return self.missing_noise(location);
        };
        let to = self.of_rank.get(&self.messages.get(unreceived).key.channel.to).copied()?;
        let receiver = &mut self.places[to as usize];
        let gone_by = receiver.now > left && receiver.call.is_none();
        if to == location || receiver.ended || gone_by {
            // The sender continued without its receiver, so the message was sent eagerly.
            let call = self.places[location as usize].call.as_mut()?;
            call.sent.retain(|id| *id != unreceived);
            self.messages.release(unreceived);
            return self.missing(location);
        }
        receiver.watchers.push((location, left));
        self.messages.get_mut(unreceived).sender_waits = Some(location);
        Some(Blocked::Receiver(unreceived))
    }

    /// The location whose noise may explain why the call took longer than it should, if that noise is not known yet: it has not come to the end of
    /// the call, and nothing keeps it from coming there.
    fn missing_noise(&mut self, location: u32) -> Option<Blocked> {
        let call = self.places[location as usize].call.as_ref().filter(|call| !call.knows_noise)?;
        let (entered, left) = (call.entered, call.left);
        if left - entered < SHORT_NS {
            return None;
        }
        let senders = call.received.iter().chain(&call.probed).filter_map(|id| {
            let message = self.messages.get(*id);
            let (sender, at) = message.sent?;
            (at + self.transfer(message) > entered).then_some(sender)
        });
        let partners = self.partners(location, call).map(|(.., other)| other);
        let is_behind = |other: &u32| {
            let place = &self.places[*other as usize];
            *other != location && place.now < left && place.blocked.is_none() && !place.ended
        };
        let other = senders.chain(partners).find(is_behind)?;
        self.places[other as usize].watchers.push((location, left));
        Some(Blocked::Noise(other))
    }

    /// Wakes those that wait for the noise of this location: it may wait for one of them. Those that wait for its receives must stay, or two
    /// that wait for each other's would wake each other for ever.
    fn notify_of_block(&mut self, location: u32) {
        let watchers = std::mem::take(&mut self.places[location as usize].watchers);
        let for_noise = |(watcher, _): &(u32, i64)| {
            self.places[*watcher as usize].blocked == Some(Blocked::Noise(location))
        };
        let (woken, stay): (Vec<_>, Vec<_>) = watchers.into_iter().partition(for_noise);
        self.places[location as usize].watchers = stay;
        for (watcher, _) in woken {
            self.wake(Some(watcher));
        }
    }

    /// Wakes senders to check whether this location received their messages, or continued without.
    pub(super) fn notify_watchers(&mut self, location: u32) {
        let now = self.places[location as usize].now;
        if self.places[location as usize].watchers.is_empty() {
            return;
        }
        let (over, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.places[location as usize].watchers)
            .into_iter()
            .partition(|(_, left)| now >= *left);
        self.places[location as usize].watchers = stay;
        for (sender, _) in over {
            self.wake(Some(sender));
        }
    }

    pub(super) fn wake(&mut self, location: Option<u32>) {
        let Some(location) = location else { return };
        let place = &self.places[location as usize];
        if place.blocked.is_some() {
            self.queue(location, place.now);
        }
    }
}
