//! Timeline of some of the ranks, slice by slice.

use super::{Seen, Watch};
use crate::loggops::event::What;

/// What a CPU of a rank was busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The overhead of a send.
    Send {
        /// The receiver.
        to: u32,
        /// When its turn came; with the sender and the operation this identifies the message.
        sent: u64,
        /// When the first byte arrives.
        arrives: u64,
    },
    /// The overhead of a message that has arrived.
    Receive {
        /// The sender.
        from: u32,
        /// When the turn of its send came.
        sent: u64,
    },
    /// Work.
    Work,
}

/// A CPU's time for one operation or message, in nanoseconds of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The rank.
    pub rank: u32,
    /// Its CPU.
    pub cpu: u8,
    /// What it did.
    pub activity: Activity,
    /// The number of the operation in its rank; of a message, in its sender.
    pub op: u32,
    /// The number of its shape in the program.
    pub shape: u32,
    /// When it started.
    pub start: u64,
    /// When the CPU was free again, noise included.
    pub end: u64,
    /// How much of that was noise.
    pub noise: u64,
}

/// The slices of some ranks in the order in which they were played, which on each rank is the order of time.
#[derive(Clone, Debug)]
pub struct Timeline {
    ranks: Vec<u32>,
    limit: usize,
    slices: Vec<Slice>,
    dropped: u64,
}

impl Timeline {
    /// A timeline of `ranks`, of at most `limit` slices.
    pub fn new(mut ranks: Vec<u32>, limit: usize) -> Self {
        ranks.sort_unstable();
        ranks.dedup();
        Self { ranks, limit, slices: Vec::new(), dropped: 0 }
    }

    /// Selects at most `most` of `ranks`, evenly spaced, including those in `always`.
    pub fn sample(ranks: u32, most: u32, always: &[u32]) -> Vec<u32> {
        let count = u64::from(most.clamp(1, ranks.max(1)));
        let spread = (0..count).map(|at| (at * u64::from(ranks) / count) as u32);
        let mut all: Vec<u32> = spread.chain(always.iter().copied().filter(|rank| *rank < ranks)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The ranks, ascending.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// The slices that were recorded.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Number of slices that exceeded the limit and were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Watch for Timeline {
    fn see(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let activity = match (event.what, seen.sent) {
            (What::Send | What::Answer, Some((to, message))) => {
                Activity::Send { to, sent: message.age, arrives: message.time }
            }
            (What::Message | What::Data, _) => Activity::Receive { from: event.who, sent: event.age },
            (What::Calc, _) => Activity::Work,
            _ => return,
        };
        if self.ranks.binary_search(&seen.rank).is_err() {
            return;
        }
        if self.slices.len() >= self.limit {
            self.dropped += 1;
            return;
        }
        self.slices.push(Slice {
            rank: seen.rank,
            cpu: event.cpu,
            activity,
            op: event.op,
            shape: event.shape,
            start: seen.start,
            end: seen.end,
            noise: seen.noise,
        });
    }
}

#[cfg(test)]
mod tests;
