//! The library that a job loads.

use std::path::{Path, PathBuf};

use fs_err as fs;
use quell_replay::schedule::Context;

/// Acts at each MPI call.
const BOUNDARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/quell-replay-boundary.so"));
/// Acts by timers and signals.
const TIMER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/quell-replay-timer.so"));

/// Writes the library of a context into a folder; `None` for the context that loads none.
///
/// # Errors
/// When it cannot be written.
pub fn write(context: Context, folder: &Path) -> std::io::Result<Option<PathBuf>> {
    let (name, bytes) = match context {
        Context::Boundary => ("quell-replay-boundary.so", BOUNDARY),
        Context::Timer => ("quell-replay-timer.so", TIMER),
        Context::Process => return Ok(None),
    };
    let path = folder.join(name);
    fs::write(&path, bytes)?;
    Ok(Some(path))
}
