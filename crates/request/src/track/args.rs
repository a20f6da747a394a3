//! The options of `track`.

use std::path::PathBuf;

use clap::Args;

use crate::network::NetArgs;

/// What is to be tracked.
#[derive(Debug, Args)]
pub struct TrackArgs {
    /// The run: a folder that `quell trace` made, any OTF2 archive's folder, or its anchor file (`traces.otf2`).
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
}
