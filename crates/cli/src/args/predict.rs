//! What was typed for `quell predict`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use quell_recording::Nanos;

use crate::plan::RankList;

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

/// What the ranks wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OpName {
    /// The slowest rank, at no cost of its own.
    Max,
}

/// `quell predict`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell predict a.quell --ranks 16..2048\n  quell predict a.quell --ranks 1Mi --quantum 500us --sync phase\n  quell predict --noise model.toml --ranks 16,256,2048 --seed 7 --json"
)]
pub struct Predict {
    /// Recordings; several make the nodes of one machine in turn.
    #[arg(value_name = "R.quell", required_unless_present = "noise")]
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
    /// What ends a phase.
    #[arg(long, value_enum, default_value = "max")]
    pub op: OpName,
    /// How the nodes' noise lines up.
    #[arg(long, value_enum, default_value = "none")]
    pub sync: SyncName,
    /// With --sync start: each node starts later by up to this much.
    #[arg(long, default_value = "0ns", value_name = "TIME")]
    pub skew: Nanos,
    /// With --sync start: each node runs faster or slower by up to so many parts per million.
    #[arg(long, default_value_t = 0.0, value_name = "PPM")]
    pub drift: f64,
    /// Phases to simulate.
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
}
