//! Arguments of `--sweep`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::share::ShardText;
use quell_request::Usage;

/// How a sweep runs. Each verb declares `--sweep` itself, because it conflicts with the verb's own options.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Sweeps (with --sweep)")]
pub struct SweepArgs {
    /// Folder of the dataset, which all processes must see; PLAN.sweep for PLAN.toml if not given. Points that it already holds are not
    /// computed again.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Compute the I-th of N shares, counted from 1. Under Slurm, its job arrays and MPI launchers, quell detects the share; each task of
    /// another batch system's array needs this option.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<ShardText>,
    /// Only report how many points there are, how many are left, which share of them this process has, and their approximate cost.
    #[arg(long)]
    pub dry_run: bool,
}

impl SweepArgs {
    /// Refuses these options without `--sweep`.
    pub fn refuse(&self) -> Result<(), Usage> {
        let given = [
            ("--output", self.output.is_some()),
            ("--shard", self.shard.is_some()),
            ("--dry-run", self.dry_run),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some(("--output", _)) => Err(Usage(
                "--output is for sweeps: add --sweep PLAN.toml, or leave it out; the result goes to stdout, with --json as a document".into(),
            )),
            Some((option, _)) => {
                Err(Usage(format!("{option} is for sweeps: add --sweep PLAN.toml, or leave it out")))
            }
            None => Ok(()),
        }
    }
}
