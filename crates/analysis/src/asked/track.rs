//! `track`: what noise did to an MPI run. The archive is opened by who can.

use std::path::PathBuf;

use clap::Args;

use super::net::{self, NetArgs};
use crate::track::{Network, Tracked};

/// What is to be tracked.
#[derive(Debug, Args)]
pub struct Asked {
    /// The run: a folder that `quell trace` made, any OTF2 archive's folder, or its anchor file (`traces.otf2`).
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
}

impl Asked {
    /// The network, if one was given; else the run's own messages tell.
    pub fn network(&self) -> Option<Network> {
        self.net.is_given().then(|| Network::of(net::of(&self.net, None).0))
    }
}

/// Why a run that was gone through is a failure nevertheless.
pub fn failure(tracked: &Tracked) -> Option<&'static str> {
    let broken = "the archive is not whole or contradicts itself: what is said holds for what is there";
    tracked.findings.broken().then_some(broken)
}
