//! The options of `show`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How `show` groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A row per CPU.
    Cpu,
    /// A row per noise source.
    Source,
    /// A row per task that ran in the program's place.
    Task,
    /// A row per class of source: Type 1 (short, periodic), Type 2 (daemons), and so on.
    Class,
}

/// What is to be shown.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The recording, or a folder of recordings, as of many hosts or of a `bench` run.
    #[arg(value_name = "R.quell|DIR")]
    pub recording: PathBuf,
    /// What a row stands for; of a folder, `cpu` is a row per host.
    #[arg(long, value_enum, default_value = "cpu")]
    pub by: By,
}
