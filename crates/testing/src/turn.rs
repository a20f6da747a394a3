//! Exclusive use of the machine: tests that measure would disturb each other, and the kernel has only one set of settings.

use std::fs::File;
use std::os::fd::AsRawFd as _;

/// Exclusive use of the machine until the value is dropped.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "closing it ends the turn")] File);

/// Waits until no other test, in this process or another, uses the machine.
///
/// # Panics
///
/// If the lock file cannot be opened.
#[must_use]
pub fn machine() -> Turn {
    let path = std::env::temp_dir().join("quell-tests.lock");
    // Without O_CREAT first, because fs.protected_regular forbids it for another user's file in a sticky folder.
    let open = || fs_err::File::open(&path);
    let file = open().or_else(|_| fs_err::File::create(&path)).or_else(|_| open());
    let (file, _) = file.unwrap_or_else(|error| panic!("tests take turns by a lock: {error}")).into_parts();
    // SAFETY: the descriptor is open, and lives as long as the turn.
    while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
        let error = std::io::Error::last_os_error();
        assert!(error.kind() == std::io::ErrorKind::Interrupted, "tests take turns by a lock: {error}");
    }
    Turn(file)
}
