//! Result of a message simulation.

use super::noise::NoiseError;
use super::program::ANY;

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Operations that became free and messages that were sent: LogGOPSim's count.
    pub events: u64,
    /// When each rank's CPUs finished their last work, in nanoseconds.
    pub finish: Vec<u64>,
    /// The noise that struck each rank's work, in nanoseconds.
    pub noise: Vec<u64>,
    /// Why the program did not finish, if it did not.
    pub stuck: Option<Stuck>,
}

impl Outcome {
    /// The lowest of the ranks that finished last, and when: (0, 0) for no ranks.
    pub fn last(&self) -> (u32, u64) {
        let later = |best: (u32, u64), (rank, &at): (usize, &u64)| {
            if at > best.1 { (rank as u32, at) } else { best }
        };
        self.finish.iter().enumerate().fold((0, 0), later)
    }
}

/// What remained when no rank could go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Receives without a message: the first few.
    pub receives: Vec<Waiting>,
    /// Number of such receives.
    pub receives_total: u64,
    /// Messages without a receive: the first few. `rank` is the receiver's, `op` the send's.
    pub messages: Vec<Waiting>,
    /// Number of such messages.
    pub messages_total: u64,
    /// Ranks whose operations were not all freed, with the number of these operations: the first few ranks.
    pub unfreed: Vec<(u32, u64)>,
    /// Number of operations that were never freed, on all ranks.
    pub unfreed_total: u64,
    /// Ranks that wait for one another in a cycle, each for the next and the last for the first; empty if there is no
    /// such cycle.
    pub cycle: Vec<u32>,
}

/// A receive without its message, or a message without its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The rank where it waits.
    pub rank: u32,
    /// The number of the operation on its rank.
    pub op: u32,
    /// The other rank, or [`ANY`].
    pub peer: u32,
    /// The tag, or [`ANY`].
    pub tag: u32,
    /// Bytes.
    pub size: u64,
}

impl Waiting {
    /// The other rank, if it is known.
    pub fn peer(&self) -> Option<u32> {
        (self.peer != ANY).then_some(self.peer)
    }
}

/// Why a program cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The noise does not fit the program.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// LogGOPSim supports only whole numbers.
    #[error(
        "{0} is not a whole number of nanoseconds, which --compat needs as LogGOPSim does: leave out --compat"
    )]
    Fraction(&'static str),
    /// LogGOPSim has one set of parameters for all sizes.
    #[error(
        "the network has parameters for ranges of sizes, and LogGOPSim knows one set: choose one by size, as in \
         --net FILE.toml@4Ki, or leave out --compat"
    )]
    Ranges,
    /// LogGOPSim has one network between all ranks.
    #[error("the network has levels, and LogGOPSim knows one network between all ranks: leave out --compat")]
    Levels,
    /// The costs of all operations at all levels are too many.
    #[error("the network has {levels} levels: a program of {shapes} kinds of operations can have fewer")]
    TooManyLevels {
        /// Number of levels.
        levels: usize,
        /// Number of kinds of operations.
        shapes: usize,
    },
    /// The program names a rank that it does not have.
    #[error("rank {rank} names rank {peer}, and there are {ranks} ranks: `quell goal check` finds where")]
    Peer {
        /// The rank.
        rank: u32,
        /// The rank that it names.
        peer: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// The progress callback stopped the run.
    #[error("it was stopped before its end")]
    Stopped,
    /// A time past 2⁶² ns.
    #[error(
        "times grow past 146 years: the work or the messages of this program are larger than can be simulated"
    )]
    Overflow,
}
