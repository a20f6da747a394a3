//! Teams of OpenMP threads: which fork each thread's share belongs to, and which barriers the threads of a team pass together.
//!
//! A process has one team at a time, that of its outermost parallel region. Teams within it, and a second one at the same time, are not followed:
//! what their threads do is work of their own.

use quell_recording::mpi::{Run, What};

use super::EventReader;
use super::fact::{Fact, TeamBarrier, TeamId};

/// The order of events of different threads at the same time: a team is forked before its shares begin, and joined after they end.
pub(super) fn turn(what: What) -> u8 {
    match what {
        What::TeamBegin => 1,
        What::Join => 2,
        _ => 0,
    }
}

/// The team that a process has forked and not joined.
#[derive(Clone, Copy, Debug)]
struct OpenTeam {
    /// The location that forked it.
    master: usize,
    /// Number of threads whose shares have begun.
    begun: u32,
    /// Number of threads other than the master that have come to the join.
    came: u32,
}

/// The teams of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Teams {
    forked: u32,
    open: Option<OpenTeam>,
}

/// A thread's share in a team.
#[derive(Clone, Copy, Debug)]
struct Share {
    team: u32,
    /// Its place among the threads of the team.
    place: u32,
    /// Number of barriers that it passed.
    barriers: u32,
}

/// A thread's place in teams.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    share: Option<Share>,
    /// The last team in which it had a share: it has one at most.
    last: Option<u32>,
    /// Shares and forks that are not followed, and whose ends are still to come.
    other_shares: u32,
    other_forks: u32,
}

impl Member {
    /// Whether the thread works in a team.
    pub fn in_team(&self) -> bool {
        self.share.is_some()
    }
}

impl Teams {
    fn happened(&mut self, id: TeamId, location: usize, member: &mut Member, what: What) -> Option<Fact> {
        match what {
            What::Fork { .. } => self.fork(id, location, member),
            What::TeamBegin => self.begin(id, location, member),
            What::TeamEnd => self.end(id, location, member),
            What::Join => self.join(id, location, member),
            _ => None,
        }
    }

    fn fork(&mut self, id: TeamId, location: usize, member: &mut Member) -> Option<Fact> {
        // A master that forks again outside of its share has lost a join.
        if member.in_team() || self.open.is_some_and(|open| open.master != location) {
            member.other_forks = member.other_forks.saturating_add(1);
            return None;
        }
        self.forked = self.forked.wrapping_add(1);
        self.open = Some(OpenTeam { master: location, begun: 0, came: 0 });
        Some(Fact::Forked { team: TeamId { number: self.forked, ..id } })
    }

    fn begin(&mut self, id: TeamId, location: usize, member: &mut Member) -> Option<Fact> {
        let number = self.forked;
        let follows = member.last != Some(number);
        let Some(open) = self.open.as_mut().filter(|_| follows) else {
            member.other_shares = member.other_shares.saturating_add(1);
            return None;
        };
        member.last = Some(number);
        member.share = Some(Share { team: number, place: open.begun, barriers: 0 });
        open.begun += 1;
        Some(Fact::TeamBegin { team: TeamId { number, ..id }, forked_it: open.master == location })
    }

    fn end(&mut self, id: TeamId, location: usize, member: &mut Member) -> Option<Fact> {
        if member.other_shares > 0 {
            member.other_shares -= 1;
            return None;
        }
        let team = member.share.take()?.team;
        let open = self.open.as_mut().filter(|_| team == self.forked);
        let forked_it = open.as_ref().is_some_and(|open| open.master == location);
        if let Some(open) = open.filter(|_| !forked_it) {
            open.came += 1;
        }
        Some(Fact::TeamEnd { team: TeamId { number: team, ..id }, forked_it })
    }

    fn join(&mut self, id: TeamId, location: usize, member: &mut Member) -> Option<Fact> {
        if member.other_forks > 0 {
            member.other_forks -= 1;
            return None;
        }
        let OpenTeam { begun, came, .. } = self.open.take_if(|open| open.master == location)?;
        Some(Fact::Joined { team: TeamId { number: self.forked, ..id }, begun, came })
    }
}

impl<R: Run + ?Sized> EventReader<'_, R> {
    /// Processes one event of a team.
    pub(super) fn team(&mut self, location: usize, what: What) {
        let process = self.process_of[location];
        let thread = &mut self.threads[location];
        // Within a call of MPI a thread belongs to that.
        if thread.in_call() && !thread.member.in_team() {
            return;
        }
        let id = TeamId { process: process as u32, number: 0 };
        if let Some(fact) = self.teams[process].happened(id, location, &mut thread.member, what) {
            thread.push(fact);
        }
    }

    /// The thread leaves a barrier of its team: all threads that have begun have been in it.
    pub(super) fn leave_barrier(&mut self, location: usize) {
        let process = self.process_of[location];
        let thread = &mut self.threads[location];
        let teams = &self.teams[process];
        let (Some(open), Some(share)) = (teams.open, &mut thread.member.share) else { return };
        if share.team != teams.forked {
            return;
        }
        let team = TeamId { process: process as u32, number: share.team };
        let barrier = TeamBarrier { team, number: share.barriers, threads: open.begun, place: share.place };
        share.barriers = share.barriers.saturating_add(1);
        thread.push(Fact::Barrier(barrier));
    }
}
