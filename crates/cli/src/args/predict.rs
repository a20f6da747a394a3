//! What was typed for `quell predict`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use quell_analysis::predict::Mode;
use quell_recording::Nanos;

use super::simulate::NetArgs;
use super::sweep::SweepArgs;
use super::whatif::WhatIf;
use crate::plan::RankList;
use crate::plan::pattern::OpText;
use crate::plan::size::Size;

/// How the ranks' noise lines up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncName {
    /// Each node starts at its own place in the trace.
    None,
    /// All nodes start at the same place, then go their own way.
    Start,
    /// The same place in every phase: perfect co-scheduling.
    Phase,
}

impl From<SyncName> for Mode {
    fn from(name: SyncName) -> Self {
        match name {
            SyncName::None => Self::None,
            SyncName::Start => Self::Start,
            SyncName::Phase => Self::Phase,
        }
    }
}

/// `quell predict`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell predict a.quell --ranks 16..2048\n  quell predict a.quell --ranks 1Mi --quantum 500us --sync phase\n  quell predict a.quell --op allreduce --bytes 64Ki --net L=1500,o=300,g=100,G=0.04\n  quell predict --noise model.toml --ranks 16,256,2048 --seed 7 --json\n  quell predict a.quell --without tick --on-cpu 'task:^kworker=0'      what if\n  srun -n 64 quell predict --sweep plan.toml      every combination of what the plan lists, as one Parquet dataset"
)]
pub struct Predict {
    /// Recordings; several make the nodes of one machine in turn.
    #[arg(value_name = "R.quell", required_unless_present_any = ["noise", "sweep"])]
    pub recordings: Vec<PathBuf>,
    /// A synthetic noise model in TOML, in place of or beside recordings.
    #[arg(long, value_name = "MODEL.toml")]
    pub noise: Vec<PathBuf>,
    /// Ranks: a list (`16,256`) or a range that doubles (`16..2048`); `Ki` and `Mi` are understood.
    #[arg(long, default_value = "16..2048", value_name = "LIST")]
    pub ranks: RankList,
    /// Length of a compute phase without noise.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// What ends a phase: max (the slowest rank, at no cost of its own), or messages under LogGOPS: barrier, allreduce, bcast, reduce,
    /// alltoall, halo2d, halo3d, or any other pattern of `quell goal list`.
    #[arg(long, default_value = "max", value_name = "NAME")]
    pub op: OpText,
    /// Bytes of a message of --op, or of each rank's part [default: 8].
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// How the nodes' noise lines up.
    #[arg(long, value_enum, default_value = "none")]
    pub sync: SyncName,
    /// With --sync start: each node starts later by up to this much.
    #[arg(long, default_value = "0ns", value_name = "TIME")]
    pub skew: Nanos,
    /// With --sync start: each node runs faster or slower by up to so many parts per million.
    #[arg(long, default_value_t = 0.0, value_name = "PPM")]
    pub drift: f64,
    /// Phases to simulate; with messages large scales run fewer, to bound the time.
    #[arg(long, default_value_t = 2000)]
    pub phases: u64,
    /// Seed; equal seeds give equal results.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads to use; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print one JSON document (schema quell.predict/1).
    #[arg(long)]
    pub json: bool,
    /// Predict all combinations of the values that a plan in TOML lists, each under the name of its option here, into a Parquet dataset.
    /// The processes of srun, mpirun or a Slurm job array share them; run again, it does what is missing.
    #[arg(long, value_name = "PLAN.toml", conflicts_with_all = ["recordings", "noise", "ranks", "quantum", "op", "bytes", "sync", "skew", "drift", "phases", "seed", "NetArgs", "WhatIf"])]
    pub sweep: Option<PathBuf>,
    #[command(flatten)]
    pub sweeping: SweepArgs,
    #[command(flatten)]
    pub net: NetArgs,
    #[command(flatten)]
    pub what_if: WhatIf,
}
