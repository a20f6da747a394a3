//! Teams of OpenMP threads: their forks, shares, barriers and joins.

use quell_recording::mpi::{Operation, Run, UNKNOWN};

use super::Watch;
use super::collectives::Part;
use super::engine::Engine;
use super::event_reader::{CollectiveEnd, Fact, TeamBarrier, TeamId};
use super::place::Call;
use super::teams::{Reached, TeamWait};

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    /// Processes an event of a team.
    pub(super) fn team(&mut self, location: u32, fact: Fact) {
        match fact {
            Fact::Forked { team } => {
                let reached = self.reach(location);
                let woken = self.teams.fork(team, reached);
                self.wake_all(woken);
            }
            Fact::TeamBegin { team, forked_it: true } => {
                self.reach(location);
                self.teams.begin(team);
            }
            Fact::TeamBegin { team, forked_it: false } => self.wait_for_team(location, TeamWait::Fork(team)),
            Fact::TeamEnd { team, forked_it } => self.end_share(location, team, forked_it),
            Fact::Joined { team, begun, came } => {
                self.wait_for_team(location, TeamWait::Join { team, begun, came });
            }
            Fact::BarrierBegin { region, depth } => {
                // At its entry, or after a call of MPI within.
                let place = &mut self.places[location as usize];
                place.ledger.enter(place.now);
                place.begin_call(Call::new(region, place.path(), place.now, Some(depth)));
            }
            Fact::Barrier(barrier) => self.pass_barrier(location, barrier),
            _ => {}
        }
    }

    /// Ends the work of a location until now, and returns when that is on the noise-free timelines.
    fn reach(&mut self, location: u32) -> Reached {
        let place = &mut self.places[location as usize];
        if place.call.is_none() {
            place.ledger.close_interval(place.now);
        }
        let at = place.now;
        let quiet = place.ledger.accumulated.iter().map(|accumulated| at - accumulated).collect();
        Reached { location, at, quiet }
    }

    /// A thread has come to the join. From now on it waits, the one that forked the team for the join, the others for the next fork.
    fn end_share(&mut self, location: u32, team: TeamId, forked_it: bool) {
        let reached = self.reach(location);
        self.places[location as usize].idle_since = Some(reached.at);
        if !forked_it {
            let woken = self.teams.come(team, reached);
            self.wake_all(woken);
        }
    }

    /// A thread has waited until now, as in a call.
    fn wait_for_team(&mut self, location: u32, wait: TeamWait) {
        let place = &mut self.places[location as usize];
        if place.call.is_some() {
            return;
        }
        let region = place.stack.last().map_or(UNKNOWN, |frame| frame.region);
        let idle_since = place.idle_since.take();
        let mut call = Call::new(region, place.path(), idle_since.unwrap_or(place.now), None);
        call.team = Some(wait);
        call.is_first = place.first == Some(place.now) && place.stack.is_empty();
        match idle_since {
            Some(since) => {
                place.ledger.enter_late();
                if matches!(wait, TeamWait::Fork(_)) {
                    self.paths.idle = self.paths.idle.saturating_add(place.now - since);
                }
            }
            None => place.ledger.enter(place.now),
        }
        place.call = Some(call);
        self.close_call(location, false);
    }

    /// The threads of a team wait for each other as the ranks in `MPI_Barrier` do.
    fn pass_barrier(&mut self, location: u32, barrier: TeamBarrier) {
        let TeamBarrier { team, number, threads, place } = barrier;
        let comm = self.definitions.comms.len() as u32 + team.process;
        let key = (comm, u64::from(team.number) << 32 | u64::from(number));
        let Some(call) = &self.places[location as usize].call else { return };
        let part = Part { location, place, entered: call.entered, left: None, bytes: 0 };
        let ends = CollectiveEnd { kind: Operation::Barrier, root: None, sent: 0, received: 0 };
        let accumulated = self.places[location as usize].ledger.accumulated.clone();
        let (id, part, waiting) =
            self.collectives.enter(key, threads as usize, part, Some(&ends), &accumulated);
        self.wake_all(waiting);
        if let Some(call) = &mut self.places[location as usize].call {
            call.blocking = Some((id, part));
        }
    }

    fn wake_all(&mut self, locations: Vec<u32>) {
        for location in locations {
            self.wake(Some(location));
        }
    }
}
