//! What was typed for `quell simulate` and `quell goal`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use quell_recording::Nanos;

use super::sweep::SweepArgs;
use super::whatif::WhatIf;
use crate::plan::net::{NetText, PerByteText, TimeText};
use crate::plan::size::{DimsText, Ranks, Size};

/// The parameters of a named pattern. Those that a pattern does not have are refused.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Pattern parameters (`quell goal list` says which pattern has which)")]
pub struct PatternArgs {
    /// Ranks of the pattern; `Ki` and `Mi` are understood.
    #[arg(long, value_name = "N")]
    pub ranks: Option<Ranks>,
    /// Bytes of a message, or of each rank's part of it.
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// How often the whole pattern runs, one time after the other.
    #[arg(long, value_name = "N")]
    pub iterations: Option<Size>,
    /// Work of each rank in an iteration, for the patterns that work.
    #[arg(long, value_name = "TIME")]
    pub work: Option<Nanos>,
    /// The pattern that follows the work, for the loop `bsp`.
    #[arg(long, value_name = "NAME")]
    pub inner: Option<String>,
    /// Ranks in each direction, for patterns on a grid.
    #[arg(long, value_name = "8x8x16")]
    pub dims: Option<DimsText>,
    /// The rank from which or to which data flow.
    #[arg(long, value_name = "RANK")]
    pub root: Option<u32>,
    /// To how many others a rank speaks in a round of a dissemination.
    #[arg(long, value_name = "N")]
    pub nway: Option<u32>,
    /// Bytes of a piece of what goes down a pipeline.
    #[arg(long, value_name = "SIZE")]
    pub segment_bytes: Option<Size>,
    /// The ends of the grid are neighbours.
    #[arg(long)]
    pub periodic: bool,
    /// Ranks on a node, for patterns that know nodes.
    #[arg(long, value_name = "N")]
    pub node_ranks: Option<Ranks>,
    /// Buckets in which a training step sums its gradients up.
    #[arg(long, value_name = "N")]
    pub buckets: Option<Size>,
    /// Work of the optimizer at the end of a training step.
    #[arg(long, value_name = "TIME")]
    pub optimizer: Option<Nanos>,
    /// Blocks of a sweep along the third dimension.
    #[arg(long, value_name = "N")]
    pub blocks: Option<Size>,
    /// Work of combining what was received with what is there, in ns for each byte.
    #[arg(long, value_name = "NS")]
    pub reduce_per_byte: Option<PerByteText>,
}

/// The network. Single letters are LogGOPSim's.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Network (LogGOPS)")]
pub struct NetArgs {
    /// A preset, or parameters as in `L=2500,o=1500,g=1000,G=0.04,O=0,S=65535`; `help` lists the presets with their sources.
    /// Or a file of measured ones, FILE.toml, whose parameters for the pattern's size are taken; FILE.toml@4Ki for another.
    /// What is not given is LogGOPSim's default. The options below go before it.
    #[arg(long, value_name = "NAME|L=..,o=..")]
    pub net: Option<NetText>,
    /// L: from the sender's CPU to the receiver's, in ns (LogGOPSim's default: 2500).
    #[arg(short = 'L', long, value_name = "NS")]
    pub latency: Option<TimeText>,
    /// o: CPU time of each send and of each arrival, in ns (1500).
    #[arg(short = 'o', long, value_name = "NS")]
    pub overhead: Option<TimeText>,
    /// g: from one message to the next on an interface, in ns (1000).
    #[arg(short = 'g', long, value_name = "NS")]
    pub gap: Option<TimeText>,
    /// G: time on the wire of each further byte, in ns; fractions as in 0.04 (200 Gb/s) are fine (6).
    #[arg(short = 'G', long, value_name = "NS")]
    pub gap_per_byte: Option<PerByteText>,
    /// O: CPU time of each further byte, in ns (0).
    #[arg(short = 'O', long, value_name = "NS")]
    pub overhead_per_byte: Option<PerByteText>,
    /// S: messages of more bytes are sent by rendezvous (65535).
    #[arg(short = 'S', long, value_name = "BYTES")]
    pub eager_limit: Option<Size>,
}

impl NetArgs {
    /// Whether any of it was typed.
    pub fn is_given(&self) -> bool {
        let times = [self.latency, self.overhead, self.gap].iter().any(Option::is_some);
        let rates = [self.gap_per_byte, self.overhead_per_byte].iter().any(Option::is_some);
        self.net.is_some() || times || rates || self.eager_limit.is_some()
    }
}

/// `quell simulate`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell simulate app.goal\n  quell simulate --pattern dissemination --ranks 64Ki --bytes 8 --noise a.quell --baseline --culprits\n  quell simulate app.bin --net L=3700,o=200,g=5,G=0.04,S=0\n  quell simulate app.goal --noise a.quell --timeline app.pftrace\n  quell simulate app.goal --compat --noise selfish.txt     as LogGOPSim would, to the nanosecond\n  srun -n 64 quell simulate --sweep plan.toml      every combination of what the plan lists, as one Parquet dataset\n\nA program that does not end (a deadlock, messages that nobody receives) is told on stderr, with exit code 1."
)]
pub struct Simulate {
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
    /// Draw the run for ui.perfetto.dev, at most 64 ranks of it, evenly spread, and the last to finish. It is played twice
    /// for that, the second time on one thread.
    #[arg(long, value_name = "F.pftrace")]
    pub timeline: Option<PathBuf>,
    /// Print one JSON document (schema quell.simulate/1).
    #[arg(long)]
    pub json: bool,
    /// Times of every rank in the JSON document, above 4,096 ranks too.
    #[arg(long)]
    pub all_times: bool,
    /// Simulate all combinations of the values that a plan in TOML lists, each under the name of its option here, into a Parquet dataset.
    /// The processes of srun, mpirun or a Slurm job array share them; run again, it does what is missing.
    #[arg(long, value_name = "PLAN.toml", conflicts_with_all = ["schedule", "pattern", "compat", "noise", "offsets", "cosched", "skew", "baseline", "culprits", "seed", "timeline", "all_times", "NetArgs", "PatternArgs"])]
    pub sweep: Option<PathBuf>,
    #[command(flatten)]
    pub sweeping: SweepArgs,
    #[command(flatten)]
    pub net: NetArgs,
    #[command(flatten)]
    pub what_if: WhatIf,
    #[command(flatten)]
    pub parameters: PatternArgs,
}

/// `quell goal`.
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

/// What to do with a schedule.
#[derive(Debug, Subcommand)]
pub enum GoalVerb {
    /// What is wrong with a schedule, without running it.
    Check(GoalCheck),
    /// Text to LogGOPSim's binary, or back.
    Convert(GoalConvert),
    /// A schedule from a named pattern, for LogGOPSim and other tools.
    Make(Box<GoalMake>),
    /// The named patterns and their parameters.
    List(GoalList),
}

/// A form of GOAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GoalForm {
    /// For people.
    Text,
    /// As LogGOPSim's txt2bin writes it.
    Binary,
}

/// `quell goal check`.
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

/// `quell goal convert`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell goal convert app.goal -o app.bin\n  quell goal convert app.bin -o app.goal\n  quell goal convert app.bin -o app.txt --to text"
)]
pub struct GoalConvert {
    /// The schedule, as text or binary; its content tells which.
    #[arg(value_name = "F.goal|F.bin")]
    pub schedule: PathBuf,
    #[command(flatten)]
    pub target: GoalTarget,
}

/// Where a schedule goes.
#[derive(Debug, ClapArgs)]
pub struct GoalTarget {
    /// The file to write: `NAME.goal` is text, `NAME.bin` binary.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// The form, where the file's name does not tell.
    #[arg(long, value_enum)]
    pub to: Option<GoalForm>,
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
}

/// `quell goal make`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell goal make --pattern dissemination --ranks 1Ki --bytes 8 -o barrier.goal\n  quell goal make --pattern halo3d --ranks 512 --bytes 64Ki --iterations 10 -o halo.bin"
)]
pub struct GoalMake {
    /// The pattern; `quell goal list` names them.
    #[arg(long, value_name = "NAME")]
    pub pattern: String,
    #[command(flatten)]
    pub target: GoalTarget,
    #[command(flatten)]
    pub parameters: PatternArgs,
}

/// `quell goal list`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "EXAMPLES\n  quell goal list\n  quell goal list --json")]
pub struct GoalList {
    /// Print one JSON document (schema quell.goal-list/1).
    #[arg(long)]
    pub json: bool,
}
