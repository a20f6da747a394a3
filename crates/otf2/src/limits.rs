//! How many locations' streams may be open at once.

/// Bytes that open streams may take together.
const MEMORY: u64 = 768 << 20;
/// Files that are left to the rest of the process.
const OTHER_FILES: u64 = 64;

/// The most streams to hold open when each takes so many bytes, after asking for as many files as this process may have.
pub(crate) fn most_open(chunk: u64) -> usize {
    let files = files().saturating_sub(OTHER_FILES);
    usize::try_from((MEMORY / chunk.max(1)).min(files)).unwrap_or(usize::MAX).max(4)
}

/// How many files may be open. The soft limit is raised to the hard one, as far as that makes sense here: it is only soft for the sake of
/// programs that use `select`.
pub(crate) fn files() -> u64 {
    const USEFUL: u64 = 1 << 14;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a whole rlimit, written by the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 256;
    }
    let wanted = limit.rlim_max.min(USEFUL);
    if limit.rlim_cur < wanted {
        let raised = libc::rlimit { rlim_cur: wanted, ..limit };
        // SAFETY: `raised` is a whole rlimit, only read.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            return wanted;
        }
    }
    limit.rlim_cur
}
