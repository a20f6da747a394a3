//! Teams of threads from their fork to their join.

use rustc_hash::FxHashMap;

use super::event_reader::TeamId;

/// When a thread reached a point that others wait for.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub location: u32,
    pub at: i64,
    /// The same on the noise-free timelines.
    pub quiet: Vec<i64>,
}

/// What a thread of a team waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TeamWait {
    /// A worker for the fork.
    Fork(TeamId),
    /// The thread that forked, for `came` others. `begun` threads had a share.
    Join { team: TeamId, begun: u32, came: u32 },
}

#[derive(Clone, Debug, Default)]
struct Team {
    fork: Option<Reached>,
    /// The last worker that came to the join, with the latest of all workers on each noise-free timeline.
    last: Option<Reached>,
    came: u32,
    begun: u32,
    /// Number of threads that had a share; known from the join on.
    threads: Option<u32>,
    waiting: Vec<u32>,
}

/// All teams that are not over.
#[derive(Debug, Default)]
pub(super) struct Teams {
    all: FxHashMap<TeamId, Team>,
}

impl Teams {
    /// Records a fork; returns the locations that waited for it.
    pub fn fork(&mut self, id: TeamId, fork: Reached) -> Vec<u32> {
        let team = self.all.entry(id).or_default();
        team.fork = Some(fork);
        std::mem::take(&mut team.waiting)
    }

    /// Records that a worker came to the join; returns the locations that waited for that.
    pub fn come(&mut self, id: TeamId, reached: Reached) -> Vec<u32> {
        let Some(team) = self.all.get_mut(&id) else { return Vec::new() };
        team.came += 1;
        match &mut team.last {
            Some(last) => {
                for (latest, quiet) in last.quiet.iter_mut().zip(&reached.quiet) {
                    *latest = (*latest).max(*quiet);
                }
                if reached.at > last.at {
                    (last.location, last.at) = (reached.location, reached.at);
                }
            }
            last @ None => *last = Some(reached),
        }
        std::mem::take(&mut team.waiting)
    }

    /// Whether what a thread waits for has happened; if not, the location waits until it has.
    pub fn has_happened(&mut self, wait: TeamWait, location: u32) -> bool {
        let (TeamWait::Fork(id) | TeamWait::Join { team: id, .. }) = wait;
        let team = self.all.entry(id).or_default();
        let happened = match wait {
            TeamWait::Fork(_) => team.fork.is_some(),
            TeamWait::Join { came, .. } => team.came >= came,
        };
        if !happened {
            team.waiting.push(location);
        }
        happened
    }

    /// What a thread waited for; `None` if nothing.
    pub fn cause(&self, wait: TeamWait) -> Option<&Reached> {
        match wait {
            TeamWait::Fork(id) => self.all.get(&id)?.fork.as_ref(),
            TeamWait::Join { team, .. } => self.all.get(&team)?.last.as_ref(),
        }
    }

    /// A thread's share has begun.
    pub fn begin(&mut self, id: TeamId) {
        if let Some(team) = self.all.get_mut(&id) {
            team.begun += 1;
        }
        self.remove_if_over(id);
    }

    /// A wait is over.
    pub fn end_wait(&mut self, wait: TeamWait) {
        match wait {
            TeamWait::Fork(id) => self.begin(id),
            TeamWait::Join { team: id, begun, .. } => {
                if let Some(team) = self.all.get_mut(&id) {
                    team.threads = Some(begun);
                }
                self.remove_if_over(id);
            }
        }
    }

    fn remove_if_over(&mut self, id: TeamId) {
        let over = |team: &Team| team.threads.is_some_and(|threads| team.begun >= threads);
        if self.all.get(&id).is_some_and(over) {
            self.all.remove(&id);
        }
    }
}
