//! Defects of an archive, and how they were handled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::warning::track::ArchiveWarning;

/// Maximum number of findings of a kind that are reported individually.
pub(super) const MOST: usize = 20;

/// Defects of an archive. All times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Clocks that ran backwards at a location: how often, and by how much at most. The event got the time of the previous one.
    pub clock_backwards: Count,
    /// Messages that were received before they were sent, and collectives that were left before all had entered. They are assumed to
    /// take no time, and to pass on the delay by noise.
    pub before_cause: Count,
    /// Noise counters that decreased. The noise that they lost is unknown, and counts as none.
    pub counters_backwards: u64,
    /// Noise for which the archive has no time.
    pub noise_without_time_ns: u64,
    /// Receives whose messages were not sent. They count as work of their own.
    pub receives_without_send: u64,
    /// Messages that were sent and never received.
    pub sends_without_receive: u64,
    /// Collectives in which ranks of their communicator are missing. The ranks that entered waited for one another.
    pub incomplete_collectives: u64,
    /// Collectives whose ranks disagree on the operation. The first one counts.
    pub mismatched_collectives: u64,
    /// Events that refer to something that the archive does not define.
    pub undefined: u64,
    /// Regions that were left and never entered, or entered and never left.
    pub unbalanced: u64,
    /// Each of the above individually, the first few of a kind, and locations whose events break off.
    pub warnings: Vec<ArchiveWarning>,
}

/// A number of occurrences, and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// Number of occurrences.
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

    /// Whether the `count`th finding of a kind is still reported. Checked before its warning is made, because an archive may hold millions.
    pub(super) fn is_significant(count: u64) -> bool {
        count <= MOST as u64
    }
}

#[cfg(test)]
mod tests;
