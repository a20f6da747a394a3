//! Goes through all locations' events, in the order of time as far as the clocks allow: a location whose call needs something of others waits
//! until they are there. What cannot come any more is named, and gone on without.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use quell_recording::mpi::{BLOCKING, Definitions, Event, Run, UNKNOWN, What};
use rustc_hash::FxHashMap;

use super::collectives::Collectives;
use super::findings::Findings;
use super::messages::Messages;
use super::paths::Paths;
use super::place::{Call, Frame, Place, Request};
use super::{LONGEST, Network, Watch};
use crate::warning::track::{ArchiveWarning, UndefinedName};

/// What is known of a region.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    pub(super) mpi: bool,
    /// A send that waits for its receiver whatever its size.
    pub(super) synchronous: bool,
    /// A call that may find nothing.
    pub(super) polls: bool,
    pub(super) initializes: bool,
    pub(super) finalizes: bool,
}

/// The communicators, made ready.
#[derive(Debug)]
pub(super) struct Group {
    /// Of this rank in the world, the place among the members.
    pub(super) places: Option<FxHashMap<u32, u32>>,
    pub(super) expected: usize,
}

/// The whole analysis while it lasts.
pub(super) struct Engine<'a, R: Run + ?Sized, W: Watch + ?Sized> {
    run: &'a mut R,
    pub watch: &'a mut W,
    pub definitions: Definitions,
    pub network: Option<Network>,
    pub(super) kinds: Vec<Kind>,
    pub(super) groups: Vec<Group>,
    /// How many collectives a rank has entered on a communicator.
    pub(super) numbers: FxHashMap<(u32, u32), u64>,
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
    pub(super) fn new(run: &'a mut R, watch: &'a mut W, network: Option<Network>) -> Self {
        let definitions = run.definitions().clone();
        let sources = definitions.sources.len();
        let mut of_rank = FxHashMap::default();
        for (location, facts) in definitions.locations.iter().enumerate() {
            of_rank.entry(facts.rank).or_insert(location as u32);
        }
        let groups = definitions.comms.iter().map(|comm| {
            let identity = comm.remote.is_none()
                && comm.members.iter().enumerate().all(|(at, rank)| at == *rank as usize);
            let expected = comm.everybody().filter(|rank| of_rank.contains_key(rank)).count();
            let places = || comm.everybody().enumerate().map(|(place, rank)| (rank, place as u32)).collect();
            Group { places: (!identity).then(places), expected }
        });
        let groups = groups.collect();
        let polls =
            |name: &str| ["Test", "Iprobe", "Improbe", "get_status"].iter().any(|word| name.contains(word));
        let kinds = definitions.regions.iter().map(|region| Kind {
            mpi: region.mpi,
            synchronous: region.name.contains("Ssend"),
            polls: region.mpi && polls(&region.name),
            initializes: region.name.starts_with("MPI_Init"),
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
            numbers: FxHashMap::default(),
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
    pub(super) fn play(&mut self) {
        loop {
            while let Some(Reverse((_, location))) = self.heap.pop() {
                self.places[location as usize].queued = false;
                self.advance(location);
            }
            if !self.release_one() {
                return;
            }
        }
    }

    /// Lets a location go on until it is behind no other.
    fn advance(&mut self, location: u32) {
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
            // Whom it woke meanwhile comes first.
            let until = self.heap.peek().map_or(i64::MAX, |Reverse((time, _))| *time);
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
        self.see_ahead(location, 1);
        let place = &self.places[location as usize];
        place.events.get(place.next).copied()
    }

    /// Reads until so many of the location's events lie ahead, if it has as many.
    pub(super) fn see_ahead(&mut self, location: u32, count: usize) {
        let place = &mut self.places[location as usize];
        while place.more && place.events.len() - place.next < count {
            place.events.drain(..place.next);
            place.next = 0;
            let before = place.events.len();
            let read = self.run.read(location as usize, &mut place.events);
            self.read += (place.events.len() - before) as u64;
            self.watch.progress(self.read);
            match read {
                Ok(more) => place.more = more,
                Err(damage) => {
                    place.more = false;
                    place.damage = Some(damage.0);
                }
            }
        }
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
                let sent = self.take_request(location, request);
                let place = &mut self.places[location as usize];
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
            // That nothing was found is seen from a call that completed nothing.
            What::Pending { .. } => {}
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
            What::Collective { operation, comm, root, sent, received, request } => {
                self.collective(location, operation, (comm, root), request);
                let call = self.places[location as usize].call.as_ref();
                let own = call.and_then(|call| call.blocking.or(call.collectives.last().copied()));
                if let Some((id, _)) = own {
                    self.collectives.carries(id, sent.max(received));
                }
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
        let kind = self.kind(region);
        let place = &mut self.places[location as usize];
        let Some(at) = place.stack.iter().rposition(|frame| frame.region == region) else {
            self.findings.unbalanced += 1;
            if Findings::tells(self.findings.unbalanced) {
                let (location, region) = (self.location(location), self.region(region));
                self.findings.warnings.push(ArchiveWarning::LeavesUnentered { location, region });
            }
            return;
        };
        place.initialized |= kind.initializes;
        place.finalized |= kind.finalizes;
        let extra = place.stack.len() - at - 1;
        if extra > 0 {
            // However many it left open, they are told as one.
            let told = Findings::tells(self.findings.unbalanced + 1);
            self.findings.unbalanced += extra as u64;
            if told {
                let (location, region) = (self.location(location), self.region(region));
                let open = extra as u64;
                self.findings.warnings.push(ArchiveWarning::LeavesOpen { location, region, open });
            }
        }
        let place = &mut self.places[location as usize];
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
                if Findings::tells(self.findings.counters_backwards) {
                    self.findings.warnings.push(ArchiveWarning::CounterBackwards {
                        location: self.location(location),
                        source: self.definitions.sources[source as usize].clone(),
                        to_ns: total,
                    });
                }
            }
            None => self.undefined(location, UndefinedName::NoiseSource),
        }
    }

    /// A region or a call that is open around what is communicated now, or one of its own.
    pub(super) fn open_call(&mut self, location: u32) {
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

    pub(super) fn queue(&mut self, location: u32, time: i64) {
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

    /// What a request stands for, which ends: its own, or that of another thread of the rank.
    pub(super) fn take_request(&mut self, location: u32, request: u64) -> Option<Request> {
        if request == BLOCKING {
            return None;
        }
        if let Some(own) = self.places[location as usize].requests.remove(&request) {
            return Some(own);
        }
        let rank = self.places[location as usize].rank;
        // Locations are in order of rank.
        let from = self.places.partition_point(|place| place.rank < rank);
        let threads = self.places[from..].iter_mut().take_while(|place| place.rank == rank);
        threads.into_iter().find_map(|place| place.requests.remove(&request))
    }

    pub(super) fn kind(&self, region: u32) -> Kind {
        self.kinds.get(region as usize).copied().unwrap_or_default()
    }

    pub(super) fn polls(&self, region: u32) -> bool {
        self.kind(region).polls
    }
}
