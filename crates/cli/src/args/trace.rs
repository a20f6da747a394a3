//! Arguments of `quell trace`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::SourcesMode;
use quell_request::size::Size;

/// Arguments of `quell trace`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell trace -o run -- mpirun -n 4 ./app\n  quell trace -o run -- srun -N 4 ./app        all hosts see the folder\n  quell trace -o run --mpi mpich -- mpiexec -n 4 python3 app.py      loads MPI late\n  quell trace -o run --sources off -- mpirun -n 4 ./app      without root: only the MPI calls\n  quell trace -o run -- quell replay node.quell -- mpirun -n 4 ./app     under replayed noise\n  quell trace -o run --recover                 its quell was killed: make the archive now\n\nOUTPUT\n  RUN/traces.otf2    the archive, for every OTF2 tool; its metrics are quell.noise.SOURCE, in ns\n  RUN/HOST.quell     what the kernel did on each host: quell show RUN/HOST.quell --by source\n  RUN/logs           only if kept, or if something is wrong with them\n\nquell passes on the command's output and exit code. If the command exits with 0 but no MPI call was seen, quell exits with 1."
)]
pub struct Trace {
    /// Folder of the run; it must be new or empty, and every host must see it.
    #[arg(long, short, value_name = "RUN")]
    pub output: PathBuf,
    /// Whether to count the kernel's noise.
    #[arg(long, value_enum, default_value = "auto")]
    pub sources: SourcesMode,
    /// Count page faults as well. They are the program's own work, not noise; counting them slows a program down that has many.
    #[arg(long)]
    pub own_work: bool,
    /// The MPI to build the tracer for: `openmpi`, `mpich`, or the path of a compiler wrapper; the program's own, if not given.
    #[arg(long, value_name = "MPI|PATH")]
    pub mpi: Option<String>,
    /// Measure the network within this host with `quell bench loggp` first, which takes some seconds, unless it was measured with this MPI before.
    /// `quell track` and the schedules that it makes use what was measured.
    #[arg(long)]
    pub network: bool,
    /// Maximum bytes of each thread's events, as 512Mi; events beyond it are counted as lost.
    #[arg(long, value_name = "BYTES")]
    pub limit: Option<Size>,
    /// Run nothing: make the archive of the run in this folder, whose `quell trace` was killed, from the logs that its ranks left. Keeps the logs.
    #[arg(long, conflicts_with_all = ["command", "own_work", "mpi", "network", "limit"])]
    pub recover: bool,
    /// Keep the ranks' logs next to the archive.
    #[arg(long)]
    pub keep_logs: bool,
    /// The program to run, with its launcher.
    #[arg(last = true, required_unless_present = "recover", value_name = "CMD")]
    pub command: Vec<String>,
}

/// Arguments of `quell trace-node`: the recorder of a host on which `quell trace` itself does not run.
#[derive(Debug, ClapArgs)]
pub struct TraceNode {
    /// Folder of the run's logs.
    #[arg(value_name = "LOGS")]
    pub logs: PathBuf,
}
