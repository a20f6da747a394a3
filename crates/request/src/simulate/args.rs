//! The options of `simulate`.

use std::path::PathBuf;

use clap::Args;
use quell_recording::Nanos;

use crate::WhatIfArgs;
use crate::network::NetArgs;
use crate::pattern::PatternArgs;

/// What is to be simulated.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The schedule to play: GOAL as text, or LogGOPSim's binary form of it; its content tells which.
    #[arg(value_name = "F.goal|F.bin", conflicts_with = "pattern")]
    pub schedule: Option<PathBuf>,
    /// A named pattern in place of a schedule; `quell goal list` names them.
    #[arg(long, value_name = "NAME")]
    pub pattern: Option<String>,
    /// Play by LogGOPSim's rules, nanosecond for nanosecond, its noise too. Without it by rules that hold on machines.
    #[arg(long)]
    pub compat: bool,
    /// Noise: a recording, a netgauge or CSV file, or a model in TOML. Several make the nodes of one machine in turn.
    #[arg(long, value_name = "FILE")]
    pub noise: Vec<PathBuf>,
    /// Where in the noise each rank begins: a file with one number of ns a line, rank 0 first. The noise is then one CPU's.
    #[arg(long, value_name = "FILE", requires = "noise", conflicts_with_all = ["cosched", "skew"])]
    pub offsets: Option<PathBuf>,
    /// All nodes begin at one place in the noise, not each at its own.
    #[arg(long, requires = "noise")]
    pub cosched: bool,
    /// As --cosched, but each node later by up to this much.
    #[arg(long, value_name = "TIME", requires = "noise")]
    pub skew: Option<Nanos>,
    /// Run it without noise too, and say what the noise costs.
    #[arg(long, requires = "noise")]
    pub baseline: bool,
    /// Say which noise made the program late: the detours on its critical path, by source, and what was absorbed.
    #[arg(long, requires = "noise", conflicts_with = "compat")]
    pub culprits: bool,
    /// Seed of the places in the noise; equal seeds give equal results.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads to use; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Times of every rank in the JSON document, above 4,096 ranks too.
    #[arg(long)]
    pub all_times: bool,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
    /// The noise otherwise than it was recorded.
    #[command(flatten)]
    pub what_if: WhatIfArgs,
    /// The pattern's parameters.
    #[command(flatten)]
    pub parameters: PatternArgs,
}
