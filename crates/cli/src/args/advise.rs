//! What was typed for `quell advise`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use quell_request::job::JobArgs;
use quell_request::network::NetArgs;

use super::sweep::SweepArgs;
use super::tune::{SITE, TuneMachine};
use crate::values::CpuList;
use quell_request::pattern::OpText;
use quell_request::size::Size;

/// `quell advise`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell advise node.quell --ranks 4096               at 4,096 ranks that wait for each other every millisecond\n  quell advise node.quell --ranks 16,65536 --op allreduce --quantum 500us\n  quell advise node.quell --goal app.goal            for a traced application (`quell track RUN --goal app.goal`)\n  quell advise --noise model.toml --ranks 1024\n  quell advise runs                                  a folder of many nodes: which are unlike the rest, and what they cost\n\nHOW TO READ IT\n  part      what of the slowdown is this source's: the parts add up to the slowdown\n  removed   by how much less the slowdown is without it: what a mitigation can gain\n  alone     the slowdown if there were no other noise\n  They differ where noise overlaps: of what strikes different ranks in one phase only the longest counts."
)]
pub struct Advise {
    /// Recordings; several make the nodes of one machine in turn. A folder of recordings is looked at as many nodes.
    #[arg(value_name = "R.quell|DIR", required_unless_present_any = ["noise", "sweep"])]
    pub recordings: Vec<PathBuf>,
    /// A synthetic noise model in TOML, in place of or beside recordings; its components are its sources.
    #[arg(long, value_name = "MODEL.toml")]
    pub noise: Vec<PathBuf>,
    /// The job; sources are ordered by what they cost at the last of its scales.
    #[command(flatten)]
    pub job: JobArgs,
    /// What ends a phase: max, or messages, as for `predict`.
    #[arg(long, default_value = "max", value_name = "NAME")]
    pub op: OpText,
    /// Bytes of a message of --op [default: 8].
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// An application's schedule in place of phases, as `track --goal` writes it; its ranks and its work are its own.
    #[arg(long, value_name = "APP.goal", conflicts_with_all = ["ranks", "quantum", "op", "bytes", "sync", "skew", "drift", "phases"])]
    pub goal: Option<PathBuf>,
    /// Runs of the schedule, each with its nodes at other places in their noise.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(8..=1000))]
    pub runs: u64,
    /// So many sources stand alone; the others are summed up.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub sources: u64,
    /// The CPUs that compute, for mitigations that move noise to the others; as `quell tune` has them, if not given.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Threads to use; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print one JSON document (schema quell.advise/2; of a folder of many nodes quell.fleet/2).
    #[arg(long)]
    pub json: bool,
    /// Do all combinations of the values that a plan in TOML lists, each under the name of its option here, into a Parquet dataset with a row for each
    /// source; without mitigations. As for `predict --sweep`.
    #[arg(long, value_name = "PLAN.toml", conflicts_with_all = ["recordings", "noise", "ranks", "quantum", "op", "bytes", "sync", "skew", "drift", "phases", "goal", "sources", "seed", "html", "NetArgs"])]
    pub sweep: Option<PathBuf>,
    #[command(flatten)]
    pub sweeping: SweepArgs,
    /// Write a page.
    #[arg(long, value_name = "PAGE.html")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub net: NetArgs,
    #[command(flatten)]
    pub machine: TuneMachine,
}

/// Where the catalogue of a study's advice is looked for: this machine.
pub fn this_machine() -> TuneMachine {
    TuneMachine { sysroot: None, site: SITE.into() }
}
