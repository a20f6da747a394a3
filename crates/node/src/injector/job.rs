//! Running somebody's command with a library loaded into it, and leaving all else of it as it is.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use fs_err as fs;

use crate::realtime;

/// How often it is looked whether a signal came.
const LOOK: Duration = Duration::from_millis(10);
/// Names what the linker loads first.
const PRELOAD: &str = "LD_PRELOAD";
/// What Open MPI takes to other hosts; other MPIs take everything.
const OPEN_MPI_LIST: &str = "OMPI_MCA_mca_base_env_list";

/// What is loaded into each process of a command, on every host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// The library.
    pub library: PathBuf,
    /// What it finds in its environment.
    pub variables: Vec<Variable>,
}

/// A variable of the environment.
pub type Variable = (&'static str, OsString);

impl Loading {
    /// The variables that load it into a command, beside what is in this process's own already.
    pub fn variables(&self, command: &[String]) -> Vec<Variable> {
        self.beside(exports(command), |name| std::env::var_os(name))
    }

    fn beside(&self, exports: bool, has: impl Fn(&str) -> Option<OsString>) -> Vec<Variable> {
        let others = |name: &str| has(name).filter(|others| !others.is_empty());
        let mut preload = self.library.clone().into_os_string();
        if let Some(others) = others(PRELOAD) {
            preload.push(":");
            preload.push(others);
        }
        let mut variables = vec![(PRELOAD, preload)];
        variables.extend(self.variables.iter().cloned());
        if !exports {
            let mut list = others(OPEN_MPI_LIST).unwrap_or_default();
            if !list.is_empty() {
                list.push(";");
            }
            list.push(self.names().collect::<Vec<_>>().join(";"));
            variables.push((OPEN_MPI_LIST, list));
        }
        variables
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(PRELOAD).chain(self.variables.iter().map(|(name, _)| *name))
    }

    /// The command, told to take the variables along where it names others with `-x`.
    pub fn taken_along(&self, command: &[String]) -> Vec<String> {
        let mut words = command.to_vec();
        if exports(command) && command.first().is_some_and(|program| is_launcher(program)) {
            words.splice(1..1, self.names().flat_map(|name| ["-x".to_owned(), name.to_owned()]));
        }
        words
    }
}

/// Whether a command names variables to Open MPI with `-x`; it takes no list beside that.
fn exports(command: &[String]) -> bool {
    let mpi =
        |word: &String| ["mpirun", "mpiexec", "orterun", "prterun"].iter().any(|name| word.contains(name));
    command.iter().any(mpi) && command.iter().any(|word| word == "-x" || word.contains(" -x "))
}

/// Whether a command's program starts the ranks of an MPI program: only these are to suffer then, not it.
pub fn is_launcher(program: &str) -> bool {
    const NAMES: [&str; 10] =
        ["mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "flux", "ibrun"];
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    NAMES.contains(&stem)
}

/// Where a command's output goes.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// Where quell's own goes.
    Own,
    /// All to stderr, as stdout is for a document.
    Stderr,
    /// Stderr into a file, stdout nowhere.
    File(&'a Path),
}

/// What a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// What quell was given.
    Own,
    /// The file that quell was given, from its beginning.
    Again,
    /// Nothing.
    None,
}

/// How a command is run.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Variables beside its environment.
    pub variables: &'a [Variable],
    /// What it reads.
    pub input: Input,
    /// Where it writes.
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
    /// The exit code, as a shell has it: 128 and the number of the signal that ended it.
    pub fn code(&self) -> u8 {
        let signal = || self.status.signal().map(|signal| 128 + signal);
        self.status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

/// Runs a command to its end. A signal that `pass` holds meanwhile is passed on to it.
///
/// # Errors
/// When it cannot be started.
pub fn run(words: &[String], how: &How<'_>, pass: &AtomicI32) -> std::io::Result<Ended> {
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
        // A new description of the same file, which begins at its beginning.
        Input::Again => drop(command.stdin(fs::File::open("/proc/self/fd/0")?.into_parts().0)),
        Input::None => drop(command.stdin(Stdio::null())),
    }
    realtime::limits_as_before(&mut command);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let pid = child.id() as libc::pid_t;
    // A thread waits, so that the end is seen when it comes.
    let waiter = std::thread::spawn(move || (child.wait(), begun.elapsed()));
    while !waiter.is_finished() {
        let signal = pass.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: a plain system call. The child is not waited for yet, or has ended this instant.
            unsafe { libc::kill(pid, signal) };
        }
        std::thread::park_timeout(LOOK);
    }
    let joined = waiter.join();
    let (status, elapsed) = joined.map_err(|_| std::io::Error::other("the thread that waited is gone"))?;
    Ok(Ended { status: status?, wall_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    const QUIET: How<'_> = How { variables: &[], input: Input::None, output: Output::Own };

    fn loading() -> Loading {
        let variables = vec![("QUELL_REPLAY", "/s".into()), ("QUELL_REPLAY_REPORTS", "/r".into())];
        Loading { library: "/a.so".into(), variables }
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn variables_that_open_mpi_takes_along_are_named_to_it() {
        let taken_along = |words: &[String]| loading().taken_along(words);
        let told = taken_along(&words("mpirun -x A -n 2 ./app")).join(" ");
        assert_eq!(told, "mpirun -x LD_PRELOAD -x QUELL_REPLAY -x QUELL_REPLAY_REPORTS -x A -n 2 ./app");
        for same in ["mpirun -n 2 ./app", "srun -x node7 ./app"] {
            assert_eq!(taken_along(&words(same)).join(" "), same);
        }
    }

    #[test]
    fn launchers_are_known_by_name() {
        assert!(
            is_launcher("/usr/bin/mpirun.openmpi") && is_launcher("srun") && is_launcher("mpiexec.hydra")
        );
        assert!(!is_launcher("./mpirun_like") && !is_launcher("lmp") && !is_launcher(""));
    }

    #[test]
    fn variables_are_added_to() {
        let has = |name: &str| match name {
            "LD_PRELOAD" => Some("/b.so".into()),
            OPEN_MPI_LIST => Some("X=1".into()),
            _ => None,
        };
        let of = |exports, name: &str| {
            let found = loading().beside(exports, has).into_iter().find(|pair| pair.0 == name);
            found.map(|pair| pair.1)
        };
        assert_eq!(of(false, "LD_PRELOAD").unwrap(), "/a.so:/b.so");
        assert_eq!(of(false, OPEN_MPI_LIST).unwrap(), "X=1;LD_PRELOAD;QUELL_REPLAY;QUELL_REPLAY_REPORTS");
        assert_eq!(of(true, OPEN_MPI_LIST), None, "Open MPI ends a job that has both");
    }

    #[test]
    fn ends_are_told_as_a_shell_tells_them() {
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
            // Until the trap is set the signal's own end comes, so it is sent only once the shell sleeps.
            while !run.is_finished() {
                pass.store(libc::SIGUSR1, Ordering::SeqCst);
                std::thread::yield_now();
            }
            run.join().unwrap()
        });
        assert!(ended == 9 || ended == 128 + libc::SIGUSR1 as u8, "{ended}");
    }
}
