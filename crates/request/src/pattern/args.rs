//! The options of patterns.

use clap::Args;
use quell_recording::Nanos;

use crate::network::PerByteText;
use crate::size::{DimsText, Ranks, Size};

/// The parameters of a named pattern. Those that a pattern does not have are refused.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Pattern parameters (`quell goal list` says which pattern has which)")]
pub struct PatternArgs {
    /// Ranks of the pattern; `Ki` and `Mi` are understood.
    #[arg(long, value_name = "N")]
    pub ranks: Option<Ranks>,
    /// Bytes of a message, or of each rank's part of it.
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// How often the whole pattern runs, one time after the other.
    #[arg(long, value_name = "N")]
    pub iterations: Option<Size>,
    /// Work of each rank in an iteration, for the patterns that work.
    #[arg(long, value_name = "TIME")]
    pub work: Option<Nanos>,
    /// The pattern that follows the work, for the loop `bsp`.
    #[arg(long, value_name = "NAME")]
    pub inner: Option<String>,
    /// Ranks in each direction, for patterns on a grid.
    #[arg(long, value_name = "8x8x16")]
    pub dims: Option<DimsText>,
    /// The rank from which or to which data flow.
    #[arg(long, value_name = "RANK")]
    pub root: Option<u32>,
    /// To how many others a rank speaks in a round of a dissemination.
    #[arg(long, value_name = "N")]
    pub nway: Option<u32>,
    /// Bytes of a piece of what goes down a pipeline.
    #[arg(long, value_name = "SIZE")]
    pub segment_bytes: Option<Size>,
    /// The ends of the grid are neighbours.
    #[arg(long)]
    pub periodic: bool,
    /// Ranks on a node, for patterns that know nodes.
    #[arg(long, value_name = "N")]
    pub node_ranks: Option<Ranks>,
    /// Buckets in which a training step sums its gradients up.
    #[arg(long, value_name = "N")]
    pub buckets: Option<Size>,
    /// Work of the optimizer at the end of a training step.
    #[arg(long, value_name = "TIME")]
    pub optimizer: Option<Nanos>,
    /// Blocks of a sweep along the third dimension.
    #[arg(long, value_name = "N")]
    pub blocks: Option<Size>,
    /// Work of combining what was received with what is there, in ns for each byte.
    #[arg(long, value_name = "NS")]
    pub reduce_per_byte: Option<PerByteText>,
}
