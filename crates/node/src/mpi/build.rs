//! Compiling the program of `mpi/bench` with the site's wrapper, once for each MPI and version of quell.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;

use super::{Mpi, MpiError, last_words};

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../mpi/", $name)))),*]
    };
}

/// The program's sources, which travel in quell itself.
const SOURCES: &[(&str, &str)] = sources![
    "rank_file.h",
    "bench/bench.h",
    "bench/clocks.c",
    "bench/files.c",
    "bench/loggp.c",
    "bench/main.c",
    "bench/ops.c",
    "bench/phases.c",
    "bench/place.c",
    "bench/work.c",
];

/// The program's name: it is seen in process lists and in what the kernel recorder tells.
const PROGRAM: &str = "quell-bench";

/// A program that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Where it is.
    pub program: PathBuf,
    /// Whether it was compiled just now.
    pub fresh: bool,
}

/// Compiles the benchmarks into `cache`, unless they are there.
///
/// # Errors
/// [`MpiError::Compiler`] with the compiler's words, or [`MpiError::Io`].
pub fn build(mpi: &Mpi, cache: &Path) -> Result<Built, MpiError> {
    let folder = cache.join(format!("{:016x}", key(mpi)));
    let program = folder.join(PROGRAM);
    if program.is_file() {
        return Ok(Built { program, fresh: false });
    }
    // In a folder of its own and renamed, so that two that build at once do not meet.
    let making = cache.join(format!(".making-{}", std::process::id()));
    let built = compile(mpi, &making).and_then(|()| match fs::rename(&making, &folder) {
        Err(_) if program.is_file() => Ok(()),
        other => Ok(other?),
    });
    if making.exists() {
        fs::remove_dir_all(&making)?;
    }
    built.map(|()| Built { program, fresh: true })
}

/// Changes with all that the program is made of.
fn key(mpi: &Mpi) -> u64 {
    let mut hash = DefaultHasher::new();
    (SOURCES, &mpi.compiler, &mpi.version).hash(&mut hash);
    let changed = mpi.compiler.metadata().and_then(|facts| facts.modified());
    changed.ok().hash(&mut hash);
    hash.finish()
}

fn compile(mpi: &Mpi, folder: &Path) -> Result<(), MpiError> {
    for (name, text) in SOURCES {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    let units = SOURCES.iter().map(|(name, _)| name).filter(|name| name.ends_with(".c"));
    let output = Command::new(&mpi.compiler)
        .args(["-std=gnu11", "-O2", "-o", PROGRAM])
        .args(units)
        .arg("-lm")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() && folder.join(PROGRAM).is_file() {
        return Ok(());
    }
    let said = last_words(&String::from_utf8_lossy(&output.stderr));
    Err(MpiError::Compiler { compiler: mpi.compiler.clone(), said })
}
