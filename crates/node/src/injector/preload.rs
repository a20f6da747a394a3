//! The libraries that a job loads.

use std::path::{Path, PathBuf};

use fs_err as fs;
use quell_replay::schedule::Context;

/// Injects noise at MPI calls.
const BOUNDARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/quell-replay-boundary.so"));
/// Injects noise by timers and signals.
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

/// The reason why a job cannot load a library from a folder, if there is one.
pub fn obstacle(folder: &Path) -> Option<&'static str> {
    if !fits_variable(folder) {
        return Some("nothing can be loaded from a path with blanks, colons or semicolons");
    }
    is_noexec(folder).then_some("nothing can be loaded from its file system (noexec)")
}

/// Whether LD_PRELOAD can hold the path: the dynamic linker takes these characters for the end of a name, and Open MPI for the end
/// of a variable.
pub fn fits_variable(path: &Path) -> bool {
    !path.to_string_lossy().contains([' ', '\t', ':', ';'])
}

fn is_noexec(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: all zeros are a valid value, the path ends with a NUL, and both live through the call.
    unsafe {
        let mut facts: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &raw mut facts) == 0 && facts.f_flag & libc::ST_NOEXEC != 0
    }
}
