//! What was typed after `quell bench`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use quell_recording::Nanos;

use super::SourcesWish;
use quell_request::RankList;
use quell_request::size::Size;

/// `quell bench`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench bsp                       compute and barrier, one rank on each CPU of this node\n  quell bench bsp -n 64 --launcher-args '--hostfile hosts' --predict\n  quell bench allreduce -n 2 --mpi mpich     what made the slow ones slow\n  quell bench show bench-bsp-node7-20261121T103000Z   look again\n\nThe benchmarks are C, compiled by the site's own mpicc on first use, and started by its own launcher.\nOn each node the kernel is recorded at the same time, where it may be. The folder of a run must be\none that every node sees."
)]
pub struct Bench {
    /// Which one.
    #[command(subcommand)]
    pub bench: BenchVerb,
}

/// A benchmark.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Compute, then wait for all: De et al.'s Parallel Benchmark.
    Bsp(BenchBsp),
    /// Many small allreduces, and what made the slow ones slow: Jones et al.'s study.
    Allreduce(BenchAllreduce),
    /// Halo exchange on a grid, on full nodes or with CPUs left to the system.
    Halo(BenchHalo),
    /// The same work again and again on all ranks, as vpsum and PSNAP do.
    Fwq(BenchFwq),
    /// Measure the network between ranks: L, o, g, G, O and S, for `--net`.
    Loggp(BenchLoggp),
    /// Look at a run again, without running anything.
    Show(BenchShow),
}

/// What every benchmark is told.
#[derive(Debug, ClapArgs)]
pub struct LaunchArgs {
    /// Ranks; one on each CPU that may be used here, if not given. More than there are CPUs share them. A list, as in `2,4,8`, is as
    /// many runs.
    #[arg(long, short = 'n', value_name = "LIST")]
    pub ranks: Option<RankList>,
    /// Ranks on each node, at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub per_node: Option<u32>,
    /// The MPI: `openmpi`, `mpich`, or the path of its compiler wrapper. The mpicc in PATH, if not given.
    #[arg(long, value_name = "NAME|PATH")]
    pub mpi: Option<String>,
    /// What starts the ranks: mpirun, mpiexec or srun, by name or path. The one beside the wrapper, if not given.
    #[arg(long, value_name = "NAME|PATH")]
    pub launcher: Option<String>,
    /// Words for the launcher, apart by blanks, as in `--launcher-args '--hostfile hosts'`.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub launcher_args: Option<String>,
    /// Leave ranks on the CPUs where the launcher put them. Else each rank that may use several is bound to one.
    #[arg(long)]
    pub no_bind: bool,
    /// Folder for the results, new, and seen by every node; `bench-NAME-HOST-TIME` if not given.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Whether the kernel is recorded on each node meanwhile, which names the culprits.
    #[arg(long, value_enum, default_value = "auto")]
    pub sources: SourcesWish,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

impl LaunchArgs {
    /// Words for the launcher.
    pub fn extra_words(&self) -> Vec<String> {
        self.launcher_args.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned).collect()
    }
}

/// What ends a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Operation {
    /// Nothing: ranks never wait for one another.
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
    /// An exchange with the neighbours on a grid.
    Halo,
}

impl Operation {
    /// Its name for the program.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// `quell bench bsp`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench bsp -n 2 --duration 30s --predict\n  quell bench bsp --op allreduce --bytes 4Ki --quantum 100us\n  quell bench bsp --op none          no barriers: only how long the work takes"
)]
pub struct BenchBsp {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Noise-free length of the work in a phase.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// How long to run.
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub duration: Nanos,
    /// End after so many phases, if that is earlier.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub phases: Option<u64>,
    /// What ends a phase.
    #[arg(long, value_enum, default_value = "barrier")]
    pub op: Operation,
    /// Bytes of its messages.
    #[arg(long, default_value = "8", value_name = "SIZE")]
    pub bytes: Size,
    /// Predict the run too, and show both: from these recordings, or, where none is named, from the noise of this node, recorded
    /// before and after the run.
    #[arg(long, value_name = "R.quell", num_args = 0..)]
    pub predict: Option<Vec<PathBuf>>,
    /// Seed of the prediction and of all resampling.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `quell bench allreduce`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench allreduce -n 2\n  quell bench allreduce -n 2..256 --launcher-args '--hostfile hosts'   the fit a + b·log2 P wants several numbers of ranks\n  quell bench allreduce --work 0ns --count 1Mi                         back to back, as in the paper"
)]
pub struct BenchAllreduce {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Operations to time.
    #[arg(long, default_value = "64Ki", value_name = "N")]
    pub count: Size,
    /// End after this time, if that is earlier.
    #[arg(long, default_value = "1min", value_name = "TIME")]
    pub duration: Nanos,
    /// Work between two operations; 0ns for none. With few ranks an operation takes so little that without work the run would be
    /// over before the noise has come.
    #[arg(long, default_value = "50us", value_name = "TIME")]
    pub work: Nanos,
    /// Bytes that are added up.
    #[arg(long, default_value = "8", value_name = "SIZE")]
    pub bytes: Size,
}

/// `quell bench halo`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench halo --dims 3 --bytes 32Ki\n  quell bench halo --leave 1          alternating runs on full nodes and with one CPU of each left to the system"
)]
pub struct BenchHalo {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Dimensions of the grid.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub dims: u32,
    /// Bytes to each neighbour.
    #[arg(long, default_value = "1Ki", value_name = "SIZE")]
    pub bytes: Size,
    /// Exchanges to time in each run.
    #[arg(long, default_value = "16Ki", value_name = "N")]
    pub count: Size,
    /// End a run after this time, if that is earlier.
    #[arg(long, default_value = "1min", value_name = "TIME")]
    pub duration: Nanos,
    /// Work between two exchanges; 0ns for none.
    #[arg(long, default_value = "50us", value_name = "TIME")]
    pub work: Nanos,
    /// Compare with so many ranks fewer on each node, in alternating runs. Wants --per-node where there are several nodes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub leave: Option<u32>,
    /// Runs of each layout.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
}

/// `quell bench fwq`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench fwq --duration 30s\n  quell bench fwq --quantum 10ms --barrier-every 100     all ranks together again after each 100 quanta\n  quell convert bench-fwq-*/HOST.quell psnap.txt --to psnap"
)]
pub struct BenchFwq {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// Noise-free length of a quantum.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// How long to run.
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub duration: Nanos,
    /// End after so many quanta, if that is earlier.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// A barrier before each so many quanta, as vpsum's outer loop has.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub barrier_every: u64,
}

/// `quell bench loggp`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench loggp -o net                               between two ranks of this node\n  quell simulate --pattern allreduce --ranks 64 --net net/intra.toml\n  quell bench loggp -n 2 --per-node 1 --launcher-args '--host a,b'   between two nodes"
)]
pub struct BenchLoggp {
    #[command(flatten)]
    pub job: LaunchArgs,
    /// The largest message.
    #[arg(long, default_value = "64Ki", value_name = "SIZE")]
    pub sizes_to: Size,
    /// How often all is measured: parameters are medians, and their intervals are over rounds.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

/// `quell bench show`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell bench show bench-bsp-node7-20261121T103000Z\n  quell bench show bench-bsp-node7-20261121T103000Z --json"
)]
pub struct BenchShow {
    /// The folder of a run.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// `quell bench-node`: what a launcher starts in place of each rank.
#[derive(Debug, ClapArgs)]
pub struct BenchNode {
    /// Folder of the run.
    #[arg(long)]
    pub out: PathBuf,
    /// Whether the kernel is recorded.
    #[arg(long, value_enum, default_value = "auto")]
    pub sources: SourcesWish,
    /// The rank's program.
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}
