//! The site's own MPI: finds it, compiles a program with it, and runs that program through its launcher.
//!
//! Nothing here links an MPI library. The code that calls MPI is C, built with the site's own `mpicc` and started as the site starts
//! any program.

mod build;
mod command_line;
mod find;
mod launch;
mod program;
mod run;

use std::path::PathBuf;

pub use build::{BENCH, Built, Product, TRACER, build};
pub use command_line::{Launch, LaunchOption, Part, is_launcher, launcher_by_name};
pub use find::{Family, Launcher, Mpi, MpiSelection, Wrapper, find, launcher_of, wrapper};
pub use launch::{Layout, command};
pub use program::{Linked, Used, used_by};
pub use run::{Ended, Progress, run};

/// Why a program cannot be built or run under MPI.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// No compiler wrapper.
    #[error(
        "no MPI compiler was found: {looked_for} is not in PATH. Load the site's MPI module, name the wrapper with `--mpi PATH`, or \
         install one (Debian: `apt-get install openmpi-bin libopenmpi-dev`, or `mpich libmpich-dev`)"
    )]
    NoCompiler {
        /// What was looked for.
        looked_for: String,
    },
    /// The wrapper exists and does not work.
    #[error("{compiler} does not compile a program that includes mpi.h; it printed: {printed}")]
    Compiler {
        /// The wrapper.
        compiler: PathBuf,
        /// Its output.
        printed: String,
    },
    /// No launcher was found.
    #[error(
        "no launcher for {family} was found: tried {tried}. Name it with `--launcher PATH` (mpirun, mpiexec or srun of the same MPI as \
         {compiler})"
    )]
    NoLauncher {
        /// The MPI family.
        family: Family,
        /// Its compiler wrapper.
        compiler: PathBuf,
        /// The candidates.
        tried: String,
    },
    /// No wrapper was found for the MPI that a program uses.
    #[error(
        "{what} belongs to {family}, and no compiler wrapper of it was found to build the tracer: tried {tried}. Load its \
         module, name the wrapper with `--mpi PATH`, or install it (Debian: `apt-get install libopenmpi-dev`, or `libmpich-dev`)"
    )]
    NoWrapper {
        /// The MPI family.
        family: Family,
        /// The program's library, or the launcher.
        what: String,
        /// The candidates.
        tried: String,
    },
    /// The launcher cannot be started.
    #[error("{launcher} cannot be started: {source}")]
    Start {
        /// The launcher.
        launcher: PathBuf,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// No rank reported.
    #[error("no rank of {launcher} began within {seconds} s, so quell ended it; it printed: {printed}")]
    Silent {
        /// The launcher.
        launcher: PathBuf,
        /// How long quell waited.
        seconds: u64,
        /// The launcher's output.
        printed: String,
    },
    /// An operation of the operating system failed; the text names the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The last lines of a program's output, joined to one.
pub(crate) fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(6)..].join(" / ");
    if last.is_empty() { "(nothing)".into() } else { quell_recording::one_line(&last) }
}
