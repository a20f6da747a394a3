//! The options of `predict`.

use std::path::PathBuf;

use clap::Args;

use crate::WhatIfArgs;
use crate::job::JobArgs;
use crate::network::NetArgs;
use crate::pattern::OpText;
use crate::size::Size;

/// What is to be predicted.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Recordings; several make the nodes of one machine in turn.
    #[arg(value_name = "R.quell")]
    pub recordings: Vec<PathBuf>,
    /// A synthetic noise model in TOML, in place of or beside recordings.
    #[arg(long, value_name = "MODEL.toml")]
    pub noise: Vec<PathBuf>,
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// What ends a phase: max (the slowest rank, at no cost of its own), or messages under LogGOPS: barrier, allreduce, bcast, reduce,
    /// alltoall, halo2d, halo3d, or any other pattern of `quell goal list`.
    #[arg(long, default_value = "max", value_name = "NAME")]
    pub op: OpText,
    /// Bytes of a message of --op, or of each rank's part [default: 8].
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// Threads to use; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
    /// The noise otherwise than it was recorded.
    #[command(flatten)]
    pub what_if: WhatIfArgs,
}
