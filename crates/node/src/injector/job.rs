//! Running somebody's command with noise loaded into it, and leaving all else of it as it is.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often it is looked whether a signal came.
const LOOK: Duration = Duration::from_millis(10);

/// What is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// The library.
    pub library: PathBuf,
    /// Its schedule.
    pub schedule: PathBuf,
    /// Where processes report.
    pub reports: PathBuf,
}

/// A variable of the environment.
pub type Variable = (&'static str, OsString);

impl Loading {
    /// The variables that load it, beside what is in this process's own already.
    pub fn variables(&self) -> Vec<Variable> {
        environment(self, |name| std::env::var_os(name))
    }
}

/// Where the command's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Where quell's own goes.
    Own,
    /// All to stderr, as stdout is for a document.
    Stderr,
    /// Nowhere.
    Nowhere,
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

/// Runs a command to its end. A signal that only quell got is passed on.
///
/// # Errors
/// When it cannot be started.
pub fn run(
    words: &[String],
    variables: &[Variable],
    output: Output,
    stop: &AtomicBool,
) -> std::io::Result<Ended> {
    let [program, rest @ ..] = words else { return Err(std::io::ErrorKind::InvalidInput.into()) };
    let mut command = Command::new(program);
    command.args(rest);
    match output {
        Output::Own => {}
        Output::Stderr => {
            command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        }
        Output::Nowhere => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let pid = child.id() as libc::pid_t;
    // A thread waits, so that the end is seen when it comes.
    let waiter = std::thread::spawn(move || (child.wait(), begun.elapsed()));
    let mut passed_on = false;
    while !waiter.is_finished() {
        if stop.load(Ordering::SeqCst) && !passed_on {
            passed_on = true;
            // From a terminal the command got it as well; a second one of these ends it no sooner.
            // SAFETY: a plain system call. The child is not waited for yet, or has ended this instant.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        std::thread::park_timeout(LOOK);
    }
    let (status, elapsed) =
        waiter.join().map_err(|_| std::io::Error::other("the thread that waited is gone"))?;
    Ok(Ended { status: status?, wall_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX) })
}

/// The variables that load the noise, beside what is in them already.
fn environment(loading: &Loading, has: impl Fn(&str) -> Option<OsString>) -> Vec<Variable> {
    let mut preload = loading.library.clone().into_os_string();
    if let Some(others) = has("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    // Open MPI takes to other hosts what is named here; others take everything.
    let mut open_mpi =
        has("OMPI_MCA_mca_base_env_list").filter(|others| !others.is_empty()).unwrap_or_default();
    if !open_mpi.is_empty() {
        open_mpi.push(";");
    }
    open_mpi.push("LD_PRELOAD;QUELL_REPLAY;QUELL_REPLAY_REPORTS");
    vec![
        ("LD_PRELOAD", preload),
        ("QUELL_REPLAY", loading.schedule.clone().into_os_string()),
        ("QUELL_REPLAY_REPORTS", loading.reports.clone().into_os_string()),
        ("OMPI_MCA_mca_base_env_list", open_mpi),
    ]
}

/// Whether a command's program starts the ranks of an MPI program: only these are to suffer then, not it.
pub fn is_launcher(program: &str) -> bool {
    const NAMES: [&str; 10] =
        ["mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "flux", "ibrun"];
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    NAMES.contains(&stem)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn launchers_are_known_by_name() {
        assert!(
            is_launcher("/usr/bin/mpirun.openmpi") && is_launcher("srun") && is_launcher("mpiexec.hydra")
        );
        assert!(!is_launcher("./mpirun_like") && !is_launcher("lmp") && !is_launcher(""));
    }

    #[test]
    fn variables_are_added_to() {
        let loading = Loading { library: "/a.so".into(), schedule: "/s".into(), reports: "/r".into() };
        let has = |name: &str| match name {
            "LD_PRELOAD" => Some("/b.so".into()),
            "OMPI_MCA_mca_base_env_list" => Some("X=1".into()),
            _ => None,
        };
        let of = |name: &str| environment(&loading, has).into_iter().find(|pair| pair.0 == name).unwrap().1;
        assert_eq!(of("LD_PRELOAD"), "/a.so:/b.so");
        assert_eq!(of("OMPI_MCA_mca_base_env_list"), "X=1;LD_PRELOAD;QUELL_REPLAY;QUELL_REPLAY_REPORTS");
    }

    #[test]
    fn ends_are_told_as_a_shell_tells_them() {
        let end = |script: &str| {
            let words = ["sh".to_owned(), "-c".to_owned(), script.to_owned()];
            run(&words, &[], Output::Nowhere, &AtomicBool::new(false)).unwrap().code()
        };
        assert_eq!(end("exit 7"), 7);
        assert_eq!(end("kill -9 $$"), 137);
        assert!(run(&["/no/such/program".to_owned()], &[], Output::Own, &AtomicBool::new(false)).is_err());
    }
}
