//! A launcher while it runs: its output, the progress of its ranks, and how it ends.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fs_err as fs;

use super::MpiError;

/// Ranks that have not reported by then will not start any more.
const START: Duration = Duration::from_secs(180);
/// How long ranks get to end by themselves, and then the launcher after a signal.
const GRACE: Duration = Duration::from_secs(8);
/// How often the launcher is polled. quell is another process, so this costs the ranks next to nothing.
const LOOK: Duration = Duration::from_millis(40);
/// Maximum number of bytes of output that are kept.
const MAX_PRINTED: usize = 1 << 16;
/// The prefix of the benchmark program's own lines.
const MARK: &str = "quell-bench: ";

/// The progress of the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Done, in phases or nanoseconds.
    pub done: u64,
    /// The total.
    pub all: u64,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The launcher's exit status.
    pub status: ExitStatus,
    /// Whether the run was stopped on request.
    pub stopped: bool,
    /// The errors that the program reported.
    pub errors: Vec<String>,
    /// All other output of launcher and ranks, from both streams.
    pub printed: String,
}

#[derive(Debug, Default)]
struct Heard {
    begun: bool,
    /// Whether the launcher waits for nodes, as srun does outside an allocation.
    queued: bool,
    progress: Progress,
    errors: Vec<String>,
    printed: String,
}

impl Heard {
    fn line(&mut self, line: &str) {
        let Some(at) = line.find(MARK) else {
            // srun's messages before and after it waits in the queue.
            self.queued = (self.queued && !line.contains("has been allocated resources"))
                || line.contains("queued and waiting for resources");
            if self.printed.len() + line.len() < MAX_PRINTED {
                self.printed += line;
                self.printed.push('\n');
            }
            return;
        };
        let ours = &line[at + MARK.len()..];
        self.begun = true;
        if let Some(error) = ours.strip_prefix("error: ") {
            if self.errors.len() < 16 {
                self.errors.push(quell_recording::one_line(error));
            }
        } else if let Some(numbers) = ours.strip_prefix("progress ")
            && let Some((done, all)) = numbers.trim().split_once(' ')
            && let (Ok(done), Ok(all)) = (done.parse(), all.parse())
        {
            self.progress = Progress { done, all };
        }
    }
}

/// Runs `command` to its end, or until `stop` is set. Then a file `stop` in `folder` asks the ranks to end by themselves. If they do
/// not, the launcher gets SIGTERM, and finally the whole process group gets SIGKILL.
///
/// # Errors
/// [`MpiError::Start`] or [`MpiError::Silent`]; a program that fails is not an error here.
pub fn run(
    mut command: Command,
    folder: &Path,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ended, MpiError> {
    let launcher = PathBuf::from(command.get_program());
    // A process group of its own: Ctrl-C then reaches only quell, which ends the ranks in order.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    end_with_parent(&mut command);
    let mut begun = Instant::now();
    let mut child =
        command.spawn().map_err(|source| MpiError::Start { launcher: launcher.clone(), source })?;
    let heard = Arc::new(Mutex::new(Heard::default()));
    let listeners = [listen(child.stdout.take(), &heard), listen(child.stderr.take(), &heard)];
    let mut ending = Ending { child: &mut child, folder, since: None, step: 0 };
    let mut silent = false;
    let status = loop {
        if let Some(status) = ending.child.try_wait()? {
            break status;
        }
        let (began, queued, now) = {
            let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            (heard.begun, heard.queued, heard.progress)
        };
        progress(now);
        if queued {
            begun = Instant::now();
        }
        silent |= !began && begun.elapsed() > START;
        if silent || stop.load(Ordering::SeqCst) {
            ending.press();
        }
        std::thread::sleep(LOOK);
    };
    for listener in listeners.into_iter().flatten() {
        // A rank that outlives its launcher could keep the pipe open forever.
        let started = Instant::now();
        while !listener.is_finished() && started.elapsed() < GRACE {
            std::thread::sleep(LOOK);
        }
    }
    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    if silent {
        let printed = super::last_words(&heard.printed);
        return Err(MpiError::Silent { launcher, seconds: START.as_secs(), printed });
    }
    let stopped = stop.load(Ordering::SeqCst);
    Ok(Ended { status, stopped, errors: heard.errors, printed: heard.printed })
}

/// Ends a run on request, step by step.
struct Ending<'a> {
    child: &'a mut Child,
    folder: &'a Path,
    since: Option<Instant>,
    step: u32,
}

impl Ending<'_> {
    fn press(&mut self) {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < GRACE * self.step {
            return;
        }
        self.step += 1;
        let group = -(self.child.id() as i32);
        match self.step {
            // Ranks check for the file twice a second. If it cannot be written, a signal follows.
            1 => drop(fs::write(self.folder.join("stop"), "")),
            // SAFETY: the child is ours and has not been waited for, so its id is not reused.
            2 => drop(unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) }),
            // SAFETY: as above; the child leads the group.
            _ => drop(unsafe { libc::kill(group, libc::SIGKILL) }),
        }
    }
}

/// Makes the kernel send SIGTERM to the launcher when quell is killed, so that it ends its ranks.
fn end_with_parent(command: &mut Command) {
    // SAFETY: prctl is a plain system call, allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
}

fn listen(stream: Option<impl Read + Send + 'static>, heard: &Arc<Mutex<Heard>>) -> Option<JoinHandle<()>> {
    let (stream, heard) = (stream?, Arc::clone(heard));
    let hear = move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        // Bounded, so that a stream without line ends does not use up the memory.
        while let Ok(1..) = (&mut stream).take(1 << 14).read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line);
            heard.lock().unwrap_or_else(PoisonError::into_inner).line(text.trim_end());
            line.clear();
        }
    };
    // Without it the job ends when it writes to the closed stream, and reports that.
    std::thread::Builder::new().spawn(hear).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn shell(script: &str, stop: &AtomicBool) -> (Ended, Progress, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path());
        let mut last = Progress::default();
        let ended = run(command, folder.path(), stop, &mut |now| last = now).unwrap();
        (ended, last, folder)
    }

    #[test]
    fn output_of_ranks_is_distinguished() {
        let script =
            "echo hello; echo 'quell-bench: progress 3 9'; echo 'x: quell-bench: error: no disk' >&2; exit 7";
        let (ended, _, _folder) = shell(script, &AtomicBool::new(false));
        assert_eq!((ended.status.code(), ended.printed.as_str()), (Some(7), "hello\n"));
        assert_eq!(ended.errors, ["no disk"]);
        assert!(!ended.stopped);
    }

    #[test]
    fn a_wait_in_the_queue_is_no_silence() {
        let mut heard = Heard::default();
        heard.line("srun: job 7 queued and waiting for resources");
        heard.line("srun: something else");
        assert!(heard.queued);
        heard.line("srun: job 7 has been allocated resources");
        assert!(!heard.queued);
    }

    #[test]
    fn ranks_are_asked_to_end_by_a_file() {
        let script =
            "echo 'quell-bench: progress 0 1'; until [ -e stop ]; do read x < /dev/null; done; echo bye";
        let (ended, _, _folder) = shell(script, &AtomicBool::new(true));
        assert!(ended.stopped && ended.status.success() && ended.printed.contains("bye"));
    }
}
