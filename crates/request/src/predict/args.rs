//! The options of `predict`.

use std::path::PathBuf;

use clap::Args;

use crate::WhatIfArgs;
use crate::job::JobArgs;
use crate::messages::MessageArgs;
use crate::network::NetArgs;

/// The recordings, the job, its messages and the changes of the noise.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Recordings. Several are assigned to the nodes of one machine in turn.
    #[arg(value_name = "R.quell")]
    pub recordings: Vec<PathBuf>,
    /// A synthetic noise model in TOML, or one more recording, instead of or in addition to recordings.
    #[arg(long, value_name = "MODEL.toml")]
    pub noise: Vec<PathBuf>,
    /// The job to predict.
    #[command(flatten)]
    pub job: JobArgs,
    /// What ends a phase.
    #[command(flatten)]
    pub messages: MessageArgs,
    /// Number of threads; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
    /// Changes of the noise.
    #[command(flatten)]
    pub what_if: WhatIfArgs,
}
