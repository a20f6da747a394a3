//! What is wrong with an archive, and what was done about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::warning::track::ArchiveWarning;

/// So many of a kind are told one by one.
pub(super) const MOST: usize = 20;

/// What is wrong with an archive. All times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Clocks that ran backwards at a location: how often, and how far at most. The time of the event before was taken.
    pub clock_backwards: Count,
    /// Messages that were received before they were sent, and collectives that were left before they were entered by all. They were taken to
    /// pass in no time, and what noise had delayed them by to be passed on.
    pub before_cause: Count,
    /// Noise counters that went back. What they lost is unknown, and counts as none.
    pub counters_backwards: u64,
    /// Noise for which there was no time in the archive.
    pub noise_without_time_ns: u64,
    /// Receives whose messages nobody sent. They count as work of their own.
    pub receives_without_send: u64,
    /// Messages that were sent and never received.
    pub sends_without_receive: u64,
    /// Collectives in which ranks of their communicator are missing. Those that came waited for one another.
    pub incomplete_collectives: u64,
    /// Collectives of which ranks did not agree on what they are. What the first said was taken.
    pub mismatched_collectives: u64,
    /// Events that name what the archive does not define.
    pub undefined: u64,
    /// Regions that were left and never entered, or the other way round.
    pub unbalanced: u64,
    /// Each of the above by itself, the first few of a kind, and locations whose events break off.
    pub warnings: Vec<ArchiveWarning>,
}

/// How often, and how far at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// How often.
    pub times: u64,
    /// The largest, in ns.
    pub largest_ns: u64,
}

impl Count {
    pub(super) fn add(&mut self, size: i64) {
        self.times += 1;
        self.largest_ns = self.largest_ns.max(size.unsigned_abs());
    }
}

impl Findings {
    /// Whether anything is missing or contradictory, so that the result does not hold for the whole run.
    pub fn broken(&self) -> bool {
        !self.warnings.is_empty()
    }

    /// Whether the `count`th of a kind is still told. Asked before its warning is made: an archive may hold millions.
    pub(super) fn tells(count: u64) -> bool {
        count <= MOST as u64
    }
}
