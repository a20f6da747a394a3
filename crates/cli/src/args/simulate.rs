//! Arguments of `quell simulate` and `quell goal`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use quell_request::pattern::PatternArgs;
use quell_request::simulate::SimulateArgs;

use super::sweep::SweepArgs;

/// Arguments of `quell simulate`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell simulate app.goal\n  quell simulate --pattern dissemination --ranks 64Ki --bytes 8 --noise a.quell --baseline --culprits\n  quell simulate app.bin --net L=3700,o=200,g=5,G=0.04,S=0\n  quell simulate app.goal --noise a.quell --timeline app.pftrace\n  quell simulate app.goal --compat --noise selfish.txt     as LogGOPSim would, to the nanosecond\n  srun -n 64 quell simulate --sweep plan.toml      every combination of what the plan lists, as one Parquet dataset\n\nA program that does not end (a deadlock, messages that no rank receives) is reported on stderr, with exit code 1."
)]
pub struct Simulate {
    #[command(flatten)]
    pub options: SimulateArgs,
    /// Draw the run for ui.perfetto.dev: at most 64 ranks, evenly spread, and the last rank to finish. The program is simulated a second
    /// time for this, on one thread.
    #[arg(long, value_name = "F.pftrace", help_heading = Option::<&str>::None)]
    pub timeline: Option<PathBuf>,
    /// Print one JSON document (schema quell.simulate/2).
    #[arg(long, help_heading = Option::<&str>::None)]
    pub json: bool,
    /// Simulate all combinations of the values that a plan in TOML lists, each under the name of its option here, into a Parquet dataset.
    /// The processes of srun, mpirun or a Slurm job array divide them up; a repeated run computes only what is missing.
    #[arg(long, value_name = "PLAN.toml", help_heading = Option::<&str>::None, conflicts_with_all = ["schedule", "pattern", "compat", "progress", "noise", "offsets", "cosched", "skew", "baseline", "culprits", "seed", "timeline", "all_times", "NetArgs", "PatternArgs"])]
    pub sweep: Option<PathBuf>,
    #[command(flatten)]
    pub sweeping: SweepArgs,
}

/// Arguments of `quell goal`.
#[derive(Debug, ClapArgs)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "EXAMPLES\n  quell goal check app.goal\n  quell goal convert app.goal -o app.bin\n  quell goal make --pattern dissemination --ranks 1Ki -o barrier.goal\n  quell goal list"
)]
pub struct Goal {
    #[command(subcommand)]
    pub verb: GoalVerb,
}

/// The verbs for schedules.
#[derive(Debug, Subcommand)]
pub enum GoalVerb {
    /// Check a schedule for errors, without running it.
    Check(GoalCheck),
    /// Convert text to LogGOPSim's binary format, or back.
    Convert(GoalConvert),
    /// Make a schedule from a named pattern, for LogGOPSim and other tools.
    Make(Box<GoalMake>),
    /// List the named patterns and their parameters.
    List(GoalList),
}

/// A file format of GOAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GoalForm {
    /// Readable text.
    Text,
    /// The binary format that LogGOPSim's txt2bin writes.
    Binary,
}

/// Arguments of `quell goal check`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell goal check app.goal\n  quell goal check app.bin --json\n\nEXIT CODES\n  0 nothing, or warnings only   1 errors: it would not run to its end"
)]
pub struct GoalCheck {
    /// The schedule, as text or binary.
    #[arg(value_name = "F.goal|F.bin")]
    pub schedule: PathBuf,
    /// Print one JSON document (schema quell.goal-check/1).
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell goal convert`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell goal convert app.goal -o app.bin\n  quell goal convert app.bin -o app.goal\n  quell goal convert app.bin -o app.txt --to text"
)]
pub struct GoalConvert {
    /// The schedule, as text or binary; quell detects which from its content.
    #[arg(value_name = "F.goal|F.bin")]
    pub schedule: PathBuf,
    #[command(flatten)]
    pub target: GoalTarget,
}

/// The file that a schedule is written to.
#[derive(Debug, ClapArgs)]
pub struct GoalTarget {
    /// The file to write: `NAME.goal` is text, `NAME.bin` binary.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// The format, if the name of the file does not select it.
    #[arg(long, value_enum)]
    pub to: Option<GoalForm>,
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `quell goal make`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell goal make --pattern dissemination --ranks 1Ki --bytes 8 -o barrier.goal\n  quell goal make --pattern halo3d --ranks 512 --bytes 64Ki --iterations 10 -o halo.bin"
)]
pub struct GoalMake {
    /// The pattern; `quell goal list` lists all of them.
    #[arg(long, value_name = "NAME")]
    pub pattern: String,
    #[command(flatten)]
    pub target: GoalTarget,
    #[command(flatten)]
    pub parameters: PatternArgs,
}

/// Arguments of `quell goal list`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "EXAMPLES\n  quell goal list\n  quell goal list --json")]
pub struct GoalList {
    /// Print one JSON document (schema quell.goal-list/1).
    #[arg(long)]
    pub json: bool,
}
