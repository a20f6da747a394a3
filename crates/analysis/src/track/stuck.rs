//! What an archive lacks: who is gone on without, and how it is told.

use quell_recording::mpi::Run;
use rustc_hash::FxHashMap;

use super::Watch;
use super::collectives::Collective;
use super::engine::Engine;
use super::findings::{Findings, MOST};
use super::messages::Message;
use super::place::Blocked;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    /// Nobody can go on. Lets that location which most surely waits in vain go on without what it waits for; `false` if none waits.
    pub(super) fn release_one(&mut self) -> bool {
        let mut hopes = FxHashMap::default();
        let stuck = |(location, place): (usize, &super::place::Place)| {
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
            Blocked::Send(id) => {
                self.messages.lose(id);
                self.findings.receives_without_send += 1;
                if Findings::tells(self.findings.receives_without_send) {
                    let words = format!(
                        "{} receives at {} a message that was never sent: {}",
                        self.who(location),
                        self.when(self.places[location as usize].now),
                        self.message(self.messages.get(id)),
                    );
                    self.findings.told.push(words);
                }
                self.wake(Some(location));
            }
            Blocked::Ranks(id) => {
                let waiting = self.collectives.get_mut(id).map(Collective::force).unwrap_or_default();
                self.findings.incomplete_collectives += 1;
                if Findings::tells(self.findings.incomplete_collectives) {
                    let words = self.collectives.get(id).map(|collective| self.incomplete(collective));
                    self.findings.told.extend(words);
                }
                for location in waiting {
                    self.wake(Some(location));
                }
                self.wake(Some(location));
            }
        }
        true
    }

    /// What is released first: 0 what need not be waited for, 1 what surely never comes, 2 what may.
    fn hope(&self, blocked: Blocked) -> u8 {
        let over =
            |rank: &u32| self.of_rank.get(rank).is_none_or(|location| self.places[*location as usize].ended);
        match blocked {
            Blocked::Receiver(_) => 0,
            Blocked::Send(id) => 2 - u8::from(over(&self.messages.get(id).channel.from)),
            Blocked::Ranks(id) => {
                let Some(collective) = self.collectives.get(id) else { return 1 };
                let missing = self.missing_ranks(collective);
                2 - u8::from(missing.iter().all(over))
            }
        }
    }

    /// The members of its communicator that have not come.
    fn missing_ranks(&self, collective: &Collective) -> Vec<u32> {
        let Some(comm) = self.definitions.comms.get(collective.comm as usize) else { return Vec::new() };
        let mut came: Vec<u32> =
            collective.parts.iter().map(|part| self.places[part.location as usize].rank).collect();
        came.sort_unstable();
        let here = |rank: &u32| self.of_rank.contains_key(rank);
        comm.everybody().filter(|rank| here(rank) && came.binary_search(rank).is_err()).collect()
    }

    /// Told at the end: what was never received, never completed, or broke off.
    pub(super) fn conclude(&mut self) {
        let (count, left) = self.messages.left(MOST);
        let mut words: Vec<String> = left
            .into_iter()
            .map(|message| {
                let sent = message.sent.map_or(0, |(_, at)| at);
                format!(
                    "a message was sent at {} and never received: {}",
                    self.when(sent),
                    self.message(message)
                )
            })
            .collect();
        self.findings.sends_without_receive = count;
        for collective in self
            .collectives
            .left()
            .into_iter()
            .filter(|collective| !collective.forced && !collective.everybody_entered())
        {
            self.findings.incomplete_collectives += 1;
            if self.findings.incomplete_collectives <= MOST as u64 {
                words.push(self.incomplete(collective));
            }
        }
        // What breaks off explains much of the rest.
        let broken = self.places.iter().enumerate().filter_map(|(location, place)| {
            let damage = place.damage.as_ref()?;
            Some(format!("{} breaks off at {}: {damage}", self.who(location as u32), self.when(place.now)))
        });
        let broken: Vec<String> = broken.take(MOST).collect();
        self.findings.told.splice(0..0, broken);
        let others_finalized = self.places.iter().any(|place| place.finalized);
        for (location, place) in self.places.iter().enumerate() {
            let (who, when) = (self.who(location as u32), self.when(place.now));
            if let Some(call) = &place.call {
                words.push(format!("{who} ends at {when} within {}", self.region(call.region)));
            } else if (others_finalized || place.initialized)
                && !place.finalized
                && self.of_rank.get(&place.rank) == Some(&(location as u32))
            {
                words.push(format!("{who} ends at {when} without MPI_Finalize"));
            }
            let unplaced = place.ledger.unplaced();
            self.findings.noise_without_time_ns += unplaced.unsigned_abs();
        }
        self.findings.told.append(&mut words);
    }

    /// A collective that is over.
    pub(super) fn judge(&mut self, collective: &Collective) {
        if collective.mismatched {
            self.findings.mismatched_collectives += 1;
            if Findings::tells(self.findings.mismatched_collectives) {
                let words = format!(
                    "ranks do not agree what collective {} on {} is, entered last at {}",
                    collective.number,
                    self.comm(collective.comm),
                    self.when(collective.last_entry.0),
                );
                self.findings.told.push(words);
            }
        }
    }

    pub(super) fn went_back(&mut self, location: u32, by: i64) {
        self.findings.clock_backwards.add(by);
        if Findings::tells(self.findings.clock_backwards.times) {
            let words = format!(
                "{}: the clock goes back by {by} ns at {}",
                self.who(location),
                self.when(self.places[location as usize].now)
            );
            self.findings.told.push(words);
        }
    }

    pub(super) fn before_cause(&mut self, location: u32, by: i64) {
        self.findings.before_cause.add(by);
        if Findings::tells(self.findings.before_cause.times) {
            let words = format!(
                "{} ends a call at {}, {by} ns before what it waited for: the clocks disagree",
                self.who(location),
                self.when(self.places[location as usize].now),
            );
            self.findings.told.push(words);
        }
    }

    pub(super) fn undefined(&mut self, location: u32, what: &str) {
        self.findings.undefined += 1;
        if Findings::tells(self.findings.undefined) {
            let words = format!(
                "{} names {what} that the archive does not define, at {}",
                self.who(location),
                self.when(self.places[location as usize].now),
            );
            self.findings.told.push(words);
        }
    }

    fn incomplete(&self, collective: &Collective) -> String {
        let missing = self.missing_ranks(collective);
        if missing.is_empty() {
            return format!(
                "a collective (number {}) on {}, last entered at {}, was not left by all",
                collective.number,
                self.comm(collective.comm),
                self.when(collective.last_entry.0),
            );
        }
        let first: Vec<String> = missing.iter().take(8).map(u32::to_string).collect();
        let more = if missing.len() > 8 { format!(" and {} more", missing.len() - 8) } else { String::new() };
        let name = collective
            .operation
            .map_or_else(|| "a collective".to_owned(), |operation| format!("{operation:?}"));
        format!(
            "{name} number {} on {}, last entered at {}, lacks {} {}{more}",
            collective.number,
            self.comm(collective.comm),
            self.when(collective.last_entry.0),
            if missing.len() == 1 { "rank" } else { "ranks" },
            first.join(", "),
        )
    }

    pub(super) fn who(&self, location: u32) -> String {
        match self.definitions.locations.get(location as usize) {
            Some(facts) if facts.thread > 0 => format!("rank {} thread {}", facts.rank, facts.thread),
            Some(facts) => format!("rank {}", facts.rank),
            None => format!("location {location}"),
        }
    }

    fn when(&self, at: i64) -> String {
        format!("{:.9} s", (at - self.begin()) as f64 * 1e-9)
    }

    pub(super) fn region(&self, region: u32) -> String {
        let known = self.definitions.regions.get(region as usize);
        known.map_or_else(|| format!("region {region}"), |region| region.name.clone())
    }

    fn comm(&self, comm: u32) -> String {
        let known = self.definitions.comms.get(comm as usize).filter(|comm| !comm.name.is_empty());
        known.map_or_else(|| format!("communicator {comm}"), |comm| comm.name.clone())
    }

    fn message(&self, message: &Message) -> String {
        let channel = message.channel;
        format!(
            "rank {} to rank {}, tag {}, {}",
            channel.from,
            channel.to,
            channel.tag,
            self.comm(channel.comm)
        )
    }

    /// When the run began.
    pub(super) fn begin(&self) -> i64 {
        let first = self.places.iter().filter_map(|place| place.first).min().unwrap_or(0);
        let last = self.places.iter().map(|place| place.now).max().unwrap_or(first);
        let told = i64::try_from(self.definitions.span_ns[0]).unwrap_or(first);
        // An archive that names another clock's zero has not told when it began.
        let believable = told <= first && first - told <= (last - first).saturating_mul(100);
        if believable { told } else { first }
    }
}
