//! Arguments of `quell bench`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use quell_recording::Nanos;

use super::SourcesMode;
use quell_request::RankList;
use quell_request::size::Size;

/// Arguments of `quell bench`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench bsp                       compute and barrier, one rank on each CPU of this node\n  quell bench bsp -n 64 --launcher-args '--hostfile hosts' --predict\n  quell bench allreduce -n 2 --mpi mpich     which noise made slow operations slow\n  quell bench show bench-bsp-node7-20261121T103000Z   show the results again\n\nThe benchmarks are C programs: the site's mpicc compiles them on first use, and its launcher starts them.\nquell records the kernel of each node at the same time, if permitted. Every node must see the\nfolder of the run."
)]
pub struct Bench {
    /// Benchmark to run.
    #[command(subcommand)]
    pub bench: BenchVerb,
}

/// A benchmark.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Compute, then wait for all ranks: the Parallel Benchmark of De et al.
    Bsp(BenchBsp),
    /// Many small allreduces, and what delayed the slow ones: the study of Jones et al.
    Allreduce(BenchAllreduce),
    /// Halo exchange on a grid, on full nodes or with CPUs left to the system.
    Halo(BenchHalo),
    /// Repeat the same work on all ranks, as vpsum and PSNAP do.
    Fwq(BenchFwq),
    /// Measure the network between ranks: L, o, g, G, O and S, for `--net`.
    Loggp(BenchLoggp),
    /// Show the results of an earlier run again.
    Show(BenchShow),
}

/// Options that every benchmark has.
#[derive(Debug, ClapArgs)]
pub struct LaunchArgs {
    /// Number of ranks; if not given, one on each CPU that may be used here. More ranks than CPUs share them. A list, as in `2,4,8`, makes
    /// one run for each number.
    #[arg(long, short = 'n', value_name = "LIST")]
    pub ranks: Option<RankList>,
    /// Maximum number of ranks on each node.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub per_node: Option<u32>,
    /// The MPI: `openmpi`, `mpich`, or the path of its compiler wrapper; the mpicc in PATH, if not given.
    #[arg(long, value_name = "NAME|PATH")]
    pub mpi: Option<String>,
    /// The launcher of the ranks: mpirun, mpiexec or srun, by name or path; the one next to the compiler wrapper, if not given.
    #[arg(long, value_name = "NAME|PATH")]
    pub launcher: Option<String>,
    /// Extra launcher arguments, space-separated, as in `--launcher-args '--hostfile hosts'`.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub launcher_args: Option<String>,
    /// Leave ranks on the CPUs where the launcher put them. By default, a rank that may use several CPUs is bound to one of them.
    #[arg(long)]
    pub no_bind: bool,
    /// Folder for the results; it must be new, and every node must see it. `bench-NAME-HOST-TIME` if not given.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Whether to record the kernel on each node during the run, which names the sources of noise.
    #[arg(long, value_enum, default_value = "auto")]
    pub sources: SourcesMode,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

impl LaunchArgs {
    /// The extra arguments of the launcher, split at spaces.
    pub fn extra_words(&self) -> Vec<String> {
        self.launcher_args.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned).collect()
    }
}

/// The operation that ends a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Operation {
    /// None: ranks never wait for one another.
    None,
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Allreduce` of doubles.
    Allreduce,
    /// `MPI_Reduce` to rank 0.
    Reduce,
    /// `MPI_Bcast` from rank 0.
    Bcast,
    /// `MPI_Allgather`.
    Allgather,
    /// `MPI_Gather` to rank 0.
    Gather,
    /// `MPI_Scatter` from rank 0.
    Scatter,
    /// `MPI_Alltoall`.
    Alltoall,
    /// `MPI_Reduce_scatter_block` of doubles.
    ReduceScatter,
    /// `MPI_Scan` of doubles.
    Scan,
    /// A halo exchange with the neighbours on a grid.
    Halo,
}

impl Operation {
    /// The name that the benchmark program takes.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Arguments of `quell bench bsp`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench bsp -n 2 --duration 30s --predict\n  quell bench bsp --op allreduce --bytes 4Ki --quantum 100us\n  quell bench bsp --op none          no barriers: only how long the work takes"
)]
pub struct BenchBsp {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Length of the work in a phase, without noise.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// How long to run.
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub duration: Nanos,
    /// End after this number of phases, if that is earlier.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub phases: Option<u64>,
    /// Operation that ends a phase.
    #[arg(long, value_enum, default_value = "barrier")]
    pub op: Operation,
    /// Message size of the operation, in bytes.
    #[arg(long, default_value = "8", value_name = "SIZE")]
    pub bytes: Size,
    /// Predict the run too, and show both: from these recordings or, if none is named, from the noise of this node, recorded before and
    /// after the run.
    #[arg(long, value_name = "R.quell", num_args = 0..)]
    pub predict: Option<Vec<PathBuf>>,
    /// Random seed of the prediction and of all resampling.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `quell bench allreduce`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench allreduce -n 2\n  quell bench allreduce -n 2..256 --launcher-args '--hostfile hosts'   the fit a + b·log2 P wants several numbers of ranks\n  quell bench allreduce --work 0ns --count 1Mi                         back to back, as in the paper"
)]
pub struct BenchAllreduce {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Number of operations to time.
    #[arg(long, default_value = "64Ki", value_name = "N")]
    pub count: Size,
    /// End after this time, if that is earlier.
    #[arg(long, default_value = "1min", value_name = "TIME")]
    pub duration: Nanos,
    /// Work between two operations; 0ns for none. With few ranks an operation takes so little time that, without work, the run would end
    /// before noise strikes.
    #[arg(long, default_value = "50us", value_name = "TIME")]
    pub work: Nanos,
    /// Size of the vector to sum up, in bytes.
    #[arg(long, default_value = "8", value_name = "SIZE")]
    pub bytes: Size,
}

/// Arguments of `quell bench halo`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench halo --dims 3 --bytes 32Ki\n  quell bench halo --leave 1          alternates between full nodes and nodes with one CPU left to the system"
)]
pub struct BenchHalo {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Number of dimensions of the grid.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub dims: u32,
    /// Bytes sent to each neighbour.
    #[arg(long, default_value = "1Ki", value_name = "SIZE")]
    pub bytes: Size,
    /// Number of exchanges to time in each run.
    #[arg(long, default_value = "16Ki", value_name = "N")]
    pub count: Size,
    /// End a run after this time, if that is earlier.
    #[arg(long, default_value = "1min", value_name = "TIME")]
    pub duration: Nanos,
    /// Work between two exchanges; 0ns for none.
    #[arg(long, default_value = "50us", value_name = "TIME")]
    pub work: Nanos,
    /// Compare with N ranks fewer on each node, in alternating runs. Needs --per-node if there are several nodes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub leave: Option<u32>,
    /// Number of runs of each layout.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
}

/// Arguments of `quell bench fwq`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench fwq --duration 30s\n  quell bench fwq --quantum 10ms --barrier-every 100     all ranks together again after each 100 quanta\n  quell convert bench-fwq-*/HOST.quell psnap.txt --to psnap"
)]
pub struct BenchFwq {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Length of a quantum, without noise.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// How long to run.
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub duration: Nanos,
    /// End after this number of quanta, if that is earlier.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Number of quanta from one barrier to the next, as in vpsum's outer loop.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub barrier_every: u64,
}

/// Arguments of `quell bench loggp`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench loggp -o net                               between two ranks of this node\n  quell simulate --pattern allreduce --ranks 64 --net net/intra.toml\n  quell bench loggp -n 2 --per-node 1 --launcher-args '--host a,b'   between two nodes"
)]
pub struct BenchLoggp {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Largest message size, in bytes.
    #[arg(long, default_value = "64Ki", value_name = "SIZE")]
    pub sizes_to: Size,
    /// Number of rounds; parameters are medians over all rounds, and their confidence intervals are taken over rounds too.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

/// Arguments of `quell bench show`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench show bench-bsp-node7-20261121T103000Z\n  quell bench show bench-bsp-node7-20261121T103000Z --json"
)]
pub struct BenchShow {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell bench-node`, which the launcher starts in place of each rank.
#[derive(Debug, ClapArgs)]
pub struct BenchNode {
    /// Folder of the run.
    #[arg(long)]
    pub out: PathBuf,
    /// Whether to record the kernel.
    #[arg(long, value_enum, default_value = "auto")]
    pub sources: SourcesMode,
    /// The program of the rank, with its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}
