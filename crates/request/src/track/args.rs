//! The options of `track`.

use std::path::PathBuf;

use clap::Args;

use crate::network::NetArgs;

/// The archive of the run, and its network.
#[derive(Debug, Args)]
pub struct TrackArgs {
    /// The run: a folder that `quell trace` made, the folder of any OTF2 archive, or its anchor file (`traces.otf2`).
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Count page faults as noise. They are the program's own work; `quell trace --own-work` records them.
    #[arg(long)]
    pub own_work: bool,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
}
