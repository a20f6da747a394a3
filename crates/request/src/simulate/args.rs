//! The options of `simulate`.

use std::path::PathBuf;

use clap::Args;
use quell_recording::Nanos;

use crate::WhatIfArgs;
use crate::messages::ProgressName;
use crate::network::NetArgs;
use crate::pattern::PatternArgs;

/// The program to simulate, its network and its noise. The parameters of the network have LogGOPSim's single letters.
#[derive(Debug, Args)]
#[command(
    mut_arg("latency", |arg| arg.short('L')),
    mut_arg("overhead", |arg| arg.short('o')),
    mut_arg("gap", |arg| arg.short('g')),
    mut_arg("gap_per_byte", |arg| arg.short('G')),
    mut_arg("overhead_per_byte", |arg| arg.short('O')),
    mut_arg("eager_limit", |arg| arg.short('S'))
)]
pub struct SimulateArgs {
    /// The schedule to simulate, as GOAL text or in LogGOPSim's binary format, which is detected from the content.
    #[arg(value_name = "F.goal|F.bin", conflicts_with = "pattern")]
    pub schedule: Option<PathBuf>,
    /// Simulate a named pattern instead of a schedule; `quell goal list` lists them.
    #[arg(long, value_name = "NAME")]
    pub pattern: Option<String>,
    /// Use LogGOPSim's rules, exact to the nanosecond, for noise too. By default, quell uses rules that hold on real machines.
    #[arg(long)]
    pub compat: bool,
    /// When a message is handled: `call`, once its receive is posted, as by most MPIs, or `async`, when it arrives, as with a progress
    /// thread [default: call for a pattern, async for a schedule].
    #[arg(long, value_name = "WHEN", hide_possible_values = true, conflicts_with = "compat")]
    pub progress: Option<ProgressName>,
    /// Noise: a recording, a netgauge or CSV file, or a model in TOML. Several are assigned to the nodes of one machine in turn.
    #[arg(long, value_name = "FILE")]
    pub noise: Vec<PathBuf>,
    /// File with the offset in the noise trace at which each rank starts: one number of ns per line, rank 0 first. The noise must be that
    /// of one CPU.
    #[arg(long, value_name = "FILE", requires = "noise", conflicts_with_all = ["cosched", "skew"])]
    pub offsets: Option<PathBuf>,
    /// Start all nodes at the same offset in the noise trace, instead of each at its own.
    #[arg(long, requires = "noise")]
    pub cosched: bool,
    /// As --cosched, but start each node up to this much later.
    #[arg(long, value_name = "TIME", requires = "noise")]
    pub skew: Option<Nanos>,
    /// Simulate without noise too, and report what the noise costs.
    #[arg(long, requires = "noise")]
    pub baseline: bool,
    /// Report which noise delayed the program: the detours on its critical path, by source, and how much noise was absorbed.
    #[arg(long, requires = "noise", conflicts_with = "compat")]
    pub culprits: bool,
    /// Random seed of the offsets in the noise trace; equal seeds give equal results.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of threads; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// List the times of every rank in the JSON document even above 4,096 ranks.
    #[arg(long)]
    pub all_times: bool,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
    /// Changes of the noise.
    #[command(flatten)]
    pub what_if: WhatIfArgs,
    /// The parameters of the pattern.
    #[command(flatten)]
    pub parameters: PatternArgs,
}
