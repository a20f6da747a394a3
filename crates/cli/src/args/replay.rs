//! Arguments of `quell replay`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use quell_recording::Nanos;
use quell_request::job::JobArgs;

use crate::values::CpuList;
use crate::values::replay::{BlockText, Percent, ScaleText, Share};

/// How noise is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContextName {
    /// At each MPI call, the noise since the previous call: exact, from a fraction of a microsecond upwards.
    Boundary,
    /// By a timer and a signal in each thread of any program.
    Timer,
    /// By a separate process under SCHED_FIFO; nothing is loaded into the program.
    Process,
}

/// The MPI calls that end a phase, for `--sync phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhaseCall {
    /// MPI_Barrier.
    Barrier,
    /// Every collective that no rank can leave before all have entered it.
    Collective,
    /// MPI_Pcontrol.
    Pcontrol,
}

/// Arguments of `quell replay`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell replay node.quell -- mpirun -n 4 ./app              at MPI calls: exact, no privileges\n  quell replay node.quell --baseline 3 -- mpirun -n 4 ./app   and runs without noise in between: the slowdown\n  quell replay node.quell --interleave -- mpirun -n 4 ./app   its slowdown within one run: a narrow interval\n  quell replay node.quell --context timer -- ./program        any program; detours of some 20us and more\n  quell replay node.quell --context process --cpus 1 -- ./program     root; nothing is loaded into it\n  quell replay node.quell --emulate --ranks 16..2048          no cluster: quell's own phases, one rank after another\n  quell replay node.quell --context timer --validate          record under the noise, and compare\n  quell replay node.quell --dry-run --context timer --scale auto      what could be injected, and what not\n\nquell passes on the command's output and exit code. Its report goes to stderr, or with --json to stdout. If the\ncommand exits with 0 but no noise was injected, quell exits with 3.\n\nCOLUMNS OF THE RESULT\n  trace      CPU of the recording that the noise comes from\n  calls      MPI calls; expired timers; detours from the injecting process\n  asked      noise time in the schedule; took is the time that injecting it took\n  absorbed   noise that ended while the process waited\n  noise      took, relative to the time outside MPI"
)]
pub struct Replay {
    /// Recordings, models (`.toml`) or other tools' files. Several are assigned to the nodes of one machine in turn.
    #[arg(value_name = "R.quell", required = true)]
    pub noise: Vec<PathBuf>,
    /// How noise is injected. If not given: `boundary` if the command is an MPI launcher, or if a launcher started quell; otherwise
    /// `timer`.
    #[arg(long, value_enum, conflicts_with = "emulate")]
    pub context: Option<ContextName>,
    /// Run no command, but quell's own compute phases: as many virtual ranks as --ranks gives, one after another on the CPUs of this
    /// machine.
    #[arg(long)]
    pub emulate: bool,
    /// Record while the noise is injected, and compare the recording with the noise to replay.
    #[arg(long, conflicts_with = "command")]
    pub validate: bool,
    /// The job; --ranks, --quantum, --drift and --phases only with --emulate.
    #[command(flatten)]
    pub job: JobArgs,
    /// With --validate: how long to record; 10s if not given.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// With --sync phase: the MPI calls that end a phase; barrier,collective if not given.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CALLS")]
    pub phase_at: Vec<PhaseCall>,
    /// Multiply detours and the time between them by this factor, so that short detours can be injected; the program's work must be scaled
    /// by the same factor. `auto`: the smallest whole factor that reaches --coverage. With --emulate quell's own work is scaled (below 1:
    /// shortened).
    #[arg(long, default_value = "1", value_name = "FACTOR|auto")]
    pub scale: ScaleText,
    /// With --scale auto: the percentage of detours to inject.
    #[arg(long, default_value = "90%", value_name = "PERCENT")]
    pub coverage: Percent,
    /// Fraction of its trace that each rank replays, as `1/3`, before it runs without noise; if not given, the trace repeats without end.
    /// The trace of a model is as long as its span, or a minute.
    #[arg(long, value_name = "SHARE")]
    pub share: Option<Share>,
    /// Injection overhead per detour; measured at the start if not given.
    #[arg(long, value_name = "TIME")]
    pub overhead: Option<Nanos>,
    /// With --context process: the CPUs to disturb; at least one CPU is always left alone.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Also run the command N times without the noise, paired with N runs with it, and report the slowdown. Only the output of the last run
    /// is shown.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub baseline: Option<u32>,
    /// Measure the slowdown inside one run: inject the noise in one of each two blocks of phases, in random order. Blocks last this long
    /// (100ms if nothing is given), and a run without noise counts the phases first; or they have this number of phases. Needs --context
    /// boundary, and calls that all ranks make (--phase-at).
    #[arg(long, value_name = "TIME|PHASES", num_args = 0..=1, require_equals = true, default_missing_value = "100ms", conflicts_with_all = ["baseline", "emulate", "validate", "share"])]
    pub interleave: Option<BlockText>,
    /// Folder for the result (replay.json), the schedule and the report of each process; every host must see it. If not given, a folder
    /// that is deleted at the end: `.quell-replay-…` in the current folder for launchers, otherwise one in TMPDIR.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only report which noise could be injected.
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON document (schema quell.replay/2; with --emulate quell.emulate/2; with --validate quell.validate/2). The command's
    /// stdout then goes to stderr.
    #[arg(long)]
    pub json: bool,
    /// The program to run, with its launcher if it has one.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}
