//! Handles incomplete archives: which location continues without what it waits for, and the warnings.

use quell_recording::mpi::Run;
use rustc_hash::FxHashMap;

use super::Watch;
use super::collectives::Collective;
use super::engine::Engine;
use super::event_reader::Channel;
use super::findings::{Findings, MOST};
use super::messages::Message;
use super::place::Blocked;
use crate::warning::track::{self as warning, ArchiveWarning, Envelope, Location, UndefinedName};

/// Maximum number of missing ranks that a warning lists.
const MOST_RANKS: usize = 8;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    /// Called when all locations are blocked. Releases the location whose wait is most certainly futile; `false` if none waits.
    pub(super) fn release_one(&mut self) -> bool {
        let mut hopes = FxHashMap::default();
        let stuck = |(location, place): (usize, &super::place::LocationState)| {
            let blocked = place.blocked?;
            let hope = match blocked {
                Blocked::Ranks(id) => *hopes.entry(id).or_insert_with(|| self.hope(blocked)),
                _ => self.hope(blocked),
            };
            Some((hope, place.now, location as u32, blocked))
        };
        let all = self.places.iter().enumerate().filter_map(stuck);
        let Some((_, _, location, blocked)) =
            all.min_by_key(|(hope, now, location, _)| (*hope, *now, *location))
        else {
            return false;
        };
        match blocked {
            Blocked::Receiver(id) => {
                self.messages.get_mut(id).sender_waits = None;
                if let Some(call) = &mut self.places[location as usize].call {
                    call.sent.retain(|other| *other != id);
                }
                self.messages.release(id);
                self.wake(Some(location));
            }
            Blocked::Noise(_) => {
                if let Some(call) = &mut self.places[location as usize].call {
                    call.knows_noise = true;
                }
                self.wake(Some(location));
            }
            Blocked::Send(id) if self.messages.get(id).prober_waits == Some(location) => {
                // If it is missing, its receive says so.
                self.messages.get_mut(id).prober_waits = None;
                if let Some(call) = &mut self.places[location as usize].call {
                    call.probed.retain(|other| *other != id);
                }
                self.messages.release(id);
                self.wake(Some(location));
            }
            Blocked::Send(id) => {
                self.messages.lose(id);
                self.findings.receives_without_send += 1;
                if Findings::is_significant(self.findings.receives_without_send) {
                    self.findings.warnings.push(ArchiveWarning::NeverSent {
                        location: self.location(location),
                        at_ns: self.since_begin(self.places[location as usize].now),
                        message: self.envelope(self.messages.get(id)),
                    });
                }
                self.wake(Some(location));
            }
            Blocked::Ranks(id) => {
                let waiting = self.collectives.get_mut(id).map(Collective::force).unwrap_or_default();
                self.findings.incomplete_collectives += 1;
                if Findings::is_significant(self.findings.incomplete_collectives) {
                    let warning = self.collectives.get(id).map(|collective| self.incomplete(collective));
                    self.findings.warnings.extend(warning);
                }
                for location in waiting {
                    self.wake(Some(location));
                }
                self.wake(Some(location));
            }
            // What a team waits for is in the archive: it comes once the others have been released.
            Blocked::Team => {
                if let Some(call) = &mut self.places[location as usize].call {
                    call.team = None;
                }
                self.wake(Some(location));
            }
        }
        true
    }

    /// The order of release: 0 for what need not be waited for, 1 for what certainly never comes, 2 for what may, 3 for what will.
    fn hope(&self, blocked: Blocked) -> u8 {
        let over =
            |rank: &u32| self.of_rank.get(rank).is_none_or(|location| self.places[*location as usize].ended);
        match blocked {
            Blocked::Receiver(_) | Blocked::Noise(_) => 0,
            Blocked::Team => 3,
            Blocked::Send(id) => 2 - u8::from(over(&self.messages.get(id).key.channel.from)),
            Blocked::Ranks(id) => {
                let Some(collective) = self.collectives.get(id) else { return 1 };
                // A barrier of a team: its threads come once they have been released.
                if collective.comm as usize >= self.definitions.comms.len() {
                    return 3;
                }
                let missing = self.missing_ranks(collective);
                2 - u8::from(missing.iter().all(over))
            }
        }
    }

    /// The members of its communicator that have not entered.
    fn missing_ranks(&self, collective: &Collective) -> Vec<u32> {
        let Some(comm) = self.definitions.comms.get(collective.comm as usize) else { return Vec::new() };
        let mut came: Vec<u32> =
            collective.parts.iter().map(|part| self.places[part.location as usize].rank).collect();
        came.sort_unstable();
        let here = |rank: &u32| self.of_rank.contains_key(rank);
        comm.all_world_ranks().filter(|rank| here(rank) && came.binary_search(rank).is_err()).collect()
    }

    /// Adds the warnings at the end: messages that were never received, collectives that never completed, locations that broke off.
    pub(super) fn conclude(&mut self) {
        let (count, left) = self.messages.left(MOST);
        let unreceived = |message: &Message| ArchiveWarning::NeverReceived {
            at_ns: self.since_begin(message.sent.map_or(0, |(_, at)| at)),
            message: self.envelope(message),
        };
        let mut warnings: Vec<ArchiveWarning> = left.into_iter().map(unreceived).collect();
        self.findings.sends_without_receive = count;
        for collective in self
            .collectives
            .left()
            .into_iter()
            .filter(|collective| !collective.forced && !collective.all_entered())
        {
            self.findings.incomplete_collectives += 1;
            if self.findings.incomplete_collectives <= MOST as u64 {
                warnings.push(self.incomplete(collective));
            }
        }
        // First the locations that break off, which explain much of the rest.
        let broken = self.places.iter().enumerate().filter_map(|(location, place)| {
            Some(ArchiveWarning::BreaksOff {
                location: self.location(location as u32),
                at_ns: self.since_begin(place.now),
                damage: self.events.damage(location as u32)?.to_owned(),
            })
        });
        let broken: Vec<ArchiveWarning> = broken.take(MOST).collect();
        self.findings.warnings.splice(0..0, broken);
        let others_finalized = self.places.iter().any(|place| place.finalized);
        for (number, place) in self.places.iter().enumerate() {
            let (location, at_ns) = (self.location(number as u32), self.since_begin(place.now));
            if let Some(call) = &place.call {
                let region = self.region(call.region);
                warnings.push(ArchiveWarning::EndsWithin { location, at_ns, region });
            } else if (others_finalized || place.initialized)
                && !place.finalized
                && self.of_rank.get(&place.rank) == Some(&(number as u32))
            {
                warnings.push(ArchiveWarning::WithoutFinalize { location, at_ns });
            }
            let unplaced = place.ledger.unplaced(0);
            let sum = self.findings.noise_without_time_ns.saturating_add(unplaced.unsigned_abs());
            self.findings.noise_without_time_ns = sum;
        }
        self.findings.warnings.append(&mut warnings);
    }

    /// Checks a finished collective.
    pub(super) fn judge(&mut self, collective: &Collective) {
        if collective.mismatched {
            self.findings.mismatched_collectives += 1;
            if Findings::is_significant(self.findings.mismatched_collectives) {
                let collective = self.named(collective);
                self.findings.warnings.push(ArchiveWarning::RanksDisagree { collective });
            }
        }
    }

    pub(super) fn went_back(&mut self, location: u32, by: i64) {
        self.findings.clock_backwards.add(by);
        if Findings::is_significant(self.findings.clock_backwards.times) {
            let at_ns = self.since_begin(self.places[location as usize].now);
            let location = self.location(location);
            self.findings.warnings.push(ArchiveWarning::ClockBackwards { location, by_ns: by, at_ns });
        }
    }

    pub(super) fn before_cause(&mut self, location: u32, by: i64) {
        self.findings.before_cause.add(by);
        if Findings::is_significant(self.findings.before_cause.times) {
            let at_ns = self.since_begin(self.places[location as usize].now);
            let location = self.location(location);
            self.findings.warnings.push(ArchiveWarning::EndsBeforeCause { location, at_ns, by_ns: by });
        }
    }

    pub(super) fn undefined(&mut self, location: u32, what: UndefinedName) {
        self.findings.undefined += 1;
        if Findings::is_significant(self.findings.undefined) {
            let at_ns = self.since_begin(self.places[location as usize].now);
            let location = self.location(location);
            self.findings.warnings.push(ArchiveWarning::Undefined { location, what, at_ns });
        }
    }

    fn incomplete(&self, collective: &Collective) -> ArchiveWarning {
        let mut ranks = self.missing_ranks(collective);
        let operation = collective.operation.map(|operation| format!("{operation:?}"));
        let collective = self.named(collective);
        if ranks.is_empty() {
            return ArchiveWarning::NotLeft { collective };
        }
        let more = ranks.len().saturating_sub(MOST_RANKS) as u64;
        ranks.truncate(MOST_RANKS);
        ArchiveWarning::RanksMissing { collective, operation, ranks, more }
    }

    fn named(&self, collective: &Collective) -> warning::Collective {
        warning::Collective {
            number: collective.number,
            communicator: self.comm(collective.comm),
            entered_ns: self.since_begin(collective.last_entry.0),
        }
    }

    pub(super) fn location(&self, number: u32) -> Location {
        let facts = self.definitions.locations.get(number as usize);
        Location { number, thread: facts.map(|facts| [facts.rank, facts.thread]) }
    }

    fn since_begin(&self, at: i64) -> i64 {
        at - self.begin()
    }

    pub(super) fn region(&self, region: u32) -> String {
        let known = self.definitions.regions.get(region as usize);
        known.map_or_else(|| format!("region {region}"), |region| region.name.clone())
    }

    fn comm(&self, comm: u32) -> String {
        // Teams are numbered after the communicators.
        let team = (comm as usize).checked_sub(self.definitions.comms.len());
        if let Some(process) = team.and_then(|at| self.events.processes().get(at)) {
            return format!("the threads of rank {}", process.rank);
        }
        let known = self.definitions.comms.get(comm as usize).filter(|comm| !comm.name.is_empty());
        known.map_or_else(|| format!("communicator {comm}"), |comm| comm.name.clone())
    }

    fn envelope(&self, message: &Message) -> Envelope {
        let Channel { comm, from, to, tag } = message.key.channel;
        Envelope { from, to, tag, communicator: self.comm(comm) }
    }

    /// When the run began.
    pub(super) fn begin(&self) -> i64 {
        let first = self.places.iter().filter_map(|place| place.first).min().unwrap_or(0);
        let last = self.places.iter().map(|place| place.now).max().unwrap_or(first);
        let reported = i64::try_from(self.definitions.span_ns[0]).unwrap_or(first);
        // An archive whose zero is that of another clock does not define when the run began.
        let believable = reported <= first && first - reported <= (last - first).saturating_mul(100);
        if believable { reported } else { first }
    }
}
