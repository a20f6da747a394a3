//! Processes all locations' events, in the order of time as far as the clocks allow: a location whose call needs something from others waits
//! until it is available. If it cannot become available any more, it is reported and the location continues without it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use quell_recording::mpi::{Definitions, Run, UNKNOWN};
use quell_sim::loggops::NamedNetwork;
use rustc_hash::FxHashMap;

use super::collectives::Collectives;
use super::eager_limits::{EagerLimits, Evidence, Way};
use super::event_reader::{EventReader, Fact, OperationId, Timed};
use super::findings::Findings;
use super::messages::Messages;
use super::paths::Paths;
use super::place::{Call, Frame, LocationState, Request};
use super::shortest::ShortestWaits;
use super::teams::Teams;
use super::{LONGEST, Learned, Watch};
use crate::warning::track::{ArchiveWarning, UndefinedName};

/// The state of the whole analysis.
pub(super) struct Engine<'a, R: Run + ?Sized, W: Watch + ?Sized> {
    pub(super) events: EventReader<'a, R>,
    pub watch: &'a mut W,
    pub definitions: Arc<Definitions>,
    pub network: Option<NamedNetwork>,
    /// For each communicator, the number of existing ranks that take part in its collectives.
    pub(super) expected: Vec<usize>,
    /// The location that represents each rank in `MPI_COMM_WORLD`.
    pub of_rank: FxHashMap<u32, u32>,
    pub places: Vec<LocationState>,
    /// Pending operations that a location may wait for.
    pub(super) requests: FxHashMap<OperationId, Request>,
    pub messages: Messages,
    pub collectives: Collectives,
    pub(super) teams: Teams,
    pub paths: Paths,
    pub findings: Findings,
    /// For each region, the number and the time in ns of calls that may have waited in a way that their events do not show.
    pub unshown: BTreeMap<u32, (u64, i64)>,
    /// The shortest waits of the run, or so far.
    pub shortest: ShortestWaits,
    /// The sizes from which on sends may wait for their receivers.
    pub limits: EagerLimits,
    /// What the sends of the run show about that, if it is still to be learned.
    pub(super) evidence: Option<Evidence>,
    /// For each location, the first location of its host.
    hosts: Vec<u32>,
    heap: BinaryHeap<Reverse<(i64, u32)>>,
    /// Number of events at the last progress report.
    read: u64,
}

impl<'a, R: Run + ?Sized, W: Watch + ?Sized> Engine<'a, R, W> {
    pub(super) fn new(
        run: &'a mut R,
        watch: &'a mut W,
        network: Option<NamedNetwork>,
        Learned { shortest, limits }: Learned,
        evidence: Option<Evidence>,
    ) -> Self {
        let events = EventReader::new(run);
        let definitions = Arc::clone(&events.definitions);
        let sources = definitions.sources.len();
        let of_rank: FxHashMap<u32, u32> =
            events.processes().iter().map(|process| (process.rank, process.locations[0])).collect();
        let expected = definitions
            .comms
            .iter()
            .map(|comm| comm.all_world_ranks().filter(|rank| of_rank.contains_key(rank)).count());
        let expected = expected.collect();
        let places: Vec<LocationState> =
            definitions.locations.iter().map(|facts| LocationState::new(facts.rank, sources)).collect();
        Self {
            heap: (0..places.len() as u32).map(|location| Reverse((i64::MIN, location))).collect(),
            read: 0,
            events,
            watch,
            network,
            expected,
            of_rank,
            places,
            requests: FxHashMap::default(),
            messages: Messages::new(sources + 1),
            collectives: Collectives::new(sources + 1),
            teams: Teams::default(),
            paths: Paths::new(sources + 1),
            findings: Findings::default(),
            unshown: BTreeMap::new(),
            shortest,
            limits,
            evidence,
            hosts: hosts(&definitions),
            definitions,
        }
    }

    /// Whether a message between two locations stays on one host.
    pub(super) fn way(&self, from: u32, to: u32) -> Way {
        let host = |location: u32| self.hosts.get(location as usize);
        if host(from) == host(to) { Way::OneHost } else { Way::DifferentHosts }
    }

    /// Processes all events.
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

    /// Advances a location until it is ahead of another one.
    fn advance(&mut self, location: u32) {
        loop {
            if self.places[location as usize].blocked.is_some() {
                if !self.end_call(location) {
                    return;
                }
                continue;
            }
            let Some(Timed { time_ns, fact }) = self.events.peek(location) else {
                self.end(location);
                return;
            };
            let time = nanos(time_ns);
            // A location that it woke goes first.
            let until = self.heap.peek().map_or(i64::MAX, |Reverse((time, _))| *time);
            if time > until {
                self.queue(location, time);
                return;
            }
            self.events.take(location);
            let read = self.events.read();
            if std::mem::replace(&mut self.read, read) != read {
                self.watch.progress(read);
            }
            let place = &mut self.places[location as usize];
            place.now = place.now.max(time);
            place.first.get_or_insert(time);
            self.fact(location, fact);
            // The counters of all sources are read before the event that they precede.
            if !matches!(fact, Fact::Noise { .. }) {
                self.notify_watchers(location);
            }
        }
    }

    fn fact(&mut self, location: u32, fact: Fact) {
        match fact {
            Fact::Noise { .. }
            | Fact::ClockBackwards { .. }
            | Fact::TeamBegin { .. }
            | Fact::Joined { .. } => {}
            _ => self.places[location as usize].idle_since = None,
        }
        match fact {
            Fact::Enter { region, begins_call } => self.enter(location, region, begins_call),
            Fact::Leave { region, closed } => self.leave(location, region, closed),
            Fact::NeverEntered { region } => self.never_entered(location, region),
            Fact::Noise { source, total_ns } => self.noise(location, source, total_ns),
            Fact::ClockBackwards { from_ns, to_ns } => {
                let back = nanos(from_ns) - nanos(to_ns);
                if back > 0 {
                    self.went_back(location, back);
                }
            }
            Fact::Undefined(what) => self.undefined(location, what),
            Fact::CallBegin { region, depth } => self.begin_call(location, region, depth),
            Fact::CallEnd { unsuccessful } => self.close_call(location, unsuccessful),
            Fact::Send { operation, message, bytes } => self.send(location, operation, message, bytes),
            Fact::SendDone { operation } => self.send_done(location, operation),
            Fact::ReceivePosted { operation, message } => self.post(location, operation, message),
            Fact::Received { operation, message, .. } => self.receive(location, operation, message),
            Fact::Probed { message } => self.probed(location, message),
            Fact::Cancelled { operation } => self.cancelled(operation),
            Fact::CollectiveBegin => self.begin_collective(location),
            Fact::CollectivePosted { operation, part } => self.post_collective(location, operation, part),
            Fact::Collective { operation, part, ends } => self.collective(location, operation, part, &ends),
            Fact::Forked { .. }
            | Fact::TeamBegin { .. }
            | Fact::TeamEnd { .. }
            | Fact::Joined { .. }
            | Fact::BarrierBegin { .. }
            | Fact::Barrier(_) => self.team(location, fact),
        }
    }

    fn enter(&mut self, location: u32, region: u32, begins_call: bool) {
        let place = &mut self.places[location as usize];
        let path = self.paths.enter(place.path(), region);
        let now = place.now;
        if begins_call {
            place.ledger.enter(now);
            place.begin_call(Call::new(region, path, now, Some(place.stack.len())));
        } else if place.call.is_none() {
            place.ledger.close_interval(now);
        }
        place.stack.push(Frame { region, entered: now, path });
    }

    fn never_entered(&mut self, location: u32, region: u32) {
        self.findings.unbalanced += 1;
        if Findings::is_significant(self.findings.unbalanced) {
            let (location, region) = (self.location(location), self.region(region));
            self.findings.warnings.push(ArchiveWarning::LeavesUnentered { location, region });
        }
    }

    fn leave(&mut self, location: u32, region: u32, closed: usize) {
        let kind = self.events.kind(region);
        let place = &mut self.places[location as usize];
        place.initialized |= kind.initializes;
        place.finalized |= kind.finalizes;
        let extra = closed - 1;
        if extra > 0 {
            // However many regions it left open, they are reported as one finding.
            let reported = Findings::is_significant(self.findings.unbalanced + 1);
            self.findings.unbalanced += extra as u64;
            if reported {
                let (location, region) = (self.location(location), self.region(region));
                let open = extra as u64;
                self.findings.warnings.push(ArchiveWarning::LeavesOpen { location, region, open });
            }
        }
        let place = &mut self.places[location as usize];
        let now = place.now;
        let outside = place.call.as_ref().map_or(usize::MAX, |call| call.depth.unwrap_or(usize::MAX));
        let at = place.stack.len() - closed;
        for (depth, frame) in (at..).zip(place.stack.drain(at..)) {
            self.paths.add_time(frame.path, now - frame.entered);
            if depth < outside && self.watch.wanted() {
                self.watch.stayed(&frame.left(location, now));
            }
        }
        let place = &mut self.places[location as usize];
        if place.call.is_none() {
            place.ledger.close_interval(now);
        }
    }

    fn noise(&mut self, location: u32, source: u32, total: u64) {
        let place = &mut self.places[location as usize];
        let in_call = place.call.is_some();
        match place.ledger.add_noise(source as usize, total, in_call) {
            Some(more) => {
                if !in_call {
                    place.noise_outside = place.noise_outside.saturating_add(more);
                }
                if let Some(polling) = &mut place.polling {
                    for account in [0, source as usize + 1] {
                        polling.noise[account] = polling.noise[account].saturating_add(more);
                    }
                }
                let path = place.path();
                self.paths.struck(path, source as usize, more);
            }
            None if (source as usize) < self.definitions.sources.len() => {
                self.findings.counters_backwards += 1;
                if Findings::is_significant(self.findings.counters_backwards) {
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

    /// A communication begins a call: the innermost region is that call, or a call without a region begins.
    pub(super) fn begin_call(&mut self, location: u32, region: u32, depth: Option<usize>) {
        let place = &mut self.places[location as usize];
        let frame = place.stack.last().copied();
        if let (Some(depth), Some(frame)) = (depth, frame) {
            place.ledger.enter_late();
            place.begin_call(Call::new(region, frame.path, frame.entered, Some(depth)));
        } else {
            let path = place.path();
            place.ledger.enter(place.now);
            place.begin_call(Call::new(UNKNOWN, path, place.now, None));
        }
    }

    pub(super) fn queue(&mut self, location: u32, time: i64) {
        if !std::mem::replace(&mut self.places[location as usize].queued, true) {
            self.heap.push(Reverse((time, location)));
        }
    }

    /// Ends a location without more events.
    fn end(&mut self, location: u32) {
        let place = &mut self.places[location as usize];
        if std::mem::replace(&mut place.ended, true) {
            return;
        }
        let now = place.now;
        if place.call.is_none() {
            place.ledger.close_interval(now.max(0));
        }
        for frame in std::mem::take(&mut place.stack).into_iter().rev() {
            self.paths.add_time(frame.path, now - frame.entered);
            if self.watch.wanted() {
                self.watch.stayed(&frame.left(location, now));
            }
        }
        for (sender, _) in std::mem::take(&mut self.places[location as usize].watchers) {
            self.wake(Some(sender));
        }
    }
}

/// For each location, the first location of its host.
fn hosts(definitions: &Definitions) -> Vec<u32> {
    let mut first: FxHashMap<&str, u32> = FxHashMap::default();
    let locations = definitions.locations.iter().enumerate();
    locations.map(|(at, location)| *first.entry(&location.host).or_insert(at as u32)).collect()
}

/// Converts and limits a time so that sums of a few do not overflow.
pub(super) fn nanos(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(LONGEST).min(LONGEST)
}
