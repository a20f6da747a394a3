//! The process of a keeper: whether it is alive, and ending it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::journal::KeeperRecord;
use crate::place;

/// How long a keeper may take to exit after a signal.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A process whose end is awaited.
pub(crate) enum Followed {
    /// It has exited already.
    Gone,
    /// Followed by its pidfd.
    Fd(OwnedFd),
    /// A thread, or a kernel without pidfds: checked periodically.
    Seen(u32, u64),
}

pub(crate) fn follow(pid: u32, start: u64) -> Followed {
    let lives = || place::started(pid) == Some(start);
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    match number.map(|number| pidfd_open(number, PidfdFlags::empty())) {
        // The pid may have been reused before it was opened.
        Some(Ok(fd)) if lives() => Followed::Fd(fd),
        _ if lives() => Followed::Seen(pid, start),
        _ => Followed::Gone,
    }
}

/// Whether a keeper is alive.
pub fn lives(keeper: &KeeperRecord) -> bool {
    place::started(keeper.pid) == Some(keeper.start)
}

/// Whether keepers were to revert, and none of them is left.
pub(crate) fn all_gone(keepers: &[KeeperRecord]) -> bool {
    keepers.iter().any(|keeper| keeper.until.is_some()) && !keepers.iter().any(lives)
}

/// Ends a keeper and waits until it has exited. A new process with the same pid is left alone, and so is this process.
pub(crate) fn stop(keeper: &KeeperRecord) {
    if keeper.pid == std::process::id() {
        return;
    }
    let ended = |signal: Signal| match follow(keeper.pid, keeper.start) {
        Followed::Gone => true,
        Followed::Fd(fd) => {
            let _ = pidfd_send_signal(&fd, signal);
            gone(fd.as_fd(), TIMEOUT)
        }
        Followed::Seen(pid, start) => {
            if let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(number, signal);
            }
            let end = Instant::now() + TIMEOUT;
            while place::started(pid) == Some(start) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(10));
            }
            place::started(pid) != Some(start)
        }
    };
    // Not SIGTERM, on which the keeper would revert by itself.
    let _ = ended(Signal::USR1) || ended(Signal::KILL);
}

fn gone(fd: impl AsFd, timeout: Duration) -> bool {
    let timeout = Timespec::try_from(timeout).ok();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready > 0)
}
