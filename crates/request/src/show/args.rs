//! The options of `show`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What a row of `show` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A row per CPU.
    Cpu,
    /// A row per noise source.
    Source,
    /// A row per task that ran instead of the program.
    Task,
    /// A row per class of source: Type 1 (short, periodic), Type 2 (daemons), and so on.
    Class,
}

/// The recordings, and how to group them.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A recording, several of them, or a folder of recordings, such as those of several hosts or of a `bench` run.
    #[arg(value_name = "R.quell|DIR", required = true)]
    pub recordings: Vec<PathBuf>,
    /// What a row stands for; for several recordings, `cpu` means a row per host.
    #[arg(long, value_enum, default_value = "cpu")]
    pub by: By,
}
