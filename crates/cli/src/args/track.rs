//! What was typed behind `quell track`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::NetArgs;

/// `quell track`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell trace -o run -- mpirun -n 4 ./app      first: trace it\n  quell track run\n  quell track run --html run.html              plots, ranks, places in the program\n  quell track run --timeline run.pftrace       for ui.perfetto.dev: who kept whom waiting\n  quell track run --goal run.goal && quell simulate run.goal --noise node.quell --baseline\n\nAny OTF2 archive that has metrics `quell.noise.SOURCE` in ns can be read. What is wrong with one is told on stderr, with exit code 1."
)]
pub struct Track {
    /// The run: a folder that `quell trace` made, any OTF2 archive's folder, or its anchor file (`traces.otf2`).
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
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
    #[arg(long, value_name = "FILE.goal|FILE.bin")]
    pub goal: Option<PathBuf>,
    #[command(flatten)]
    pub net: NetArgs,
}
