//! Arguments of `quell advise`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use quell_request::job::JobArgs;

use super::sweep::SweepArgs;
use super::tune::{SITE, TuneMachine};
use crate::values::{CountList, CpuList};
use quell_request::messages::MessageArgs;
use quell_request::network::NetArgs;

/// Arguments of `quell advise`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell advise node.quell --ranks 4096               at 4,096 ranks that wait for each other every millisecond\n  quell advise node.quell --ranks 16,65536 --op allreduce --quantum 500us\n  quell advise node.quell --goal app.goal            for a traced application (`quell track RUN --goal app.goal`)\n  quell advise --noise model.toml --ranks 1024\n  quell advise node.quell --leave 0..8 --binding bind  how many CPUs to leave to the system\n  quell advise runs                                  a folder of many nodes: which are outliers, and what they cost\n\nHOW TO READ IT\n  share            percentage points of the slowdown that this source accounts for; all sources add up to the slowdown\n  gain if removed  by how many points the slowdown falls without this source, with its 95 % interval\n  alone            the slowdown if there were no other noise\n  They differ where noise overlaps: if noise delays several ranks in one phase, only the longest delay counts.",
    mut_arg("output", |arg| arg.short('o'))
)]
pub struct Advise {
    /// Recordings. Several are assigned to the nodes of one machine in turn; those of the same CPUs of a host are samples of one node. A folder
    /// of recordings of different nodes is analysed as many nodes.
    #[arg(value_name = "R.quell|DIR", required_unless_present_any = ["noise", "sweep"])]
    pub recordings: Vec<PathBuf>,
    /// A synthetic noise model in TOML, instead of or in addition to recordings; its components are its sources.
    #[arg(long, value_name = "MODEL.toml")]
    pub noise: Vec<PathBuf>,
    /// The job. Sources are ordered by what they cost at the largest number of ranks.
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub messages: MessageArgs,
    /// Use an application's schedule instead of phases, as `track --goal` writes it; it has its own ranks and its own work.
    #[arg(long, value_name = "APP.goal", conflicts_with_all = ["ranks", "quantum", "op", "bytes", "progress", "sync", "skew", "drift", "phases"])]
    pub goal: Option<PathBuf>,
    /// Number of runs of the schedule, each with its nodes at other offsets in their noise.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(8..=1000))]
    pub runs: u64,
    /// Number of sources listed individually; the others are summed up.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub sources: u64,
    /// The CPUs that compute, for mitigations that move noise to the others; chosen as by `quell tune`, if not given.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Numbers of CPUs of each node to leave to the system, as a list (`0,1,2`) or a range (`0..8`): what they cost, what they save, and which
    /// is best; 1 if not given. A folder is then that many recordings of one machine's nodes.
    #[arg(long, value_name = "LIST", conflicts_with = "goal")]
    pub leave: Option<CountList>,
    /// Ranks on each node; as many as it has CPUs if not given. Fewer, as where each drives a GPU, leave CPUs free at no cost.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "goal")]
    pub ranks_per_node: Option<u64>,
    /// Write the binding of ranks to the CPUs that the advice leaves to the job into this folder, for each launcher: by the recommended mitigations,
    /// or else by what --leave finds best.
    #[arg(long, value_name = "DIR", conflicts_with = "goal")]
    pub binding: Option<PathBuf>,
    /// Number of threads; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print one JSON document (schema quell.advise/3; for a folder of many nodes quell.fleet/2).
    #[arg(long)]
    pub json: bool,
    /// Run all combinations of the values that a plan in TOML lists, each under the name of its option here, into a Parquet dataset with a
    /// row for each source; without mitigations. See `predict --sweep`.
    #[arg(long, value_name = "PLAN.toml", conflicts_with_all = ["recordings", "noise", "ranks", "leave", "ranks_per_node", "binding", "quantum", "op", "bytes", "progress", "sync", "skew", "drift", "phases", "goal", "sources", "seed", "html", "NetArgs"])]
    pub sweep: Option<PathBuf>,
    /// Write an HTML page.
    #[arg(long, value_name = "PAGE.html")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub machine: TuneMachine,
    #[command(flatten)]
    pub net: NetArgs,
    #[command(flatten)]
    pub sweeping: SweepArgs,
}

/// The catalogue and the machine for a study's advice: this machine, with the default site folder.
pub fn this_machine() -> TuneMachine {
    TuneMachine { sysroot: None, site: SITE.into() }
}
