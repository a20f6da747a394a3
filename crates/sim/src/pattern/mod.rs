//! Patterns: parallel programs that are defined by a rule instead of a list of operations.
//!
//! A [`Pattern`] defines what a rank does in each of its steps, by arithmetic on the numbers of the rank and of the step.
//! [`Steps`] runs it as a [`Program`](crate::loggops::Program), so that a million ranks and thousands of iterations need
//! only the memory for the ranks' places in it; [`unroll()`] lists its operations for a file. [`by_name`] makes the patterns
//! of [`LIST`]: the collectives of MPI libraries, halo exchanges, sweeps, and loops of work and one of these.
//!
//! ```
//! use quell_sim::loggops::{Network, Noise, Rules, Run, run};
//! use quell_sim::pattern::{Params, by_name};
//!
//! let params = Params { ranks: 1000, iterations: 5, work_ns: 100_000, ..Params::default() };
//! let program = by_name("bsp", &params)?;
//! let silence =
//!     Run { net: Network::default(), ranges: &[], levels: &[], rules: Rules::Physical, noise: &Noise::None, threads: 1, progress: quell_sim::loggops::NO_PROGRESS };
//! // Each superstep is its work and a barrier of ten rounds, each of 2·1500 + 2500 + 7·6 ns.
//! assert_eq!(run(&program, &silence)?.last().1, 5 * (100_000 + 10 * 5_542));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binomial;
mod bruck;
mod bsp;
mod dissemination;
mod fold;
mod grid;
mod halo;
mod hierarchical;
mod linear;
mod list;
mod listed;
mod named;
mod ops;
mod pairwise;
mod params;
mod pipeline;
mod rabenseifner;
mod recursive_doubling;
mod ring;
mod scan;
mod steps;
mod sweep;
mod training;
mod unroll;

use crate::loggops::{Peers, Shape, UniformStep};
pub use grid::balanced;
use list::names;
pub use list::{Entry, LIST};
pub use listed::schedule;
pub use named::{AnyPattern, by_name};
pub use ops::StepOps;
pub use params::{MAX_BYTES, Params, PatternError};
pub use steps::{Rank, Steps};
pub use unroll::{UnrollTo, unroll, unroll_rank};

/// One iteration of a parallel program, as a rule.
///
/// Each rank goes through its steps in order, in one lane or in two at the same time. The operations of a step become free
/// together: when all operations of the last non-empty step of the lane are done, and the step of the other lane that
/// it comes after. An iteration begins on a rank when its previous one is done there, in all lanes.
pub trait Pattern: Send + Sync {
    /// Number of ranks.
    fn ranks(&self) -> u32;

    /// Number of CPUs of each rank.
    fn cpus(&self) -> u32 {
        1
    }

    /// The shapes that operations name by number.
    fn shapes(&self) -> &[Shape];

    /// Number of sequences of steps that each rank goes through at the same time: one or two.
    fn lanes(&self) -> u32 {
        1
    }

    /// Number of steps of a rank in a lane; some may be empty.
    fn steps(&self, rank: u32, lane: u32) -> u32;

    /// Adds the operations of a rank in a step: none if it has no part in it.
    fn step(&self, rank: u32, lane: u32, step: u32, ops: &mut StepOps<'_>);

    /// What every rank does in a step, if all do the same; `None` if they differ. Only patterns with one lane have it.
    fn uniform_step(&self, _step: u32) -> Option<UniformStep> {
        None
    }

    /// Number of operations of all ranks together in one iteration, and of the sends among them; `None` if
    /// there are too many to count.
    fn totals(&self) -> Option<(u64, u64)>;
}

#[cfg(test)]
mod tests;
