//! Queries and controls systemd through `systemctl`.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::super::PlaceError;
use crate::root::Root;

/// Possible answers of `is-active`.
pub const ACTIVE: [&str; 7] =
    ["active", "inactive", "failed", "activating", "deactivating", "reloading", "unknown"];

/// Possible answers of `is-enabled`.
pub const ENABLED: [&str; 14] = [
    "enabled",
    "disabled",
    "static",
    "masked",
    "indirect",
    "generated",
    "alias",
    "linked",
    "linked-runtime",
    "enabled-runtime",
    "masked-runtime",
    "transient",
    "not-found",
    "bad",
];

/// Timeout: systemd itself kills a unit that stops slowly after 90 s.
const LONGEST: Duration = Duration::from_secs(90);

/// Maximum number of bytes of an answer that are read.
const MOST: u64 = 4096;

/// The same of an answer about all units.
const MOST_SHOWN: u64 = 1 << 20;

/// The state of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// One of [`ACTIVE`].
    pub active: String,
    /// One of [`ENABLED`].
    pub enabled: String,
}

/// The `systemctl` program.
#[derive(Clone, Debug)]
pub struct Systemctl {
    program: PathBuf,
    longest: Duration,
}

struct Answer {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Systemctl {
    /// Finds the machine's `systemctl`, or the one in a copy.
    pub fn find(root: &Root) -> Result<Self, PlaceError> {
        let found = if root.is_system() { in_path() } else { in_tree(root)? };
        let program = found.ok_or_else(|| PlaceError::Unavailable("there is no systemctl here".into()))?;
        Ok(Self { program, longest: LONGEST })
    }

    /// The state of a unit.
    pub fn state(&self, unit: &str) -> Result<State, PlaceError> {
        let active = self.ask("is-active", unit)?;
        let word = active.out.trim();
        if !ACTIVE.contains(&word) {
            let printed = line(&format!("{} {}", active.out, active.err));
            return Err(PlaceError::Unavailable(format!("systemd does not run here (systemctl: {printed})")));
        }
        let enabled = self.ask("is-enabled", unit)?;
        let state = match enabled.out.trim() {
            // Before systemd 253 only the error message says so.
            "" if enabled.err.contains("No such file") => "not-found",
            known if ENABLED.contains(&known) => known,
            _ => {
                let printed = line(&format!("{} {}", enabled.out, enabled.err));
                return Err(PlaceError::Unavailable(format!(
                    "systemd does not run here (systemctl: {printed})"
                )));
            }
        };
        if state == "not-found" && !super::runs(word) {
            return Err(PlaceError::Missing);
        }
        Ok(State { active: word.to_owned(), enabled: state.to_owned() })
    }

    /// What it prints of these units.
    pub fn show(&self, units: &[&str]) -> Result<String, PlaceError> {
        let args = ["show", "--property=Id,LoadState,ActiveState,UnitFileState", "--"];
        let units = units.iter().filter(|unit| is_plain(unit));
        Ok(self.call(&args.iter().chain(units).copied().collect::<Vec<_>>(), MOST_SHOWN)?.out)
    }

    /// Runs a command on a unit.
    pub fn run(&self, command: &str, unit: &str) -> Result<(), PlaceError> {
        let answer = self.ask(command, unit)?;
        if answer.status.success() {
            return Ok(());
        }
        let how = match (answer.status.code(), answer.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (_, signal) => format!("signal {}", signal.unwrap_or(0)),
        };
        let printed = line(&format!("{} {}", answer.err, answer.out));
        Err(PlaceError::Other(format!("`systemctl {command} {unit}` failed ({how}): {printed}")))
    }

    /// Lets systemd read its files again.
    pub fn reload(&self) -> Result<(), PlaceError> {
        self.call(&["daemon-reload"], MOST).map(drop)
    }

    fn ask(&self, command: &str, unit: &str) -> Result<Answer, PlaceError> {
        if !is_plain(unit) {
            return Err(PlaceError::Invalid(line(unit)));
        }
        self.call(&[command, unit], MOST)
    }

    /// Runs it, and takes at most this many bytes of what it prints.
    fn call(&self, args: &[&str], most: u64) -> Result<Answer, PlaceError> {
        let failed =
            |e: std::io::Error| PlaceError::Other(format!("{} cannot be run: {e}", self.program.display()));
        // Files, not pipes: a process that it leaves running must not block the reader.
        let (out, err) = (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
        let mut child = Command::new(&self.program)
            .args(args)
            .env("LC_ALL", "C")
            .env("SYSTEMD_COLORS", "0")
            .env("SYSTEMD_PAGER", "")
            // Its errors are not those of a service that calls it.
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(err.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let end = Instant::now() + self.longest;
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if Instant::now() >= end {
                child.kill().and_then(|()| child.wait()).map_err(failed)?;
                return Err(PlaceError::Other(format!(
                    "`systemctl {}` did not end within {} s and was killed: see `systemctl status {}`",
                    args.join(" "),
                    self.longest.as_secs(),
                    args.last().unwrap_or(&"")
                )));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        };
        Ok(Answer { status, out: text(out, most).map_err(failed)?, err: text(err, most).map_err(failed)? })
    }

    #[cfg(test)]
    pub fn hurried(mut self) -> Self {
        self.longest = Duration::from_millis(200);
        self
    }
}

fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    places.find_map(|folder| Some(folder.join("systemctl")).filter(|program| program.is_file()))
}

/// The `systemctl` of a copy, which must be a stand-in: a real one would control the systemd of this machine.
fn in_tree(root: &Root) -> Result<Option<PathBuf>, PlaceError> {
    let systemd_here = Path::new("/run/systemd/system").exists();
    for path in ["/usr/bin/systemctl", "/bin/systemctl"] {
        let Ok(program) = root.inside(path) else { continue };
        if systemd_here && !is_script(&program) {
            return Err(PlaceError::Unavailable(
                "the tree's systemctl would speak to the systemd of this machine".into(),
            ));
        }
        return Ok(Some(program));
    }
    Ok(if systemd_here { None } else { in_path() })
}

fn is_script(program: &Path) -> bool {
    let mut start = [0u8; 2];
    let mut file =
        fs_err::File::open(program).ok().filter(|file| file.metadata().is_ok_and(|facts| facts.is_file()));
    file.as_mut().is_some_and(|file| file.read_exact(&mut start).is_ok()) && &start == b"#!"
}

fn is_plain(unit: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@-_.:\\".contains(c);
    !unit.is_empty() && !unit.starts_with('-') && unit.chars().all(plain)
}

fn text(mut file: File, most: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Its output, as one short line without control characters.
fn line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line: String = words.join(" ").chars().take(200).collect();
    if line.is_empty() { "nothing".into() } else { line }
}
