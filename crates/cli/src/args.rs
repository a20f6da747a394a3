//! The command line as clap parses it. [`crate::plan`] converts it to what is executed.

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
pub use fleet::{FaultScenario, GenerateFleet};
pub use metrics::ServeMetrics;
pub use predict::Predict;
pub use replay::{ContextName, PhaseCall, Replay};
pub use simulate::{
    Goal, GoalCheck, GoalConvert, GoalForm, GoalList, GoalMake, GoalTarget, GoalVerb, Simulate,
};
pub use sweep::SweepArgs;
pub use track::{ScalingName, Track};

pub use trace::{Trace, TraceNode};
pub use tune::{
    AuditArgs, ExportForm, RiskName, SITE, Tune, TuneAllow, TuneApply, TuneAudit, TuneCopy, TuneExport,
    TuneMachine, TunePlan, TuneRevert, TuneServe, TuneStatus, TuneTry, TuneVerb, TuneVerify,
};

use crate::values::{CpuList, ThresholdText};

/// Measures operating-system noise, names its sources, and predicts what it costs a parallel program.
#[derive(Debug, Parser)]
#[command(
    name = "quell",
    version,
    subcommand_required = true,
    after_help = "EXAMPLES\n  quell study                         this node: record, predict, report\n  quell record -o a.quell --cpus 1    watch CPU 1 for ten seconds\n  quell show a.quell --by source      what was found, and who did it\n  quell predict a.quell --ranks 16..2048\n  quell advise a.quell --ranks 4096   which source costs how much there, and what to do about it\n  quell simulate --pattern allreduce --ranks 64Ki --noise a.quell --baseline\n  quell replay a.quell -- mpirun -n 4 ./app      its noise inside this program\n  quell trace -o run -- mpirun -n 4 ./app        every MPI call, and the noise between\n  quell tune audit node.quell         what could be done about it here\n\nEXIT CODES\n  0 done   1 failed   2 wrong usage   3 done, but a stated limit does not hold\n\nTERMS\n  detour          a period in which the CPU was taken from the program, as the program saw it\n  interval        what the kernel recorder saw: one source on one CPU, its start and duration\n  source          what took the CPU, as the kernel names it: tick, irq:NAME, softirq:NAME, task:NAME\n  noise overhead  time lost to detours / time observed, per CPU\n  phase, quantum  one compute step of a parallel job, and its length without noise\n  all terms: docs/reference/glossary.md (/usr/share/doc/quell/glossary.md)"
)]
pub struct Args {
    /// Print only results, warnings and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verb.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Record this node, show its noise, predict it at scale, advise, and write a report: the main command.
    Study(Study),
    /// Record the noise of this node.
    Record(Record),
    /// Summarize a recording.
    Show(Show),
    /// Show the noise of this node, live, in the terminal.
    Watch(Watch),
    /// Serve the noise of this node as counters for Prometheus (OpenMetrics over HTTP).
    ServeMetrics(ServeMetrics),
    /// Compare two recordings: what changed, and whether the change is more than chance.
    Compare(Compare),
    /// Predict what the noise costs a bulk-synchronous program, by number of ranks.
    Predict(Box<Predict>),
    /// Report what each source of noise costs at scale, and which mitigation to try.
    Advise(Box<Advise>),
    /// Simulate a message schedule or a named pattern under LogGOPS and noise: when does each rank finish?
    Simulate(Box<Simulate>),
    /// Inject recorded noise into any program, or into quell's own compute phases.
    Replay(Box<Replay>),
    /// Trace an MPI run, with noise counters on every event, into an OTF2 archive.
    Trace(Trace),
    /// Report what noise did to a traced MPI run, by rank and by source.
    Track(Box<Track>),
    /// Mitigations: audit which are applied, plan and apply changes, verify, measure and revert them.
    Tune(Box<Tune>),
    /// Check, convert, make and list message schedules.
    Goal(Goal),
    /// Run benchmarks under the site's own MPI, and record the kernel while they run.
    Bench(Box<Bench>),
    /// Convert other tools' files to recordings and back; write timelines for Perfetto.
    Convert(Convert),
    /// Write one self-contained HTML page from a recording.
    Report(Report),
    /// Check what this machine permits quell to do, and how to lift its limits.
    Doctor(Doctor),
    /// Write example files: computed recordings, an MPI run and a schedule, to try every verb on.
    Example(Example),
    /// Write files that are generated from the program itself: the reference, man pages, completions.
    #[command(hide = true)]
    Generate(Generate),
    /// Run a rank of `bench`; the launcher starts this in place of the rank's program.
    #[command(hide = true)]
    BenchNode(BenchNode),
    /// Run the recorder of another host under `trace`; that host's ranks start it.
    #[command(hide = true)]
    TraceNode(TraceNode),
    /// Run the keeper of `tune`, which holds settings and reverts them when their time is over.
    #[command(hide = true)]
    TuneKeep,
    /// Simulate a bulk-synchronous run under periodic noise, and write it as a traced run.
    #[command(hide = true)]
    GenerateRun(GenerateRun),
    /// Write synthetic recordings of many nodes, some of which have a fault.
    #[command(hide = true)]
    GenerateFleet(GenerateFleet),
    /// Time the probe's loop and a bare clock loop, for comparison.
    #[command(hide = true)]
    BenchLoop(BenchLoop),
}

/// The CPUs to record, and how.
#[derive(Debug, ClapArgs)]
pub struct Watching {
    /// CPUs to record, as in `1,3-5`; all that this process may use, if not given.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Shortest detour to record: a time, or a multiple of the shortest iteration of the probe's loop (`10x`, as in De et al. 2008) [default: 150ns].
    #[arg(long, value_name = "TIME|Nx")]
    pub threshold: Option<ThresholdText>,
    /// Run the probes under SCHED_FIFO at this priority. Needs --duration and a CPU that is not recorded; a watchdog stops probes that
    /// overrun.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub realtime: Option<u8>,
    /// Whether to record the kernel's events too, which name the sources of noise.
    #[arg(long, value_enum, default_value = "auto")]
    pub sources: SourcesMode,
}

/// Whether to record the sources of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourcesMode {
    /// If this machine and user permit it; otherwise the recording states why its sources are unknown.
    Auto,
    /// Always; fail if it is not possible.
    On,
    /// Never: record only what the probe sees.
    Off,
}

/// Arguments of `quell example`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell example example\n  cd example\n  quell advise node.quell --ranks 4096\n\nThe documentation uses these files, so its commands work in this folder, on any machine and without root."
)]
pub struct Example {
    /// The folder to make.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of `quell study`.
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

/// How to measure noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// Read the clock in a loop, and record the gaps.
    Detour,
    /// Fixed work quanta: record the time of each.
    Fwq,
    /// Fixed time quanta: record the work done in each.
    Ftq,
    /// Load from the core's own cache, the shared cache and main memory: record the time of each.
    Memory,
    /// No probe: record only what the kernel sees.
    Kernel,
}

/// Arguments of `quell record`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell record -o a.quell --cpus 1,3 --duration 1min\n  quell record -o million.quell --cpus 1 --count 1000000 --duration 1h\n  quell record -o work.quell --method fwq --quantum 1ms\n  quell record -o job.quell -- ./simulation input.dat     what this program suffers, thread by thread\n  mpirun -n 4 --map-by ppr:1:node --bind-to none quell record -o runs\n  srun -N4 --ntasks-per-node=1 --cpu-bind=none quell record -o runs      then: quell show runs\n\nMANY HOSTS\n  Where mpirun, mpiexec or srun starts several copies, -o names a folder that all hosts see, and each records its\n  host into HOST.quell there. Of several copies on one host the first records; the others say so and end with 0. With a\n  command every copy follows its own, into HOST-RANK.quell."
)]
pub struct Record {
    /// The recording to write; `HOST-TIME.quell` if not given. `%h` stands for the name of the host, `%r` for the rank. Under a launcher
    /// that starts several copies: a folder with one recording per host.
    #[arg(long, short, value_name = "NAME.quell|DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub watching: Watching,
    /// How long to record; 10s if neither this nor --count is given.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Stop after this number of detours (or quanta), over all CPUs together.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// How to measure noise; if not given, detour, or kernel with a command.
    #[arg(long, value_enum)]
    pub method: Option<MethodName>,
    /// Length of a quantum, for fwq and ftq [default: 1ms].
    #[arg(long, value_name = "TIME")]
    pub quantum: Option<Nanos>,
    /// Measure what the kernel recorder's programs cost, for `show --json`; this slows them by some 20 ns per run.
    #[arg(long)]
    pub cost: bool,
    /// Before the recording, alternate this many pairs of 100 ms with and without the kernel recorder's programs, to state what they add to
    /// the detours; 0 for none [default: 6 to 30, some tenth of the duration, from 8 s on; none with --count].
    #[arg(long, value_name = "PAIRS", conflicts_with = "command")]
    pub effect: Option<u64>,
    /// Run this command without a probe, and record the noise of its threads and of all processes that they start, on any CPU.
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["cpus", "count", "duration", "realtime"])]
    pub command: Vec<String>,
}

/// Arguments of `quell show`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell show a.quell\n  quell show a.quell b.quell      a row for each\n  quell show runs                 a folder of recordings: a row per host; which are outliers, and why\n  quell show runs --by source     what took most over all hosts\n  quell show a.quell --by source\n  quell show a.quell --json | jq '.cpus[].overhead_percent'"
)]
pub struct Show {
    #[command(flatten)]
    pub options: ShowArgs,
    /// For several recordings: print a row for every host, however many there are.
    #[arg(long)]
    pub all: bool,
    /// Print one JSON document (schema quell.show/2; for several recordings quell.show-hosts/2).
    #[arg(long)]
    pub json: bool,
}

/// The order in which `watch` lists sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Time in the last interval.
    #[default]
    Time,
    /// Number of occurrences in the last interval.
    Count,
    /// Longest occurrence in the last interval.
    Max,
    /// Name of the source.
    Name,
}

/// Arguments of `quell watch`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell watch                                  probes on all CPUs, which they fully occupy\n  quell watch --passive                        no probe: for a node at work\n  quell watch --cpus 2,3 --sort max --filter task\n  quell watch --json --interval 10s >> noise.jsonl\n\nKEYS\n  q quit   p pause   s sort   r reverse   / filter   c CPUs one by one or together   ? help"
)]
pub struct Watch {
    #[command(flatten)]
    pub watching: Watching,
    /// Run no probe: show only what the kernel sees. This costs a busy node next to nothing, and needs the kernel recorder.
    #[arg(long, conflicts_with = "realtime")]
    pub passive: bool,
    /// How often to update the figures.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub interval: Nanos,
    /// How long to run; until a key or Ctrl-C, if not given.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Order of the sources.
    #[arg(long, value_enum, default_value = "time")]
    pub sort: SortBy,
    /// Show only sources with this text in their name or their detail.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    pub filter: String,
    /// Print a block of text each interval, which is the default without a terminal.
    #[arg(long)]
    pub plain: bool,
    /// Print one line of JSON each interval (schema quell.watch/1).
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell compare`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell compare before.quell after.quell\n  quell compare before.quell after.quell --fail-above 10%          noise overhead may rise by a tenth\n  quell compare before.quell after.quell --fail-above p99=20% --fail-above kl=0.5"
)]
pub struct Compare {
    #[command(flatten)]
    pub options: CompareArgs,
    /// Exit with 3 if AFTER exceeds a limit: `10%` (noise overhead, relative), `overhead=0.1` (percentage points), `p99=20%` (also p50,
    /// p90, p99.9, max, rate), `kl=0.5`, `wasserstein=5us`. May be repeated.
    #[arg(long, value_name = "LIMIT")]
    pub fail_above: Vec<Limit>,
    /// Write the comparison as an HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON document (schema quell.compare/2).
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell report`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell report a.quell\n  quell report a.quell -o a.html --ranks 16..64Ki --quantum 500us\n  quell report study-node7          a study's page again, with every `try*.json` in its folder: before and after\n  quell report runs                 a folder of recordings: which hosts stand out, and what all cost together\n  quell report run -o run.html      an MPI run that `quell trace` made, as `quell track --html`"
)]
pub struct Report {
    /// A recording, several of them or a folder of them, a study's folder, or an MPI run: its folder, or the anchor file of an OTF2 archive.
    #[arg(value_name = "R.quell|DIR|STUDY|ARCHIVE", required = true)]
    pub recordings: Vec<PathBuf>,
    /// The page to write; if not given, next to the recording or the folder, or the study's own page.
    #[arg(long, short, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Arguments of `quell doctor`.
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

/// Arguments of `quell generate`.
#[derive(Debug, ClapArgs)]
pub struct Generate {
    /// Folder for the generated reference: JSON schemas, mitigations, a page for each verb.
    #[arg(long, value_name = "DIR")]
    pub reference: Option<PathBuf>,
    /// Folder for man pages.
    #[arg(long, value_name = "DIR")]
    pub man: Option<PathBuf>,
    /// Folder for completions of bash, zsh and fish, with the layout of /usr/share.
    #[arg(long, value_name = "DIR")]
    pub completions: Option<PathBuf>,
}

/// Arguments of `quell generate-run`, which simulates the program of Nataraj et al. 2007, §4.1.
#[derive(Debug, ClapArgs)]
pub struct GenerateRun {
    /// Folder for the archive.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Number of ranks.
    #[arg(long)]
    pub ranks: u32,
    /// Number of phases, each of work and an all-reduce.
    #[arg(long)]
    pub phases: u64,
    /// Work of a phase without noise.
    #[arg(long)]
    pub quantum: Nanos,
    /// Time that the all-reduce takes after the last rank has entered it.
    #[arg(long, default_value = "5us")]
    pub sync: Nanos,
    /// Time from the start of one detour of a rank to the start of the next.
    #[arg(long, default_value = "1ms")]
    pub period: Nanos,
    /// Length of each detour; 0ns for a run without noise.
    #[arg(long)]
    pub detour: Nanos,
    /// Random seed of each rank's offset in the period.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `quell bench-loop`.
#[derive(Debug, ClapArgs)]
pub struct BenchLoop {
    /// CPU to run on.
    #[arg(long, default_value_t = 0)]
    pub cpu: u32,
    /// Length of one measurement.
    #[arg(long, default_value = "500ms")]
    pub duration: Nanos,
    /// Number of measurements of each loop.
    #[arg(long, default_value_t = 9)]
    pub rounds: usize,
    /// Random seed of the order of measurements.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Accepted for symmetry with other verbs; the output is always JSON.
    #[arg(long)]
    pub json: bool,
}
