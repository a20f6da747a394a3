//! Keepers: processes that hold what must stay open to have an effect, and that revert when a job or a time is over.
//!
//! A transaction that is to be reverted has two, so that it is reverted in time even if one of them is killed: the second waits for the end
//! of the first and goes on in its place.
//!
//! A keeper takes hold, reports its pid and start time, and waits for the message that these are in the journal. If the pipe closes
//! without that message, it exits. So a crash in between leaves no keeper behind
//! (docs/decisions/2026-11-22-keepers-wait-for-their-name.md).

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::catalogue::Held;
use super::journal::{KeeperRecord, Transaction};
use super::keeper_process::{Followed, follow};
use super::place::{self, PlaceError};
use super::revert::{RevertError, revert_together};
use super::root::Root;
use super::store::{Store, StoreError};

/// The hidden verb that runs a keeper.
pub const VERB: &str = "tune-keep";
/// How often a process without a pidfd is checked.
const LOOK: Duration = Duration::from_millis(100);
/// How often a keeper looks whether a later transaction is closed, without the lock.
const LOOK_BELOW: Duration = Duration::from_secs(1);
/// How often a keeper that is asked to end tries to revert, and how long it waits for another quell: at shutdown systemd kills it
/// after 90 s.
const LAST: (usize, Duration) = (3, Duration::from_secs(75));
/// Pauses of a keeper between attempts to revert: the first, and the longest.
const RETRY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(60)];

/// What ends a transaction automatically: whichever comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    /// A time from now.
    pub after: Option<Duration>,
    /// The end of a process, given by pid and start time in clock ticks after boot.
    pub process: Option<(u32, u64)>,
}

/// What a keeper holds, each at its value.
pub type Holds = Vec<(Held, String)>;

/// The request that a keeper receives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The tree.
    pub root: PathBuf,
    /// The transaction.
    pub id: String,
    /// What to hold.
    pub holds: Holds,
    /// When to revert.
    pub until: Option<Until>,
    /// The keeper from which it takes over, if that one is killed.
    pub after: Option<KeeperRecord>,
}

/// Why there is no keeper.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// It cannot be started, or has died.
    #[error("the process that would hold settings and revert in time cannot be started: {0}")]
    Start(io::Error),
    /// It refused, with this reason.
    #[error("{0}")]
    Refused(String),
}

/// A keeper that waits for the message to continue.
#[derive(Debug)]
pub struct Waiting {
    child: Child,
    record: KeeperRecord,
}

/// Starts a keeper and waits until it holds.
///
/// # Errors
/// See [`KeeperError`].
pub fn start(program: &Path, request: &Request) -> Result<Waiting, KeeperError> {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(program);
    // A process group of its own: a Ctrl-C for the caller must not reach it.
    command
        .arg(VERB)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0);
    let mut child = command.spawn().map_err(KeeperError::Start)?;
    match converse(&mut child, request) {
        Ok(record) => Ok(Waiting { child, record }),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

fn converse(child: &mut Child, request: &Request) -> Result<KeeperRecord, KeeperError> {
    let lost = || KeeperError::Start(io::Error::other("its pipes are closed"));
    let mut line = serde_json::to_vec(request).map_err(|e| KeeperError::Start(e.into()))?;
    line.push(b'\n');
    child.stdin.as_mut().ok_or_else(lost)?.write_all(&line).map_err(KeeperError::Start)?;
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut().ok_or_else(lost)?)
        .read_line(&mut answer)
        .map_err(KeeperError::Start)?;
    let answer: Result<KeeperRecord, String> = serde_json::from_str(&answer)
        .map_err(|_| KeeperError::Start(io::Error::other("it ended before it held a setting")))?;
    answer.map_err(KeeperError::Refused)
}

impl Waiting {
    /// Its pid and start time.
    pub fn record(&self) -> &KeeperRecord {
        &self.record
    }

    /// Lets it continue on its own.
    ///
    /// # Errors
    /// If it is gone already.
    pub fn go(mut self) -> Result<(), KeeperError> {
        let stdin = self.child.stdin.take();
        stdin.map_or(Ok(()), |mut stdin| stdin.write_all(b"go\n")).map_err(KeeperError::Start)
    }
}

/// The main function of the hidden verb: reads the request, holds, and waits.
///
/// # Errors
/// A hold that cannot be taken, or a revert that failed.
pub fn keep() -> Result<(), String> {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    input.by_ref().take(1 << 16).read_line(&mut line).map_err(|e| e.to_string())?;
    let request: Request = serde_json::from_str(&line).map_err(|e| format!("not a keeper's request: {e}"))?;
    let take = || -> Result<Vec<OwnedFd>, PlaceError> {
        request.holds.iter().map(|(what, value)| place::take(*what, value)).collect()
    };
    let taken = if request.after.is_none() { take() } else { Ok(Vec::new()) };
    let begin = Instant::now();
    // From its answer on, the caller counts on it: a signal must not end it before it can revert.
    let signals = request.until.as_ref().map(|_| {
        live_long();
        block_signals()
    });
    // If the process has exited already, the wait is over at once; a new process with the same pid is not mistaken for it.
    let process =
        request.until.as_ref().and_then(|until| until.process).map(|(pid, start)| follow(pid, start));
    let answer = taken.as_ref().map_err(PlaceError::to_string).map(|_| myself(request.until.as_ref()));
    let mut out = io::stdout();
    let text = serde_json::to_string(&answer).map_err(|e| e.to_string())?;
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    let mut held = taken.map_err(|e| e.to_string())?;
    line.clear();
    input.read_line(&mut line).map_err(|e| e.to_string())?;
    if line != "go\n" {
        return Ok(());
    }
    leave_the_caller();
    let after = request.until.as_ref().and_then(|until| until.after);
    let end = after.and_then(|after| begin.checked_add(after));
    if let Some(signals) = signals {
        revert_on_request_to_end(&request, signals);
    }
    if let Some(first) = &request.after {
        wait(None, Some(&follow(first.pid, first.start)));
        held = take().unwrap_or_default();
    }
    let ended = wait(end, process.as_ref());
    drop(held);
    match ended {
        Some(why) => give_back(&request, why, None),
        None => Ok(()),
    }
}

fn myself(until: Option<&Until>) -> KeeperRecord {
    let pid = std::process::id();
    KeeperRecord { pid, start: place::started(pid).unwrap_or(0), until: until.map(Until::to_string) }
}

impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = self.after.and_then(|after| std::time::SystemTime::now().checked_add(after));
        let at = at.map(|at| humantime::format_rfc3339_seconds(at).to_string());
        match (at, self.process) {
            (Some(at), Some((pid, _))) => write!(f, "{at} or the end of process {pid}"),
            (Some(at), None) => f.write_str(&at),
            (None, Some((pid, _))) => write!(f, "the end of process {pid}"),
            (None, None) => f.write_str("reverted"),
        }
    }
}

/// Creates a session of its own, without a terminal, and closes the caller's pipes.
fn leave_the_caller() {
    let _ = rustix::process::setsid();
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Asks the kernel to end other processes first when memory runs out. Only root may.
fn live_long() {
    let _ = fs_err::write("/proc/self/oom_score_adj", "-1000");
}

/// Waits for a moment or the end of a process. With neither, blocks until a signal ends this process.
fn wait(end: Option<Instant>, process: Option<&Followed>) -> Option<&'static str> {
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Some("its time expired");
        }
        match process {
            Some(Followed::Gone) => return Some("its process ended"),
            Some(Followed::Fd(fd)) => {
                let timeout = left.and_then(|left| Timespec::try_from(left).ok());
                if poll(&mut [PollFd::new(fd, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready > 0)
                {
                    return Some("its process ended");
                }
            }
            Some(Followed::Seen(pid, start)) => {
                if place::started(*pid) != Some(*start) {
                    return Some("its process ended");
                }
                std::thread::sleep(left.unwrap_or(LOOK).min(LOOK));
            }
            None => {
                let timeout = left.and_then(|left| Timespec::try_from(left).ok());
                let _ = poll(&mut [], timeout.as_ref());
            }
        }
    }
}

/// Reverts the transaction, and later ones that name this keeper. Another quell may hold the lock for a while, a later plan may have written
/// the same places, and a disk may be full. Hence it retries until nothing is left to revert except what someone else changed, or as often
/// and as long as `limit` permits: then the journal has what is left.
fn give_back(request: &Request, why: &str, limit: Option<(usize, Duration)>) -> Result<(), String> {
    let (mut passes, end) = (0, limit.and_then(|(_, longest)| Instant::now().checked_add(longest)));
    let root = Root::at(&request.root).map_err(|e| e.to_string())?;
    let me = myself(request.until.as_ref());
    let mut ids = kept_by(&root, &me);
    ids.push(request.id.clone());
    for pause in pauses() {
        match revert_together(&root, &ids, why) {
            Ok(reverted) if !reverted.has_failed() => break,
            // Not even a pass: another quell is at work.
            Err(RevertError::Store(StoreError::Locked(_))) => {}
            // Its time is over: as soon as the later one is closed.
            Err(RevertError::Below { above, .. }) if limit.is_none() => {
                while is_open(&root, &above) {
                    std::thread::sleep(LOOK_BELOW);
                }
                continue;
            }
            Ok(_) | Err(_) => passes += 1,
        }
        if limit.is_some_and(|(most, _)| passes >= most) || end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        std::thread::sleep(limit.map_or(pause, |_| pause.min(RETRY[0])));
    }
    Ok(())
}

fn is_open(root: &Root, id: &str) -> bool {
    let Ok(Some(store)) = Store::open_if_there(root) else { return false };
    store.ids().is_ok_and(|ids| ids.iter().any(|one| one == id))
}

/// Each twice the one before, without end: what a disk or a lock lacks for minutes is not there in half a second.
fn pauses() -> impl Iterator<Item = Duration> {
    let [first, longest] = RETRY;
    std::iter::successors(Some(first), move |pause| Some((*pause * 2).min(longest)))
}

/// The open transactions of a keeper.
fn kept_by(root: &Root, keeper: &KeeperRecord) -> Vec<String> {
    let Ok(Some(store)) = Store::open_if_there(root) else { return Vec::new() };
    let is_kept = |id: &String| {
        let read = store.read(id).map(|bytes| Transaction::read(id, &bytes));
        let is_me = |other: &KeeperRecord| (other.pid, other.start) == (keeper.pid, keeper.start);
        read.is_ok_and(|transaction| transaction.keepers.iter().any(is_me))
    };
    store.ids().unwrap_or_default().into_iter().filter(is_kept).collect()
}

/// Blocks the signals with which a session or a machine that shuts down ends its processes.
fn block_signals() -> libc::sigset_t {
    // SAFETY: the set is initialised before use; the mask is this process's own, and is set before its other thread starts.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGTERM);
        libc::sigaddset(&raw mut signals, libc::SIGHUP);
        libc::sigaddset(&raw mut signals, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
        signals
    }
}

/// Reverts on SIGTERM, and ignores the others. `revert` ends a keeper by another signal.
fn revert_on_request_to_end(request: &Request, signals: libc::sigset_t) {
    let request = request.clone();
    let wait = move || {
        let mut signal = 0;
        // SAFETY: both live through the call.
        while unsafe { libc::sigwait(&raw const signals, &raw mut signal) } == 0 {
            if signal == libc::SIGTERM {
                let _ = give_back(&request, "it was asked to end", Some(LAST));
                // SAFETY: this process has no state whose destructor must run.
                unsafe { libc::_exit(0) };
            }
        }
    };
    if std::thread::Builder::new().spawn(wait).is_err() {
        // Without it, the signals end this process, and the journal has what is to be reverted.
        // SAFETY: the set was initialised above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_tries_ever_more_rarely_and_never_ends_to_try() {
        let pauses: Vec<u128> = pauses().map(|pause| pause.as_millis()).take(20).collect();
        assert_eq!(pauses[..8], [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000]);
        assert!(pauses[8..].iter().all(|pause| *pause == 60_000));
    }
}
