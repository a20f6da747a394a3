//! Runs a user's command with a library loaded into its processes, and changes nothing else about it.

use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use fs_err as fs;

use super::passing::Variable;
use crate::realtime;

/// How often quell checks whether a signal arrived.
const LOOK: Duration = Duration::from_millis(10);

/// Where a command's output goes.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// To quell's own stdout and stderr.
    Own,
    /// Everything to stderr, because stdout is reserved for a document.
    Stderr,
    /// Stderr to a file; stdout is discarded.
    File(&'a Path),
}

/// Where a command's input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// quell's own stdin.
    Own,
    /// The file that is quell's stdin, read again from its beginning.
    Again,
    /// Empty.
    None,
}

/// How a command is run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions<'a> {
    /// Variables in addition to its environment.
    pub variables: &'a [Variable],
    /// Where its input comes from.
    pub input: Input,
    /// Where its output goes.
    pub output: Output<'a>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// How long it ran, in ns.
    pub wall_ns: u64,
}

impl Ended {
    /// The exit code as a shell reports it: 128 plus the signal number where a signal ended it.
    pub fn code(&self) -> u8 {
        let signal = || self.status.signal().map(|signal| 128 + signal);
        self.status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

/// Runs a command to its end, and forwards every signal that `pass` receives while it runs.
///
/// # Errors
/// When it cannot be started.
pub fn run(words: &[String], how: &RunOptions<'_>, pass: &AtomicI32) -> std::io::Result<Ended> {
    let [program, rest @ ..] = words else { return Err(std::io::ErrorKind::InvalidInput.into()) };
    let mut command = Command::new(program);
    command.args(rest).envs(how.variables.iter().map(|(name, value)| (name, value)));
    match how.output {
        Output::Own => {}
        Output::Stderr => {
            command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        }
        Output::File(path) => {
            command.stdout(Stdio::null()).stderr(fs::File::create(path)?.into_parts().0);
        }
    }
    match how.input {
        Input::Own => {}
        // A new open file description of the same file, whose offset is 0.
        Input::Again => drop(command.stdin(fs::File::open("/proc/self/fd/0")?.into_parts().0)),
        Input::None => drop(command.stdin(Stdio::null())),
    }
    realtime::limits_as_before(&mut command);
    // A thread of its own waits for the child, so that the end is seen without delay. It starts first: without it, there is no child.
    let (sender, receiver) = channel::<(Child, Instant)>();
    let waiter = std::thread::Builder::new().spawn(move || {
        let (mut child, begun) = receiver.recv().map_err(std::io::Error::other)?;
        child.wait().map(|status| (status, begun.elapsed()))
    })?;
    let begun = Instant::now();
    let child = command.spawn()?;
    let pid = child.id() as libc::pid_t;
    let _ = sender.send((child, begun));
    while !waiter.is_finished() {
        let signal = pass.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: a plain system call. The child has not been waited for yet, or ended this instant.
            unsafe { libc::kill(pid, signal) };
        }
        std::thread::park_timeout(LOOK);
    }
    let joined = waiter.join();
    let (status, elapsed) = joined.map_err(|_| std::io::Error::other("the thread that waited is gone"))??;
    Ok(Ended { status, wall_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    const QUIET: RunOptions<'_> = RunOptions { variables: &[], input: Input::None, output: Output::Own };

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn ends_are_reported_as_a_shell_does() {
        let end = |script: &str| {
            let words = ["sh".to_owned(), "-c".to_owned(), script.to_owned()];
            run(&words, &QUIET, &AtomicI32::new(0)).unwrap().code()
        };
        assert_eq!(end("exit 7"), 7);
        assert_eq!(end("kill -9 $$"), 137);
        assert!(run(&words("/no/such/program"), &QUIET, &AtomicI32::new(0)).is_err());
    }

    #[test]
    fn a_signal_is_passed_on() {
        let script =
            words("sh -c").into_iter().chain(["trap 'exit 9' USR1; while :; do sleep 0.01; done".to_owned()]);
        let words: Vec<String> = script.collect();
        let pass = AtomicI32::new(0);
        let ended = std::thread::scope(|scope| {
            let run = scope.spawn(|| run(&words, &QUIET, &pass).unwrap().code());
            // Before the trap is set the signal would end the shell, so it is sent only once the shell sleeps.
            while !run.is_finished() {
                pass.store(libc::SIGUSR1, Ordering::SeqCst);
                std::thread::yield_now();
            }
            run.join().unwrap()
        });
        assert!(ended == 9 || ended == 128 + libc::SIGUSR1 as u8, "{ended}");
    }
}
