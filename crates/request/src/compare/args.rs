//! The options of `compare`.

use std::path::PathBuf;

use clap::Args;

/// What is to be compared.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The recording to compare with.
    #[arg(value_name = "BEFORE.quell")]
    pub before: PathBuf,
    /// The recording that is compared.
    #[arg(value_name = "AFTER.quell")]
    pub after: PathBuf,
    /// Seed of the resampling.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
