//! How many locations' streams may be open at the same time.

/// Maximum memory of all open streams together, in bytes.
const MEMORY: u64 = 768 << 20;
/// Number of open files left to the rest of the process.
const OTHER_FILES: u64 = 64;

/// Maximum number of open streams whose chunks have this size, after raising the limit on open files.
pub(crate) fn most_open(chunk: u64) -> usize {
    let files = files().saturating_sub(OTHER_FILES);
    usize::try_from((MEMORY / chunk.max(1)).min(files)).unwrap_or(usize::MAX).max(4)
}

/// The limit on open files. The soft limit is raised to the hard one, up to a useful number: the soft limit exists only for
/// programs that use `select`.
pub(crate) fn files() -> u64 {
    const USEFUL: u64 = 1 << 14;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the call to write.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 256;
    }
    let wanted = limit.rlim_max.min(USEFUL);
    if limit.rlim_cur < wanted {
        let raised = libc::rlimit { rlim_cur: wanted, ..limit };
        // SAFETY: `raised` is a valid rlimit, and only read.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            return wanted;
        }
    }
    limit.rlim_cur
}
