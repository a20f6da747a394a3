//! What was typed for `quell replay`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use quell_recording::Nanos;
use quell_request::job::JobArgs;

use crate::values::CpuList;
use crate::values::replay::{Percent, ScaleText, Share};

/// By what the noise comes into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContextName {
    /// At each MPI call, the noise since the last one: exact, from a fraction of a microsecond up.
    Boundary,
    /// By a timer and a signal in each thread of any program.
    Timer,
    /// From a process beside the program, under SCHED_FIFO.
    Process,
}

/// What ends a phase, for `--sync phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhaseCall {
    /// MPI_Barrier.
    Barrier,
    /// Every collective that no rank leaves before all have entered it.
    Collective,
    /// MPI_Pcontrol.
    Pcontrol,
}

/// `quell replay`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell replay node.quell -- mpirun -n 4 ./app              at MPI calls: exact, no privileges\n  quell replay node.quell --baseline 3 -- mpirun -n 4 ./app   and without noise in turn: the slowdown\n  quell replay node.quell --context timer -- ./program        any program; detours of some 20us and more\n  quell replay node.quell --context process --cpus 1 -- ./program     root; nothing is loaded into it\n  quell replay node.quell --emulate --ranks 16..2048          no cluster: quell's own phases, one rank after another\n  quell replay node.quell --context timer --validate          record under the noise, and compare\n  quell replay node.quell --dry-run --context timer --scale auto      what could be injected, and what not\n\nThe command's output and exit code are its own; what came of the noise goes to stderr, or with --json to stdout. Where\nit ends with 0 but no noise came in, quell ends with 3.\n\nCOLUMNS OF THE RESULT\n  trace      CPU of the recording whose noise it was\n  calls      MPI calls; timers that struck; detours from beside\n  asked      what the schedule wanted burned, and took what that took\n  absorbed   noise that passed while the process waited\n  noise      took, of the time outside of MPI"
)]
pub struct Replay {
    /// Recordings, models (`.toml`) or other tools' files; several are the nodes of one machine in turn.
    #[arg(value_name = "R.quell", required = true)]
    pub noise: Vec<PathBuf>,
    /// By what the noise comes into the program; if not given, `boundary` where the command is an MPI launcher or a launcher started quell,
    /// else `timer`.
    #[arg(long, value_enum, conflicts_with = "emulate")]
    pub context: Option<ContextName>,
    /// No command: quell's own compute phases, for as many virtual ranks as --ranks says, on this machine's CPUs in turn.
    #[arg(long)]
    pub emulate: bool,
    /// Record under the noise, and compare with what was to be replayed.
    #[arg(long, conflicts_with = "command")]
    pub validate: bool,
    /// The job; ranks, quantum, drift and phases with --emulate alone.
    #[command(flatten)]
    pub job: JobArgs,
    /// With --validate: how long to record; 10s if not given.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// With --sync phase: the MPI calls that end a phase; barrier,collective if not given.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CALLS")]
    pub phase_at: Vec<PhaseCall>,
    /// Stretches detours and the time between them by this factor, so that short ones can be injected; the program's work must be stretched
    /// alike. `auto`: the smallest whole factor that covers --coverage. With --emulate quell's own work is stretched (below 1: shortened).
    #[arg(long, default_value = "1", value_name = "FACTOR|auto")]
    pub scale: ScaleText,
    /// With --scale auto: the share of detours that are to be injected.
    #[arg(long, default_value = "90%", value_name = "PERCENT")]
    pub coverage: Percent,
    /// Each rank replays this share of its trace and is then left alone, as `1/3`; for ever if not given. A model's trace is as long as its
    /// span, or a minute.
    #[arg(long, value_name = "SHARE")]
    pub share: Option<Share>,
    /// What injecting one detour costs beside it; measured at the start if not given.
    #[arg(long, value_name = "TIME")]
    pub overhead: Option<Nanos>,
    /// With --context process: the CPUs to disturb; one CPU at least is always left alone.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Also runs the command so many times without the noise, in turn with as many runs with it, and says the slowdown. Only the last
    /// run's output is shown.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub baseline: Option<u32>,
    /// Folder to keep the result (replay.json), the schedule and each process's report in. If not given they are in a folder beside the
    /// command's (`.quell-replay-…`, for launchers) or in TMPDIR, and are deleted at the end. Every host must see it.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only say what could be injected.
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON document (schema quell.replay/2; with --emulate quell.emulate/2; with --validate quell.validate/2). What the command
    /// writes to stdout then goes to stderr.
    #[arg(long)]
    pub json: bool,
    /// The program, with its launcher if it has one.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}
