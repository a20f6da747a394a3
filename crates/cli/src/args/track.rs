//! Arguments of `quell track`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use quell_request::track::TrackArgs;

use quell_request::size::{DimsText, Ranks};

/// What more ranks do with the program's problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScalingName {
    /// Each rank has as much of it: the same work, and messages of the same size.
    Weak,
    /// They share it: less work each, and smaller messages where the ranks' parts touch.
    Strong,
}

/// Arguments of `quell track`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell trace -o run -- mpirun -n 4 ./app      first: trace it\n  quell track run\n  quell track run --html run.html              plots, ranks, places in the program\n  quell track run --timeline run.pftrace       for ui.perfetto.dev: which rank made which rank wait\n  quell track run --goal run.goal && quell simulate run.goal --noise node.quell --baseline\n  quell track run --goal big.bin --extrapolate 4Ki     extrapolates the common pattern to more ranks\n\nAny OTF2 archive that has metrics `quell.noise.SOURCE` in ns can be read. Errors in an archive are reported on stderr, with exit code 1."
)]
pub struct Track {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Write an HTML page with plots by rank and source, and the places in the program where noise cost time.
    #[arg(long, value_name = "PAGE.html")]
    pub html: Option<PathBuf>,
    /// Write a timeline for Perfetto, with arrows from ranks that were late to ranks that waited for them.
    #[arg(long, value_name = "FILE.pftrace")]
    pub timeline: Option<PathBuf>,
    /// Write the run as a GOAL schedule, with the noise removed from its work, for `quell simulate`.
    #[arg(long, value_name = "FILE.goal|FILE.bin", conflicts_with_all = ["json", "html", "timeline"])]
    pub goal: Option<PathBuf>,
    /// With --goal: write a schedule of this number of ranks, from a run whose ranks all do the same; `Ki` and `Mi` are understood.
    #[arg(long, value_name = "RANKS", requires = "goal")]
    pub extrapolate: Option<Ranks>,
    /// Whether each of those ranks has as much of the problem as the traced ones, or all share the same problem.
    #[arg(long, value_enum, default_value_t = ScalingName::Weak, requires = "extrapolate")]
    pub scaling: ScalingName,
    /// The sides of their grid, as even as possible by default; as many as the run's has, the last one the fastest.
    #[arg(long, value_name = "AxB", requires = "extrapolate")]
    pub dims: Option<DimsText>,
    /// Random seed of the work of those ranks; equal seeds give equal schedules.
    #[arg(long, default_value_t = 1, requires = "extrapolate")]
    pub seed: u64,
    #[command(flatten)]
    pub options: TrackArgs,
}
