//! One user of the machine at a time: tests that measure would measure one another, and the kernel has one set of settings.

use std::fs::File;
use std::os::fd::AsRawFd as _;

/// The machine is this test's until the value is dropped.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "closing it ends the turn")] File);

/// Waits until no other test, in this process or another, uses the machine.
///
/// # Panics
///
/// Where the lock's file cannot be opened.
#[must_use]
pub fn machine() -> Turn {
    let path = std::env::temp_dir().join("quell-tests.lock");
    // A file of another user's in a sticky folder is not to be opened with O_CREAT: fs.protected_regular.
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
