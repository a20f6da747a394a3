//! Parameters of patterns, and why a pattern cannot be made.

use super::grid::{balanced, written};
use crate::bsp::MAX_RANKS;
use crate::loggops::PerByte;

/// Maximum message size of a pattern, in bytes: its time still fits in nanoseconds.
pub const MAX_BYTES: u64 = 1 << 40;
/// Maximum work of a pattern, in nanoseconds: eleven days.
const MAX_WORK_NS: u64 = 1_000_000_000_000_000;
/// Maximum time of a local reduction, in nanoseconds per byte.
const MAX_REDUCE_NS: u64 = 1000;

/// The parameters of patterns. Each pattern uses some of them, as [`LIST`](super::LIST) defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Number of ranks: 1 to 2²⁴.
    pub ranks: u32,
    /// Bytes of a message, of the vector that is reduced, or of each rank's block, depending on the pattern: up to 2⁴⁰.
    pub bytes: u64,
    /// Number of times that the pattern runs, one after the other on each rank.
    pub iterations: u32,
    /// The rank that rooted patterns start from or end at.
    pub root: u32,
    /// Number of messages that a rank sends in a round of the n-way dissemination: 1 to 128.
    pub nway: u32,
    /// Bytes of a segment of a pipelined message.
    pub segment_bytes: u64,
    /// The grid of ranks, its last dimension the fastest; empty for the most balanced one.
    pub dims: Vec<u32>,
    /// Whether the grid wraps around.
    pub periodic: bool,
    /// Nanoseconds of work of a rank: of an iteration (`bsp`, `training-step`) or of a block (`sweep`).
    pub work_ns: u64,
    /// Nanoseconds of work at the end of a training step.
    pub optimizer_ns: u64,
    /// The inner pattern; `None` for the default one.
    pub inner: Option<String>,
    /// Number of ranks per node; they have consecutive numbers, and the last node may have fewer.
    pub node_ranks: u32,
    /// Number of buckets of a training step's gradients.
    pub buckets: u32,
    /// Number of blocks along the third dimension of a sweep.
    pub blocks: u32,
    /// The work of combining received data with local data, per byte. It runs after each receive
    /// that combines, on the CPU of the receive.
    pub reduce_per_byte: PerByte,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            ranks: 64,
            bytes: 8,
            iterations: 1,
            root: 0,
            nway: 2,
            segment_bytes: 8192,
            dims: Vec::new(),
            periodic: false,
            work_ns: 1_000_000,
            optimizer_ns: 0,
            inner: None,
            node_ranks: 8,
            buckets: 16,
            blocks: 10,
            reduce_per_byte: PerByte::default(),
        }
    }
}

/// Why a pattern cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is no pattern with that name.
    #[error("there is no pattern `{name}`; give one of {}", super::names())]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// A parameter is too small or too large.
    #[error("{what}: {value} is out of range; give between {least} and {most}")]
    Range {
        /// The parameter.
        what: &'static str,
        /// The given value.
        value: u64,
        /// The smallest valid value.
        least: u64,
        /// The largest valid value.
        most: u64,
    },
    /// The largest message of a pattern that gathers blocks would be too large.
    #[error(
        "blocks of {bytes} bytes of {ranks} ranks make messages above {MAX_BYTES} bytes; give smaller blocks or fewer ranks"
    )]
    Blocks {
        /// Size of a block, in bytes.
        bytes: u64,
        /// Number of ranks.
        ranks: u32,
    },
    /// The grid has more or fewer places than there are ranks.
    #[error(
        "a grid of {} has {} places for {ranks} ranks; give one with as many places as ranks, such as {}",
        written(.dims), places(.dims), written(&balanced(*.ranks, .dims.len()))
    )]
    Grid {
        /// The given dimensions.
        dims: Vec<u32>,
        /// Number of ranks.
        ranks: u32,
    },
    /// The grid has too many dimensions, or too few.
    #[error("`{pattern}` cannot have a grid of {} dimensions; give {}", .dims.len(), span(*.least, *.most))]
    Dimensions {
        /// The pattern.
        pattern: &'static str,
        /// The given dimensions.
        dims: Vec<u32>,
        /// Minimum number of dimensions.
        least: usize,
        /// Maximum number of dimensions.
        most: usize,
    },
    /// A pattern does not accept this inner pattern.
    #[error("`{outer}` cannot have `{inner}` within it; give {instead}")]
    Inner {
        /// The pattern.
        outer: &'static str,
        /// The inner pattern.
        inner: String,
        /// The inner patterns that it accepts.
        instead: &'static str,
    },
    /// A rank would have more steps in an iteration than can be counted.
    #[error("a rank of `{pattern}` would have {steps} steps in an iteration, of at most 2³²; give {instead}")]
    Steps {
        /// The pattern.
        pattern: &'static str,
        /// Number of steps that the rank would have.
        steps: u64,
        /// What to change.
        instead: &'static str,
    },
}

/// One number of dimensions, or the first and the last.
fn span(least: usize, most: usize) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

fn places(dims: &[u32]) -> u64 {
    dims.iter().fold(1, |places: u64, &dim| places.saturating_mul(u64::from(dim)))
}

/// Checks that a value is in a range.
pub(super) fn within(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), PatternError> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(PatternError::Range { what, value, least, most })
    }
}

impl Params {
    /// Checks that each parameter is in its range, used or not.
    ///
    /// # Errors
    /// For the first parameter that is not.
    pub fn check(&self) -> Result<(), PatternError> {
        within("ranks", u64::from(self.ranks), 1, MAX_RANKS)?;
        within("bytes", self.bytes, 0, MAX_BYTES)?;
        within("iterations", u64::from(self.iterations), 1, 1_000_000_000)?;
        within("root", u64::from(self.root), 0, u64::from(self.ranks) - 1)?;
        within("nway", u64::from(self.nway), 1, 128)?;
        within("segment bytes", self.segment_bytes, 1, MAX_BYTES)?;
        within("work in ns", self.work_ns, 0, MAX_WORK_NS)?;
        within("optimizer's work in ns", self.optimizer_ns, 0, MAX_WORK_NS)?;
        within("ranks of a node", u64::from(self.node_ranks), 1, MAX_RANKS)?;
        within("buckets", u64::from(self.buckets), 1, 1_000_000)?;
        within("blocks", u64::from(self.blocks), 1, 1_000_000)?;
        let reduce_ns = self.reduce_per_byte.as_nanos().ceil() as u64;
        within("reduction in ns per byte", reduce_ns, 0, MAX_REDUCE_NS)
    }

    /// The given grid, checked, or the most balanced one with the default number of dimensions.
    pub(super) fn grid(
        &self,
        pattern: &'static str,
        dimensions: std::ops::RangeInclusive<usize>,
        usual: usize,
    ) -> Result<Vec<u32>, PatternError> {
        if self.dims.is_empty() {
            return Ok(balanced(self.ranks, usual));
        }
        let dims = self.dims.clone();
        if !dimensions.contains(&dims.len()) {
            let (least, most) = dimensions.into_inner();
            return Err(PatternError::Dimensions { pattern, dims, least, most });
        }
        if places(&dims) != u64::from(self.ranks) {
            return Err(PatternError::Grid { dims, ranks: self.ranks });
        }
        Ok(dims)
    }

    /// Checks that a message with the blocks of all ranks is not too large.
    pub(super) fn check_blocks(&self) -> Result<(), PatternError> {
        let (bytes, ranks) = (self.bytes, self.ranks);
        if bytes.saturating_mul(u64::from(ranks)) > MAX_BYTES {
            return Err(PatternError::Blocks { bytes, ranks });
        }
        Ok(())
    }

    /// Whether combining takes time.
    pub(super) fn reduces(&self) -> bool {
        self.reduce_per_byte > PerByte::default()
    }
}
