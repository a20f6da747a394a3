//! Arguments of `quell predict`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use quell_request::predict::PredictArgs;

use super::sweep::SweepArgs;

/// Arguments of `quell predict`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell predict a.quell --ranks 16..2048\n  quell predict a.quell --ranks 1Mi --quantum 500us --sync phase\n  quell predict a.quell --op allreduce --bytes 64Ki --net L=1500,o=300,g=100,G=0.04\n  quell predict --noise model.toml --ranks 16,256,2048 --seed 7 --json\n  quell predict a.quell --without tick --on-cpu 'task:^kworker=0'      what if\n  srun -n 64 quell predict --sweep plan.toml      every combination of what the plan lists, as one Parquet dataset",
    mut_arg("output", |arg| arg.short('o'))
)]
pub struct Predict {
    #[command(flatten)]
    pub options: PredictArgs,
    /// Print one JSON document (schema quell.predict/2).
    #[arg(long, help_heading = Option::<&str>::None)]
    pub json: bool,
    /// Predict all combinations of the values that a plan in TOML lists, each under the name of its option here, into a Parquet dataset.
    /// The processes of srun, mpirun or a Slurm job array divide them up; a repeated run computes only what is missing.
    #[arg(long, value_name = "PLAN.toml", help_heading = Option::<&str>::None, conflicts_with_all = ["recordings", "noise", "ranks", "quantum", "op", "bytes", "progress", "sync", "skew", "drift", "phases", "seed", "NetArgs", "WhatIfArgs"])]
    pub sweep: Option<PathBuf>,
    #[command(flatten)]
    pub sweeping: SweepArgs,
}
