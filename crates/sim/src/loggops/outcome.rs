//! What a message simulation found.

use super::noise::NoiseError;
use super::program::ANY;

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Operations that became free and messages that were sent: LogGOPSim's count.
    pub events: u64,
    /// When each rank's CPUs had done their last work, in nanoseconds.
    pub finish: Vec<u64>,
    /// The noise that struck each rank's work, in nanoseconds.
    pub noise: Vec<u64>,
    /// Why the program did not end, if it did not.
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

/// What was left when nothing could go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Receives that no message came for: the first few.
    pub receives: Vec<Waiting>,
    /// How many of them there are.
    pub receives_total: u64,
    /// Messages that nobody received: the first few. `rank` is the receiver's, `op` the send's.
    pub messages: Vec<Waiting>,
    /// How many of them there are.
    pub messages_total: u64,
    /// Ranks whose operations were not all freed, with their numbers: the first few.
    pub unfreed: Vec<(u32, u64)>,
    /// How many operations were never freed, on all ranks.
    pub unfreed_total: u64,
    /// Ranks that wait for one another in a circle, each for the next and the last for the first; empty where there is no
    /// such circle.
    pub cycle: Vec<u32>,
}

/// One end of a message without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The rank where it waits.
    pub rank: u32,
    /// The number of the operation in its rank.
    pub op: u32,
    /// The other rank, or [`ANY`].
    pub peer: u32,
    /// The tag, or [`ANY`].
    pub tag: u32,
    /// Bytes.
    pub size: u64,
}

impl Waiting {
    /// The other rank, where it is known.
    pub fn peer(&self) -> Option<u32> {
        (self.peer != ANY).then_some(self.peer)
    }
}

/// Why a program cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The noise does not fit.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// LogGOPSim knows whole numbers only.
    #[error(
        "{0} is not a whole number of nanoseconds, which --compat needs as LogGOPSim does: leave out --compat"
    )]
    Fraction(&'static str),
    /// A program that names a rank that it has not.
    #[error("rank {rank} names rank {peer}, and there are {ranks} ranks: `quell goal check` finds where")]
    Peer {
        /// The rank.
        rank: u32,
        /// Whom it names.
        peer: u32,
        /// How many there are.
        ranks: u32,
    },
    /// Stopped by who looked at its progress.
    #[error("it was stopped before its end")]
    Stopped,
    /// A time past 2⁶² ns.
    #[error(
        "times grow past 146 years: the work or the messages of this program are larger than can be simulated"
    )]
    Overflow,
}
