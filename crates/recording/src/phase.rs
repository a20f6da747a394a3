//! Phases of an MPI program: compute, then an operation. The rows of `quanta` in the recording of a benchmark.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Nanos;

/// One phase of one rank (De et al. 2008, Algorithm 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The rank.
    pub rank: u32,
    /// Number of the phase, from 0; the same on all ranks.
    pub index: u64,
    /// When its compute part began, relative to the zero of its recording.
    pub start: Nanos,
    /// Number of steps of work.
    pub work: u64,
    /// The paper's qt: compute time.
    pub compute: Nanos,
    /// The paper's bt: time in the operation that ends the phase.
    pub wait: Nanos,
}

impl Phase {
    /// The paper's qtb: the sum of both.
    pub fn total(&self) -> Nanos {
        self.compute + self.wait
    }

    /// When the rank finished computing and reached the operation.
    pub fn computed(&self) -> Nanos {
        self.start + self.compute
    }

    /// When the rank left the operation.
    pub fn end(&self) -> Nanos {
        self.computed() + self.wait
    }
}

/// A rank whose phases are in a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankFacts {
    /// The rank.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// CPUs that it was allowed to use, as in `0,2-5`.
    pub cpus: String,
    /// Time of one step of work without noise, in ns; 0 if there was no work.
    pub ns_per_iteration: f64,
    /// Time that reading the clock adds to each of its phases, in ns.
    #[serde(default)]
    pub timing_ns: f64,
    /// Offset to add to this host's clock at the recording's zero to get rank 0's, in ns.
    pub clock_offset_ns: i64,
    /// Maximum error of that offset, in ns; 0 if both have the same clock.
    pub clock_error_ns: u64,
}

/// The MPI program whose phases a recording holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MpiFacts {
    /// `bsp`, `allreduce`, `halo`, `fwq`.
    pub bench: String,
    /// The MPI library, as it names itself.
    pub library: String,
    /// The operation that ends a phase, such as `barrier`.
    pub operation: String,
    /// Size of its messages, in bytes.
    pub bytes: u64,
    /// Number of ranks of the whole job.
    pub ranks: u32,
    /// Ranks on this host.
    pub here: Vec<RankFacts>,
}

#[cfg(test)]
mod tests;
