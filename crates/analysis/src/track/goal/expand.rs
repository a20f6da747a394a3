//! Expands collectives to messages, with the algorithms of `quell_sim::pattern`.

use quell_recording::mpi::Operation;
use quell_sim::pattern::{AnyPattern, Params, PatternError, Steps, by_name};
use rustc_hash::FxHashMap;

/// Allreduces of more bytes use reduce-scatter and allgather, as in MPI libraries, so that no rank receives all bytes several times.
const LONG_BYTES: u64 = 64 << 10;

/// A collective operation with its size and root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct What {
    pub operation: Operation,
    /// Size of the vector, or of each rank's block, in bytes.
    pub bytes: u64,
    /// Index of the root in the group; 0 if there is none.
    pub root: u32,
}

/// The name of the algorithm; `None` if no rank has to wait.
fn algorithm(what: &What) -> Option<&'static str> {
    use Operation as Op;
    Some(match what.operation {
        Op::Barrier | Op::Create => "dissemination",
        Op::Bcast => "binomial-bcast",
        Op::Reduce => "binomial-reduce",
        Op::Scatter | Op::Scatterv => "binomial-scatter",
        Op::Gather | Op::Gatherv => "binomial-gather",
        Op::Allgather | Op::Allgatherv => "allgather-bruck",
        Op::Alltoall | Op::Alltoallv | Op::Alltoallw => "alltoall-pairwise",
        Op::Allreduce if what.bytes > LONG_BYTES => "allreduce-rabenseifner",
        Op::Allreduce => "allreduce-recursive-doubling",
        Op::ReduceScatter | Op::ReduceScatterBlock => "reduce-scatter",
        Op::Scan | Op::Exscan => "scan",
        Op::Destroy => return None,
    })
}

/// The patterns that were made, each once.
#[derive(Debug, Default)]
pub(super) struct Expansions(FxHashMap<(What, u32), Option<Steps<AnyPattern>>>);

impl Expansions {
    /// The pattern of a collective of this number of ranks; `None` if there is nothing to do.
    pub fn get(&mut self, what: &What, ranks: u32) -> Result<Option<&Steps<AnyPattern>>, PatternError> {
        let made = match self.0.entry((*what, ranks)) {
            std::collections::hash_map::Entry::Occupied(made) => made.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let params = Params { ranks, bytes: what.bytes, root: what.root, ..Params::default() };
                let steps = match algorithm(what).filter(|_| ranks > 1) {
                    Some(name) => Some(by_name(name, &params)?),
                    None => None,
                };
                place.insert(steps)
            }
        };
        Ok(made.as_ref())
    }
}

#[cfg(test)]
mod tests;
