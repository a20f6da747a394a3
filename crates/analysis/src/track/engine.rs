//! Goes through all locations' events, in the order of time as far as the clocks allow: a location whose call needs something of others waits
//! until they are there. What cannot come any more is named, and gone on without.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use quell_recording::mpi::{BLOCKING, Definitions, Event, Operation, Run, UNKNOWN, What};
use rustc_hash::FxHashMap;

use super::collectives::{CollectiveId, Collectives, Part};
use super::findings::Findings;
use super::messages::{Channel, MessageId, Messages};
use super::paths::Paths;
use super::place::{Blocked, Call, Frame, Place, Received, Request};
use super::{LONGEST, Network, Watch};

/// Messages of more bytes may have to wait for their receivers: no MPI has a smaller limit for what it sends at once.
const SURELY_EAGER: u64 = 4096;

/// What is known of a region.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    mpi: bool,
    /// A send that waits for its receiver whatever its size.
    synchronous: bool,
    /// A call that may find nothing.
    polls: bool,
    finalizes: bool,
}

/// The communicators, made ready.
#[derive(Debug)]
struct Group {
    /// Of this rank in the world, the place among the members.
    places: Option<FxHashMap<u32, u32>>,
    expected: usize,
}

/// The whole analysis while it lasts.
pub(super) struct Engine<'a, R: Run + ?Sized, W: Watch + ?Sized> {
    run: &'a mut R,
    pub watch: &'a mut W,
    pub definitions: Definitions,
    pub network: Option<Network>,
    kinds: Vec<Kind>,
    groups: Vec<Group>,
    /// The location that stands for a rank in the world.
    pub of_rank: FxHashMap<u32, u32>,
    pub places: Vec<Place>,
    pub messages: Messages,
    pub collectives: Collectives,
    pub paths: Paths,
    pub findings: Findings,
    /// The shortest that a wait went on after its cause, by who waited for whom and how much: what was longer was disturbed.
    pub least: FxHashMap<(u32, u32, u8), i64>,
    heap: BinaryHeap<Reverse<(i64, u32)>>,
    /// Events so far.
    read: u64,
}

impl<'a, R: Run + ?Sized, W: Watch + ?Sized> Engine<'a, R, W> {
    pub fn new(run: &'a mut R, watch: &'a mut W, network: Option<Network>) -> Self {
        let definitions = run.definitions().clone();
        let sources = definitions.sources.len();
        let mut of_rank = FxHashMap::default();
        for (location, facts) in definitions.locations.iter().enumerate() {
            of_rank.entry(facts.rank).or_insert(location as u32);
        }
        let groups = definitions.comms.iter().map(|comm| {
            let all = comm.members.iter().chain(comm.remote.iter().flatten());
            let identity = comm.remote.is_none()
                && comm.members.iter().enumerate().all(|(at, rank)| at == *rank as usize);
            let expected = all.clone().filter(|rank| of_rank.contains_key(rank)).count();
            let places = || all.clone().enumerate().map(|(place, rank)| (*rank, place as u32)).collect();
            Group { places: (!identity).then(places), expected }
        });
        let groups = groups.collect();
        let polls = |name: &str| ["Test", "Iprobe", "Improbe"].iter().any(|word| name.contains(word));
        let kinds = definitions.regions.iter().map(|region| Kind {
            mpi: region.mpi,
            synchronous: region.name.contains("Ssend"),
            polls: region.mpi && polls(&region.name),
            finalizes: region.name == "MPI_Finalize",
        });
        let kinds = kinds.collect();
        let places: Vec<Place> =
            definitions.locations.iter().map(|facts| Place::new(facts.rank, sources)).collect();
        Self {
            heap: (0..places.len() as u32).map(|location| Reverse((i64::MIN, location))).collect(),
            read: 0,
            run,
            watch,
            network,
            kinds,
            groups,
            of_rank,
            places,
            messages: Messages::new(sources + 1),
            collectives: Collectives::new(sources + 1),
            paths: Paths::new(sources + 1),
            findings: Findings::default(),
            least: FxHashMap::default(),
            definitions,
        }
    }

    /// Goes through everything.
    pub fn play(&mut self) {
        loop {
            while let Some(Reverse((_, location))) = self.heap.pop() {
                self.places[location as usize].queued = false;
                let until = self.heap.peek().map_or(i64::MAX, |Reverse((time, _))| *time);
                self.advance(location, until);
            }
            if !self.release_one() {
                return;
            }
        }
    }

    /// Lets a location go on until it is behind no other.
    fn advance(&mut self, location: u32, until: i64) {
        loop {
            if self.places[location as usize].blocked.is_some() {
                if !self.end_call(location) {
                    return;
                }
                continue;
            }
            let Some(event) = self.next(location) else {
                self.end(location);
                return;
            };
            let time = i64::try_from(event.time_ns).unwrap_or(LONGEST).min(LONGEST);
            if time > until {
                self.queue(location, time);
                return;
            }
            let place = &mut self.places[location as usize];
            place.next += 1;
            place.count += 1;
            if time < place.now {
                let back = place.now - time;
                self.went_back(location, back);
            }
            let place = &mut self.places[location as usize];
            place.now = place.now.max(time);
            place.first.get_or_insert(time);
            self.event(location, event.what);
        }
    }

    /// The location's next event, which stays the next.
    fn next(&mut self, location: u32) -> Option<Event> {
        let place = &mut self.places[location as usize];
        while place.next >= place.events.len() {
            if !place.more {
                return None;
            }
            place.events.clear();
            place.next = 0;
            let read = self.run.read(location as usize, &mut place.events);
            self.read += place.events.len() as u64;
            self.watch.progress(self.read);
            match read {
                Ok(more) => place.more = more,
                Err(damage) => {
                    place.more = false;
                    place.damage = Some(damage.0);
                }
            }
        }
        place.events.get(place.next).copied()
    }

    fn event(&mut self, location: u32, what: What) {
        match what {
            What::Enter(region) => self.enter(location, region),
            What::Leave(region) => self.leave(location, region),
            What::Noise { source, total_ns } => self.noise(location, source, total_ns),
            What::Send { comm, to, tag, bytes, request } => {
                self.send(location, (comm, to, tag), bytes, request);
            }
            What::SendDone { request } => {
                self.open_call(location);
                let place = &mut self.places[location as usize];
                let sent = place.requests.remove(&request);
                if let (Some(Request::Sent(id)), Some(call)) = (sent, &mut place.call) {
                    call.sent.push(id);
                }
                self.found(location);
            }
            What::RecvPosted { comm, from, tag, request } => self.post(location, (comm, from, tag), request),
            What::Recv { comm, from, tag, bytes: _, request } => {
                self.receive(location, (comm, from, tag), request);
            }
            What::Probed { comm, from, tag } => self.probed(location, (comm, from, tag)),
            What::Pending { .. } => {
                if let Some(call) = &mut self.places[location as usize].call {
                    call.found_nothing = true;
                }
            }
            What::Cancelled { request } => self.cancelled(location, request),
            What::CollectiveBegin => {
                self.open_call(location);
                let place = &mut self.places[location as usize];
                if let Some(call) = &mut place.call {
                    call.begun = Some(place.now);
                }
                return;
            }
            What::CollectivePosted { comm, request } => self.post_collective(location, comm, request),
            What::Collective { operation, comm, root, request, .. } => {
                self.collective(location, operation, (comm, root), request);
            }
        }
        // What no region stands around is a call of its own.
        let bare = |call: &Call| call.depth.is_none();
        if !matches!(what, What::Noise { .. })
            && self.places[location as usize].call.as_ref().is_some_and(bare)
        {
            self.close_call(location);
        }
    }

    fn enter(&mut self, location: u32, region: u32) {
        let kind = self.kind(region);
        let place = &mut self.places[location as usize];
        let path = self.paths.enter(place.path(), region);
        if let Some(frame) = place.stack.last_mut() {
            frame.fresh = false;
        }
        let now = place.now;
        if place.call.is_none() {
            if kind.mpi {
                place.ledger.enter(now);
                place.call = Some(Call::new(region, path, now, Some(place.stack.len())));
            } else {
                place.ledger.settle(now);
            }
        }
        place.stack.push(Frame { region, entered: now, path, fresh: true });
    }

    fn leave(&mut self, location: u32, region: u32) {
        let place = &mut self.places[location as usize];
        let Some(at) = place.stack.iter().rposition(|frame| frame.region == region) else {
            self.findings.unbalanced += 1;
            let count = self.findings.unbalanced;
            let words =
                || format!("{} leaves {} without having entered it", self.who(location), self.region(region));
            let words = words();
            return self.findings.tell(count, || words);
        };
        place.finalized |= self.kinds.get(region as usize).is_some_and(|kind| kind.finalizes);
        let extra = place.stack.len() - at - 1;
        self.findings.unbalanced += extra as u64;
        let now = place.now;
        let outside = place.call.as_ref().map_or(usize::MAX, |call| call.depth.unwrap_or(usize::MAX));
        for (depth, frame) in (at..).zip(place.stack.drain(at..)) {
            self.paths.all[frame.path as usize].time += now - frame.entered;
            if depth < outside && self.watch.wanted() {
                self.watch.stayed(&frame.left(location, now));
            }
        }
        if place.call.as_ref().is_some_and(|call| call.depth.is_some_and(|depth| depth >= at)) {
            self.close_call(location);
        } else if self.places[location as usize].call.is_none() {
            self.places[location as usize].ledger.settle(now);
        }
    }

    fn noise(&mut self, location: u32, source: u32, total: u64) {
        let place = &mut self.places[location as usize];
        let in_call = place.call.is_some();
        match place.ledger.strike(source as usize, total, in_call) {
            Some(more) => {
                if let Some(polling) = &mut place.polling {
                    for lane in [0, source as usize + 1] {
                        polling.noise[lane] = polling.noise[lane].saturating_add(more);
                    }
                }
                let path = place.path();
                self.paths.struck(path, source as usize, more);
            }
            None if (source as usize) < self.definitions.sources.len() => {
                self.findings.counters_backwards += 1;
                let count = self.findings.counters_backwards;
                let words = format!(
                    "{}: the counter of {} goes back to {total} ns",
                    self.who(location),
                    self.definitions.sources[source as usize]
                );
                self.findings.tell(count, || words);
            }
            None => self.undefined(location, "a noise source"),
        }
    }

    /// A region or a call that is open around what is communicated now, or one of its own.
    fn open_call(&mut self, location: u32) {
        let place = &mut self.places[location as usize];
        if place.call.is_some() {
            return;
        }
        // A region that was entered for this alone is the call, whatever its name.
        let depth = place.stack.len();
        if let Some(frame) = place.stack.last().copied().filter(|frame| frame.fresh && depth > 1) {
            place.ledger.enter_late();
            place.call = Some(Call::new(frame.region, frame.path, frame.entered, Some(depth - 1)));
        } else {
            let path = place.path();
            place.ledger.enter(place.now);
            place.call = Some(Call::new(UNKNOWN, path, place.now, None));
        }
    }

    fn found(&mut self, location: u32) {
        if let Some(call) = &mut self.places[location as usize].call {
            call.found = true;
        }
    }

    fn channel(&mut self, location: u32, (comm, peer, tag): (u32, u32, u32), sends: bool) -> Option<Channel> {
        let here = self.places[location as usize].rank;
        let there = self.definitions.comms.get(comm as usize).and_then(|comm| {
            let members = match &comm.remote {
                // Who stands in the other group talks to this one.
                Some(remote) if remote.contains(&here) => &comm.members,
                Some(remote) => remote,
                None => &comm.members,
            };
            members.get(peer as usize).copied()
        });
        let Some(there) = there else {
            self.undefined(location, "a rank or a communicator");
            return None;
        };
        let (from, to) = if sends { (here, there) } else { (there, here) };
        Some(Channel { comm, from, to, tag })
    }

    fn send(&mut self, location: u32, to: (u32, u32, u32), bytes: u64, request: u64) {
        self.open_call(location);
        let Some(channel) = self.channel(location, to, true) else { return };
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        // Noise before the send within its call delays it.
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

    fn post(&mut self, location: u32, from: (u32, u32, u32), request: u64) {
        self.open_call(location);
        let known = from.0 != UNKNOWN && from.1 != UNKNOWN && from.2 != UNKNOWN;
        let channel = if known { self.channel(location, from, false) } else { None };
        let place = &mut self.places[location as usize];
        let (now, accumulated) = (place.now, &place.ledger.accumulated);
        let (state, waited) = match channel {
            Some(channel) => {
                let (id, waited) = self.messages.receive(channel, now, accumulated);
                (Request::Receiving(id), waited)
            }
            None => (Request::Posted(now, accumulated.clone()), None),
        };
        place.requests.insert(request, state);
        self.wake(waited);
    }

    fn receive(&mut self, location: u32, from: (u32, u32, u32), request: u64) {
        self.open_call(location);
        let Some(channel) = self.channel(location, from, false) else { return };
        let messages = &self.messages;
        let place = &mut self.places[location as usize];
        let known = place.receiving(request, |id| messages.get(id).channel, channel);
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

    fn probed(&mut self, location: u32, from: (u32, u32, u32)) {
        self.open_call(location);
        let Some(channel) = self.channel(location, from, false) else { return };
        let message = self.messages.next(channel);
        if let Some(call) = &mut self.places[location as usize].call {
            call.probed.extend(message);
            call.found = true;
        }
    }

    fn cancelled(&mut self, location: u32, request: u64) {
        match self.places[location as usize].requests.remove(&request) {
            Some(Request::Receiving(id)) => self.messages.give_back(id),
            Some(Request::Sent(id)) => self.messages.release(id),
            _ => {}
        }
    }

    fn post_collective(&mut self, location: u32, comm: u32, request: u64) {
        self.open_call(location);
        let place = &mut self.places[location as usize];
        let (now, accumulated) = (place.now, place.ledger.accumulated.clone());
        if comm == UNKNOWN {
            place.requests.insert(request, Request::Begun(now, accumulated));
            return;
        }
        // What it is comes with its end; the first to end says it for all.
        if let Some((id, part)) = self.enter_collective(location, None, (comm, UNKNOWN), now, &accumulated) {
            self.places[location as usize].requests.insert(request, Request::Entered(id, part));
        }
    }

    fn collective(&mut self, location: u32, operation: Operation, (comm, root): (u32, u32), request: u64) {
        self.open_call(location);
        let place = &mut self.places[location as usize];
        let known = if request == BLOCKING { None } else { place.requests.remove(&request) };
        let Some(call) = &mut place.call else { return };
        call.found = true;
        let entered = call.begun.take().unwrap_or(call.entered);
        match known {
            Some(Request::Entered(id, part)) => {
                self.collectives.name(id, operation, root);
                self.completes(location, (id, part));
            }
            Some(Request::Begun(at, accumulated)) => {
                if let Some(met) =
                    self.enter_collective(location, Some(operation), (comm, root), at, &accumulated)
                {
                    self.completes(location, met);
                }
            }
            _ => {
                let accumulated = place.ledger.accumulated.clone();
                let met =
                    self.enter_collective(location, Some(operation), (comm, root), entered, &accumulated);
                if let Some(call) = &mut self.places[location as usize].call {
                    call.blocking = met;
                }
            }
        }
    }

    fn completes(&mut self, location: u32, part: (CollectiveId, usize)) {
        if let Some(call) = &mut self.places[location as usize].call {
            call.collectives.push(part);
        }
    }

    fn enter_collective(
        &mut self,
        location: u32,
        operation: Option<Operation>,
        (comm, root): (u32, u32),
        entered: i64,
        accumulated: &[i64],
    ) -> Option<(CollectiveId, usize)> {
        let rank = self.places[location as usize].rank;
        let place = self.groups.get(comm as usize).and_then(|group| match &group.places {
            Some(places) => places.get(&rank).copied(),
            None => (self.definitions.comms[comm as usize].members.len() > rank as usize).then_some(rank),
        });
        let (Some(place), Some(group)) = (place, self.groups.get(comm as usize)) else {
            self.undefined(location, "a communicator that it is no member of");
            return None;
        };
        let number = self.places[location as usize].number(comm);
        let part = Part { location, place, entered, left: None };
        let expected = group.expected;
        let (id, part, waiting) =
            self.collectives.enter((comm, number), (operation, expected), (part, root), accumulated);
        for location in waiting {
            self.wake(Some(location));
        }
        Some((id, part))
    }

    fn close_call(&mut self, location: u32) {
        let place = &mut self.places[location as usize];
        if let Some(call) = &mut place.call {
            call.left = place.now;
        }
        self.end_call(location);
    }

    /// Ends the call of a location, if all is there that it needs.
    fn end_call(&mut self, location: u32) -> bool {
        let blocked = self.missing(location);
        self.places[location as usize].blocked = blocked;
        if blocked.is_some() {
            return false;
        }
        let Some(call) = self.places[location as usize].call.take() else { return true };
        self.settle_call(location, &call);
        self.tell_watchers(location);
        true
    }

    /// What the call of a location still needs of others.
    fn missing(&mut self, location: u32) -> Option<Blocked> {
        let place = &mut self.places[location as usize];
        let call = place.call.as_mut()?;
        if let Some((id, part)) = call.blocking {
            if !call.announced {
                call.announced = true;
                let length = call.left - call.entered;
                let noise: Vec<i64> =
                    (0..place.ledger.lanes()).map(|lane| place.ledger.noise_of_call(lane, length)).collect();
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
        let left = call.left;
        let unreceived = call.sent.iter().find(|id| self.messages.get(**id).begun.is_none()).copied()?;
        let to = self.of_rank.get(&self.messages.get(unreceived).channel.to).copied()?;
        let receiver = &mut self.places[to as usize];
        let gone_by = receiver.now > left && receiver.call.is_none();
        if to == location || receiver.ended || gone_by {
            // It left without its receiver: it was sent at once.
            let call = self.places[location as usize].call.as_mut()?;
            call.sent.retain(|id| *id != unreceived);
            self.messages.release(unreceived);
            return self.missing(location);
        }
        receiver.watchers.push((location, left));
        self.messages.get_mut(unreceived).sender_waits = Some(location);
        Some(Blocked::Receiver(unreceived))
    }

    /// Senders look again whether this location received what they sent, or went on without.
    fn tell_watchers(&mut self, location: u32) {
        let now = self.places[location as usize].now;
        if self.places[location as usize].watchers.is_empty() {
            return;
        }
        let (over, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.places[location as usize].watchers)
            .into_iter()
            .partition(|(_, left)| now > *left);
        self.places[location as usize].watchers = stay;
        for (sender, _) in over {
            self.wake(Some(sender));
        }
    }

    pub fn wake(&mut self, location: Option<u32>) {
        let Some(location) = location else { return };
        let place = &self.places[location as usize];
        if place.blocked.is_some() {
            self.queue(location, place.now);
        }
    }

    fn queue(&mut self, location: u32, time: i64) {
        if !std::mem::replace(&mut self.places[location as usize].queued, true) {
            self.heap.push(Reverse((time, location)));
        }
    }

    /// The location has no more events.
    fn end(&mut self, location: u32) {
        let place = &mut self.places[location as usize];
        if std::mem::replace(&mut place.ended, true) {
            return;
        }
        let now = place.now;
        if place.call.is_none() {
            place.ledger.settle(now.max(0));
        }
        for frame in std::mem::take(&mut place.stack).into_iter().rev() {
            self.paths.all[frame.path as usize].time += now - frame.entered;
            if self.watch.wanted() {
                self.watch.stayed(&frame.left(location, now));
            }
        }
        for (sender, _) in std::mem::take(&mut self.places[location as usize].watchers) {
            self.wake(Some(sender));
        }
    }

    fn kind(&self, region: u32) -> Kind {
        self.kinds.get(region as usize).copied().unwrap_or_default()
    }

    pub fn polls(&self, region: u32) -> bool {
        self.kind(region).polls
    }
}
