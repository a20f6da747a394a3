//! Keepers: processes that hold what works while it is held open, and revert when a job or a time is over.
//!
//! A keeper starts to hold, tells who it is, and waits for the word that its name is in the journal; without it, it goes. So whoever
//! dies in between leaves none behind.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::catalogue::Held;
use super::journal::KeeperRecord;
use super::place::{self, Trouble};
use super::revert::{Foreign, RevertError, revert};
use super::root::Root;
use super::store::StoreError;

/// The hidden verb that a keeper is.
pub const VERB: &str = "tune-keep";
/// How long a keeper that is told to go may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a keeper waits for the lock when it is time to revert.
const LOCK_PATIENCE: Duration = Duration::from_secs(300);

/// What ends a transaction by itself: what comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    /// A time from now.
    pub after: Option<Duration>,
    /// The end of a process, with its start in clock ticks after boot.
    pub process: Option<(u32, u64)>,
}

/// What a keeper is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The tree.
    pub root: PathBuf,
    /// The transaction.
    pub id: String,
    /// What to hold, each at its value.
    pub holds: Vec<(Held, String)>,
    /// When to revert.
    pub until: Option<Until>,
}

/// Why there is no keeper.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// It cannot be started, or ended.
    #[error("the process that would hold settings and revert in time cannot be started: {0}")]
    Start(io::Error),
    /// It said why not.
    #[error("{0}")]
    Refused(String),
}

/// A keeper that waits for the word.
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
    // A group of its own: a Ctrl-C that is meant for the caller is not for it.
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
    let lost = || KeeperError::Start(io::Error::other("its pipes are gone"));
    let mut line = serde_json::to_vec(request).map_err(|e| KeeperError::Start(e.into()))?;
    line.push(b'\n');
    child.stdin.as_mut().ok_or_else(lost)?.write_all(&line).map_err(KeeperError::Start)?;
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut().ok_or_else(lost)?)
        .read_line(&mut answer)
        .map_err(KeeperError::Start)?;
    let answer: Result<KeeperRecord, String> = serde_json::from_str(&answer)
        .map_err(|_| KeeperError::Start(io::Error::other("it ended before it held anything")))?;
    answer.map_err(KeeperError::Refused)
}

impl Waiting {
    /// Who it is.
    pub fn record(&self) -> &KeeperRecord {
        &self.record
    }

    /// Lets it live on by itself.
    ///
    /// # Errors
    /// Where it is gone already.
    pub fn go(mut self) -> Result<(), KeeperError> {
        let stdin = self.child.stdin.take();
        stdin.map_or(Ok(()), |mut stdin| stdin.write_all(b"go\n")).map_err(KeeperError::Start)
    }
}

/// What the hidden verb does: reads the request, holds, and waits.
///
/// # Errors
/// What cannot be held, and a revert that failed.
pub fn keep() -> Result<(), String> {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    input.by_ref().take(1 << 16).read_line(&mut line).map_err(|e| e.to_string())?;
    let request: Request = serde_json::from_str(&line).map_err(|e| format!("not a keeper's request: {e}"))?;
    let taken: Result<Vec<OwnedFd>, Trouble> =
        request.holds.iter().map(|(what, value)| place::take(*what, value)).collect();
    // A process that is gone already is over at once; a pid that another has now is not it.
    let process =
        request.until.as_ref().and_then(|until| until.process).map(|(pid, start)| follow(pid, start));
    let answer = taken.as_ref().map_err(Trouble::to_string).map(|_| myself(request.until.as_ref()));
    let mut out = io::stdout();
    let text = serde_json::to_string(&answer).map_err(|e| e.to_string())?;
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    let held = taken.map_err(|e| e.to_string())?;
    line.clear();
    input.read_line(&mut line).map_err(|e| e.to_string())?;
    if line != "go\n" {
        return Ok(());
    }
    leave_the_caller();
    let ended = wait(request.until.as_ref().and_then(|until| until.after), process.as_ref());
    drop(held);
    match ended {
        Some(why) => give_back(&request, why),
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

/// A session of its own, no terminal, no pipes of the caller's.
fn leave_the_caller() {
    let _ = rustix::process::setsid();
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// The process, or none where it is gone already.
fn follow(pid: u32, start: u64) -> Option<OwnedFd> {
    let fd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    (place::started(pid) == Some(start)).then_some(fd)
}

/// Waits for the time or the process; none where there is nothing to wait for but a signal, which ends this process.
fn wait(after: Option<Duration>, process: Option<&Option<OwnedFd>>) -> Option<&'static str> {
    let end = after.and_then(|after| Instant::now().checked_add(after));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Some("its time was over");
        }
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match process {
            Some(None) => return Some("its process ended"),
            Some(Some(fd)) => {
                let mut fds = [PollFd::new(fd, PollFlags::IN)];
                if poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0) {
                    return Some("its process ended");
                }
            }
            None => {
                let _ = poll(&mut [], timeout.as_ref());
            }
        }
    }
}

/// Reverts the transaction. Another quell may have the lock for a while.
fn give_back(request: &Request, why: &str) -> Result<(), String> {
    let root = Root::at(&request.root).map_err(|e| e.to_string())?;
    let end = Instant::now() + LOCK_PATIENCE;
    loop {
        match revert(&root, Some(&request.id), Foreign::Keep, why) {
            Err(RevertError::Store(StoreError::Locked(_))) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(200));
            }
            Ok(_) | Err(RevertError::Unknown(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Whether a keeper still lives.
pub fn lives(keeper: &KeeperRecord) -> bool {
    place::started(keeper.pid) == Some(keeper.start)
}

/// Ends a keeper and waits until it is gone. A process that only has its number is left alone, and so is this one.
pub(super) fn stop(keeper: &KeeperRecord) {
    if keeper.pid == std::process::id() {
        return;
    }
    let Some(fd) = follow(keeper.pid, keeper.start) else { return };
    for signal in [Signal::TERM, Signal::KILL] {
        let _ = pidfd_send_signal(&fd, signal);
        if gone(fd.as_fd(), PATIENCE) {
            return;
        }
    }
}

fn gone(fd: impl AsFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).ok();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready > 0)
}
