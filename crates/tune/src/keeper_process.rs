//! The process of a keeper: whether it lives, and its end.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::journal::KeeperRecord;
use crate::place;

/// How long a keeper that is told to go may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process that is waited for.
pub(crate) enum Followed {
    /// It is gone already.
    Gone,
    /// By its descriptor.
    Fd(OwnedFd),
    /// A thread, or a kernel without such descriptors: looked at now and then.
    Seen(u32, u64),
}

pub(crate) fn follow(pid: u32, start: u64) -> Followed {
    let lives = || place::started(pid) == Some(start);
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    match number.map(|number| pidfd_open(number, PidfdFlags::empty())) {
        // The number may have been given anew before it was opened.
        Some(Ok(fd)) if lives() => Followed::Fd(fd),
        _ if lives() => Followed::Seen(pid, start),
        _ => Followed::Gone,
    }
}

/// Whether a keeper still lives.
pub fn lives(keeper: &KeeperRecord) -> bool {
    place::started(keeper.pid) == Some(keeper.start)
}

/// Ends a keeper and waits until it is gone. A process that only has its number is left alone, and so is this one.
pub(crate) fn stop(keeper: &KeeperRecord) {
    if keeper.pid == std::process::id() {
        return;
    }
    let ended = |signal: Signal| match follow(keeper.pid, keeper.start) {
        Followed::Gone => true,
        Followed::Fd(fd) => {
            let _ = pidfd_send_signal(&fd, signal);
            gone(fd.as_fd(), PATIENCE)
        }
        Followed::Seen(pid, start) => {
            if let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(number, signal);
            }
            let end = Instant::now() + PATIENCE;
            while place::started(pid) == Some(start) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(10));
            }
            place::started(pid) != Some(start)
        }
    };
    // Not TERM, at which it would give back itself.
    let _ = ended(Signal::USR1) || ended(Signal::KILL);
}

fn gone(fd: impl AsFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).ok();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready > 0)
}
