//! What was typed: the command line as clap sees it. What it means is in [`crate::plan`].

mod advise;
mod bench;
mod convert;
mod fleet;
mod metrics;
mod predict;
mod replay;
mod simulate;
mod sweep;
mod trace;
mod track;
mod tune;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use quell_analysis::compare::Limit;
use quell_recording::Nanos;
use quell_request::compare::CompareArgs;
use quell_request::job::JobArgs;
use quell_request::show::ShowArgs;

pub use advise::{Advise, this_machine};
pub use bench::{
    Bench, BenchAllreduce, BenchBsp, BenchFwq, BenchHalo, BenchLoggp, BenchNode, BenchShow, BenchVerb,
    LaunchArgs, Operation,
};
pub use convert::{Convert, FormatName};
pub use fleet::{GenerateFleet, Way};
pub use metrics::ServeMetrics;
pub use predict::Predict;
pub use replay::{ContextName, PhaseCall, Replay};
pub use simulate::{
    Goal, GoalCheck, GoalConvert, GoalForm, GoalList, GoalMake, GoalTarget, GoalVerb, Simulate,
};
pub use sweep::SweepArgs;
pub use track::Track;

pub use trace::{Trace, TraceNode};
pub use tune::{
    ExportForm, RiskName, SITE, Tune, TuneAllow, TuneApply, TuneAudit, TuneExport, TuneMachine, TunePlan,
    TuneRevert, TuneStatus, TuneTry, TuneVerb, TuneVerify, TuneWishes,
};

use crate::values::{CpuList, ThresholdText};

/// Measures operating-system noise, names its sources, and predicts what it costs a parallel program.
#[derive(Debug, Parser)]
#[command(
    name = "quell",
    version,
    subcommand_required = true,
    after_help = "EXAMPLES\n  quell study                         this node: record, predict, report\n  quell record -o a.quell --cpus 1    watch CPU 1 for ten seconds\n  quell show a.quell --by source      what was found, and who did it\n  quell predict a.quell --ranks 16..2048\n  quell advise a.quell --ranks 4096   which source costs how much there, and what to do about it\n  quell simulate --pattern allreduce --ranks 64Ki --noise a.quell --baseline\n  quell replay a.quell -- mpirun -n 4 ./app      its noise inside this program\n  quell trace -o run -- mpirun -n 4 ./app        every MPI call, and the noise between\n  quell tune audit node.quell         what could be done about it here\n\nEXIT CODES\n  0 done   1 failed   2 wrong usage   3 done, but a stated limit does not hold"
)]
pub struct Args {
    /// Say nothing but results and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// The main job: record this node, show it, predict to scale, advise, write a report.
    Study(Study),
    /// Record the noise of this node.
    Record(Record),
    /// A recording at a glance.
    Show(Show),
    /// The same, live, in the terminal.
    Watch(Watch),
    /// The noise of this node as counters for Prometheus (OpenMetrics over HTTP).
    ServeMetrics(ServeMetrics),
    /// Two recordings side by side: what changed, and whether it is more than chance.
    Compare(Compare),
    /// What the noise costs a bulk-synchronous program, by number of ranks.
    Predict(Box<Predict>),
    /// Which source of noise costs how much at scale, and which mitigation to try.
    Advise(Box<Advise>),
    /// A message schedule or a named pattern, under LogGOPS and noise: when each rank is done.
    Simulate(Box<Simulate>),
    /// Recorded noise inside any program, or under quell's own phases.
    Replay(Box<Replay>),
    /// An MPI run with noise counters on every event, as an OTF2 archive.
    Trace(Trace),
    /// What noise did to a traced MPI run, rank by rank and source by source.
    Track(Box<Track>),
    /// Mitigations: which are on, what they would change, changing it, proving it, and giving it back.
    Tune(Box<Tune>),
    /// Check, convert, make and list schedules.
    Goal(Goal),
    /// Benchmarks under the site's own MPI, with the kernel watched beside them.
    Bench(Box<Bench>),
    /// Other tools' files into recordings, and back; timelines for Perfetto.
    Convert(Convert),
    /// One self-contained HTML page from a recording.
    Report(Report),
    /// What this machine lets quell do, and what to do about the rest.
    Doctor(Doctor),
    /// Write what is made of the program itself: the reference, man pages, completions.
    #[command(hide = true)]
    Generate(Generate),
    /// What a launcher starts in place of each rank of `bench`.
    #[command(hide = true)]
    BenchNode(BenchNode),
    /// What ranks on other hosts start under `trace`: the recorder of their host.
    #[command(hide = true)]
    TraceNode(TraceNode),
    /// What holds settings for `tune`, and reverts in time.
    #[command(hide = true)]
    TuneKeep,
    /// Simulate a bulk-synchronous run under periodic noise, and write it as a tracer would.
    #[command(hide = true)]
    GenerateRun(GenerateRun),
    /// Make up recordings of many nodes, of which some are ill.
    #[command(hide = true)]
    GenerateFleet(GenerateFleet),
    /// Time the probe's loop beside a bare clock loop.
    #[command(hide = true)]
    BenchLoop(BenchLoop),
}

/// What to watch, and how.
#[derive(Debug, ClapArgs)]
pub struct Watching {
    /// CPUs to watch, as in `1,3-5`; all that this process may use, if not given.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// The shortest detour that is recorded: a time, or a multiple of the loop's shortest turn (`10x`, as De et al.
    /// 2008 use).
    #[arg(long, value_name = "TIME|Nx", default_value = "150ns")]
    pub threshold: ThresholdText,
    /// Run the probes under SCHED_FIFO at this priority. Needs --duration and a CPU that is not watched; a watchdog
    /// ends what overruns.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub realtime: Option<u8>,
    /// Whether the kernel's side is recorded too, which names the sources: where it can be, always, or not.
    #[arg(long, value_enum, default_value = "auto")]
    pub sources: SourcesWish,
}

/// Whether the sources of noise are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourcesWish {
    /// Where this machine and user can; elsewhere the recording says why they are unknown.
    Auto,
    /// Or fail.
    On,
    /// Only what the probe sees.
    Off,
}

/// `quell study`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "EXAMPLES\n  quell study\n  quell study --duration 60s --quantum 500us -o before")]
pub struct Study {
    /// Folder for the recording and the report; `study-HOST-TIME` if not given.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// How long to record.
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub duration: Nanos,
    #[command(flatten)]
    pub watching: Watching,
    #[command(flatten)]
    pub job: JobArgs,
}

/// How the noise is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// A clock loop that keeps the gaps.
    Detour,
    /// Fixed work quanta: the time of each.
    Fwq,
    /// Fixed time quanta: the work in each.
    Ftq,
    /// No probe: only what the kernel saw.
    Kernel,
}

/// `quell record`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell record -o a.quell --cpus 1,3 --duration 1min\n  quell record -o million.quell --cpus 1 --count 1000000 --duration 1h\n  quell record -o work.quell --method fwq --quantum 1ms\n  quell record -o job.quell -- ./simulation input.dat     what this program suffers, thread by thread\n  mpirun -n 4 --map-by ppr:1:node --bind-to none quell record -o runs\n  srun -N4 --ntasks-per-node=1 --cpu-bind=none quell record -o runs      then: quell show runs\n\nMANY HOSTS\n  Where mpirun, mpiexec or srun starts several copies, -o names a folder that all hosts see, and each records its\n  host into HOST.quell there. Of several copies on one host the first records; the others say so and end with 0. With a\n  command every copy follows its own, into HOST-RANK.quell."
)]
pub struct Record {
    /// The recording to make; `HOST-TIME.quell` if not given. `%h` in it stands for the host's name, `%r` for the rank. Under a launcher of
    /// several copies, a folder for one recording a host.
    #[arg(long, short, value_name = "NAME.quell|DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub watching: Watching,
    /// How long to record; 10s if neither this nor --count is given.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Stop when so many detours (or quanta) were found, on all CPUs together.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// How to look for noise; detour, or with a command kernel, if not given.
    #[arg(long, value_enum)]
    pub method: Option<MethodName>,
    /// Length of a quantum, for fwq and ftq.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// Count what the kernel recorder's programs cost, for `show --json`; the counting slows them by some 20 ns a run.
    #[arg(long)]
    pub cost: bool,
    /// Run this command, without a probe, and record what its threads and all that they start suffer, on any CPU.
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["cpus", "count", "duration", "realtime"])]
    pub command: Vec<String>,
}

/// `quell show`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell show a.quell\n  quell show runs                 a folder of recordings: a row per host; which are unlike the rest, and why\n  quell show runs --by source     what took most over all hosts\n  quell show a.quell --by source\n  quell show a.quell --json | jq '.cpus[].overhead_percent'"
)]
pub struct Show {
    #[command(flatten)]
    pub asked: ShowArgs,
    /// Of a folder, a row for every host, however many there are.
    #[arg(long)]
    pub all: bool,
    /// Print one JSON document (schema quell.show/2; of a folder quell.show-hosts/2).
    #[arg(long)]
    pub json: bool,
}

/// By what `watch` sorts its sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Time in the last interval.
    #[default]
    Time,
    /// How often in the last interval.
    Count,
    /// The longest in the last interval.
    Max,
    /// Name.
    Name,
}

/// `quell watch`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell watch                                  probes on all CPUs: they take them whole\n  quell watch --passive                        no probe: for a node at work\n  quell watch --cpus 2,3 --sort max --filter task\n  quell watch --json --interval 10s >> noise.jsonl\n\nKEYS\n  q quit   p pause   s sort   r reverse   / filter   c CPUs one by one or together   ? help"
)]
pub struct Watch {
    #[command(flatten)]
    pub watching: Watching,
    /// No probe: only what the kernel saw. It costs a node at work next to nothing, and needs the kernel recorder.
    #[arg(long, conflicts_with = "realtime")]
    pub passive: bool,
    /// How often the figures are renewed.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub interval: Nanos,
    /// When to end; at a key or Ctrl-C, if not given.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Order of the sources.
    #[arg(long, value_enum, default_value = "time")]
    pub sort: SortBy,
    /// Only sources with this in their name or in what they work at.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    pub filter: String,
    /// Print a block of text each interval, as is done where there is no terminal.
    #[arg(long)]
    pub plain: bool,
    /// Print one line of JSON each interval (schema quell.watch/1).
    #[arg(long)]
    pub json: bool,
}

/// `quell compare`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell compare before.quell after.quell\n  quell compare before.quell after.quell --fail-above 10%          noise overhead may rise by a tenth\n  quell compare before.quell after.quell --fail-above p99=20% --fail-above kl=0.5"
)]
pub struct Compare {
    #[command(flatten)]
    pub asked: CompareArgs,
    /// Exit with 3 where AFTER exceeds a limit: `10%` (noise overhead, relative), `overhead=0.1` (percentage points),
    /// `p99=20%` (also p50, p90, p99.9, max, rate), `kl=0.5`, `wasserstein=5us`. May be repeated.
    #[arg(long, value_name = "LIMIT")]
    pub fail_above: Vec<Limit>,
    /// Write the comparison as an HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON document (schema quell.compare/2).
    #[arg(long)]
    pub json: bool,
}

/// `quell report`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell report a.quell\n  quell report a.quell -o a.html --ranks 16..64Ki --quantum 500us\n  quell report study-node7          a study's page again, with every `try*.json` in its folder: before and after\n  quell report run -o run.html      an MPI run that `quell trace` made, as `quell track --html`"
)]
pub struct Report {
    /// The recording, a study's folder, or an MPI run: its folder, or the anchor of an OTF2 archive.
    #[arg(value_name = "R.quell|STUDY|ARCHIVE")]
    pub recording: PathBuf,
    /// The page to write; beside the recording, or the study's own, if not given.
    #[arg(long, short, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// `quell doctor`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell doctor\n  quell doctor --commands            what lifts the limits, to be pasted into a shell\n  quell doctor --json | jq -r '.checks[] | select(.verdict != \"good\") | .subject'"
)]
pub struct Doctor {
    /// Print only the commands that would lift limits here, as a shell script.
    #[arg(long, conflicts_with = "json")]
    pub commands: bool,
    /// Print one JSON document (schema quell.doctor/1).
    #[arg(long)]
    pub json: bool,
}

/// `quell generate`.
#[derive(Debug, ClapArgs)]
pub struct Generate {
    /// Folder for the generated reference: JSON schemas, mitigations, a page for each verb.
    #[arg(long, value_name = "DIR")]
    pub reference: Option<PathBuf>,
    /// Folder for man pages.
    #[arg(long, value_name = "DIR")]
    pub man: Option<PathBuf>,
    /// Folder for completions of bash, zsh and fish, laid out as in /usr/share.
    #[arg(long, value_name = "DIR")]
    pub completions: Option<PathBuf>,
}

/// `quell generate-run`: the program of Nataraj et al. 2007, §4.1.
#[derive(Debug, ClapArgs)]
pub struct GenerateRun {
    /// Folder of the archive.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Ranks.
    #[arg(long)]
    pub ranks: u32,
    /// Phases of work and an all-reduce.
    #[arg(long)]
    pub phases: u64,
    /// Noise-free work of a phase.
    #[arg(long)]
    pub quantum: Nanos,
    /// What the all-reduce takes after the last rank has come.
    #[arg(long, default_value = "5us")]
    pub sync: Nanos,
    /// From one detour of a rank to its next.
    #[arg(long, default_value = "1ms")]
    pub period: Nanos,
    /// How long each is; 0ns for a quiet run.
    #[arg(long)]
    pub detour: Nanos,
    /// Seed of where in the period each rank begins.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `quell bench-loop`.
#[derive(Debug, ClapArgs)]
pub struct BenchLoop {
    /// CPU to run on.
    #[arg(long, default_value_t = 0)]
    pub cpu: u32,
    /// Length of one timing.
    #[arg(long, default_value = "500ms")]
    pub duration: Nanos,
    /// Rounds of both loops.
    #[arg(long, default_value_t = 9)]
    pub rounds: usize,
    /// Seed of the order.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Accepted for symmetry; the output is always JSON.
    #[arg(long)]
    pub json: bool,
}
