//! What was typed behind `quell track`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use quell_request::track::TrackArgs;

use quell_request::size::Ranks;

/// `quell track`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell trace -o run -- mpirun -n 4 ./app      first: trace it\n  quell track run\n  quell track run --html run.html              plots, ranks, places in the program\n  quell track run --timeline run.pftrace       for ui.perfetto.dev: who kept whom waiting\n  quell track run --goal run.goal && quell simulate run.goal --noise node.quell --baseline\n  quell track run --goal big.bin --extrapolate 4Ki     what all ranks do alike, done by more\n\nAny OTF2 archive that has metrics `quell.noise.SOURCE` in ns can be read. What is wrong with one is told on stderr, with exit code 1."
)]
pub struct Track {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Write a page with plots by rank and source, and the places in the program where noise was lost.
    #[arg(long, value_name = "PAGE.html")]
    pub html: Option<PathBuf>,
    /// Write a time line for Perfetto, with arrows from those who were late to those who waited.
    #[arg(long, value_name = "FILE.pftrace")]
    pub timeline: Option<PathBuf>,
    /// Write the run as a GOAL schedule, its work cleaned of noise, for `quell simulate`.
    #[arg(long, value_name = "FILE.goal|FILE.bin", conflicts_with_all = ["json", "html", "timeline"])]
    pub goal: Option<PathBuf>,
    /// Write the schedule of so many ranks instead, of a run whose ranks all do the same; `Ki` and `Mi` are understood.
    #[arg(long, value_name = "RANKS", requires = "goal")]
    pub extrapolate: Option<Ranks>,
    /// Seed by which the work of those ranks is drawn; equal seeds give equal schedules.
    #[arg(long, default_value_t = 1, requires = "extrapolate")]
    pub seed: u64,
    #[command(flatten)]
    pub asked: TrackArgs,
}
