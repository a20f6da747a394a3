//! The options of `compare`.

use std::path::PathBuf;

use clap::Args;

/// The two recordings to compare, and the seed.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The baseline recording.
    #[arg(value_name = "BEFORE.quell")]
    pub before: PathBuf,
    /// The recording to compare with the baseline.
    #[arg(value_name = "AFTER.quell")]
    pub after: PathBuf,
    /// Random seed of the resampling.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
