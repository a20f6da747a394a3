//! What was typed for `--sweep`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::share::ShardText;
use quell_request::Usage;

/// How a sweep runs. Which it is, each verb has itself, for it goes with none of the verb's other options.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Sweeps (with --sweep)")]
pub struct SweepArgs {
    /// The folder of the dataset, which all processes see; PLAN.sweep for PLAN.toml if not given. What is there already is not
    /// computed again.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Do the I-th of N shares, counted from 1. Slurm, its job arrays and MPI launchers tell by themselves; each task of another
    /// batch system's array needs it.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<ShardText>,
    /// Only say how many points there are, how many are left, whose they are and about what they cost.
    #[arg(long)]
    pub dry_run: bool,
}

impl SweepArgs {
    /// Refuses these where there is no sweep.
    pub fn refuse(&self) -> Result<(), Usage> {
        let given = [
            ("--output", self.output.is_some()),
            ("--shard", self.shard.is_some()),
            ("--dry-run", self.dry_run),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(Usage(format!("{option} is for sweeps: add --sweep PLAN.toml, or leave it out")))
            }
            None => Ok(()),
        }
    }
}
