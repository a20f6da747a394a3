//! One run of the benchmark program: start, watch, stop, collect.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quell_analysis::bench::job::{HostRun, RunFacts};
use quell_node::mpi::{self, Ended, Layout, MpiError};
use quell_recording::rank_file::RankFile;

use super::run::{LOGGP, Run};
use super::{Site, collect, describe, write_facts};
use crate::args::{LaunchArgs, SourcesMode};
use crate::printer::Printer;
use crate::progress::Step;
use crate::signals::stopped_by_signals;

/// How long a rank may outlive its launcher.
const LINGER: Duration = Duration::from_secs(3);

/// A run to start.
#[derive(Debug)]
pub struct Job<'a> {
    pub site: &'a Site,
    pub args: &'a LaunchArgs,
    /// The folder for its files.
    pub folder: PathBuf,
    pub layout: Layout,
    /// Arguments of the benchmark program: `NAME=VALUE`.
    pub words: Vec<String>,
    /// The facts that are written to `run.json`.
    pub facts: RunFacts,
}

impl Job<'_> {
    /// Runs until the end or a signal, and leaves no rank running.
    pub fn run(mut self, printer: Printer) -> anyhow::Result<Run> {
        let ranks = self.folder.join("ranks");
        fs_err::create_dir_all(&ranks)?;
        self.facts.mpi = describe(&self.site.mpi);
        self.facts.ranks = self.layout.ranks;
        self.facts.scale = scaled_by();
        self.facts.state = "running".into();
        let command = mpi::command(&self.site.mpi, &self.layout, &self.words(&ranks)?);
        let line = std::iter::once(command.get_program()).chain(command.get_args());
        self.facts.command = line.map(|word| word.to_string_lossy().into_owned()).collect();
        write_facts(&self.folder, &self.facts)?;
        let _going = going_on(&self.folder)?;
        let stop = stopped_by_signals()?;
        let ended = {
            let step = Step::new(printer, "bench", Some(1));
            mpi::run(command, &ranks, &stop, &mut |now| step.set(now.done, now.all.max(1)))
        };
        // From here on a signal ends quell as usual.
        stop.store(true, Ordering::SeqCst);
        let (files, torn) = collect::rank_files(&ranks)?;
        leave_no_one(&files, &self.site.program);
        self.judge(ended, &files);
        if self.facts.state == "failed" {
            self.facts.errors.extend(torn);
        }
        let hosts = match self.hosts(&files) {
            // If the disk was too full for the ranks, it is too full for the collected files as well.
            Err(error) if self.facts.state == "failed" => {
                self.facts.errors.push(format!("the ranks' files cannot be evaluated: {error:#}"));
                Vec::new()
            }
            other => other?,
        };
        match write_facts(&self.folder, &self.facts) {
            Err(_) if self.facts.state == "failed" => {}
            other => other?,
        }
        if self.facts.state == "interrupted" {
            printer.status("interrupted: the phases that were finished are kept");
        }
        Ok(Run { folder: self.folder, facts: self.facts, hosts })
    }

    /// The phases of each host; the network benchmark has none.
    fn hosts(&self, files: &[RankFile]) -> anyhow::Result<Vec<HostRun>> {
        if self.facts.bench == LOGGP {
            Ok(Vec::new())
        } else {
            collect::hosts(&self.folder, files, self.facts.scale)
        }
    }

    fn words(&self, ranks: &Path) -> anyhow::Result<Vec<OsString>> {
        let mut words: Vec<OsString> =
            vec![std::env::current_exe()?.into(), "bench-node".into(), "--out".into()];
        words.push(self.folder.clone().into());
        let sources = match self.args.sources {
            // The kernel's intervals cannot be scaled back.
            _ if self.facts.scale != 1.0 => "off",
            SourcesMode::Auto => "auto",
            SourcesMode::On => "on",
            SourcesMode::Off => "off",
        };
        words.extend(["--sources", sources, "--"].map(OsString::from));
        words.push(self.site.program.clone().into());
        let mut out = OsString::from("out=");
        out.push(ranks);
        words.push(out);
        words.push(format!("ranks={}", self.layout.ranks).into());
        words.push(format!("bind={}", if self.args.no_bind { "none" } else { "auto" }).into());
        words.extend(self.words.iter().map(|word| scaled(word, self.facts.scale).into()));
        Ok(words)
    }

    /// Determines the state of the run and, for a failure, the most specific reason that is known.
    fn judge(&mut self, ended: Result<Ended, MpiError>, files: &[RankFile]) {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.facts.state = "failed".into();
                self.facts.errors = vec![error.to_string()];
                return;
            }
        };
        let well = |file: &&RankFile| {
            file.facts.contains_key("ended") || file.series.iter().any(|s| s.facts.contains_key("ended"))
        };
        let finished = files.iter().filter(well).count();
        if ended.status.success() && finished == self.layout.ranks as usize {
            self.facts.state = if ended.stopped { "interrupted" } else { "complete" }.into();
            return;
        }
        if ended.stopped {
            self.facts.state = "interrupted".into();
            return;
        }
        self.facts.state = "failed".into();
        self.facts.errors = ended.errors;
        if !self.facts.errors.is_empty() {
            return;
        }
        let launcher = self.site.mpi.launcher.display();
        let missing = self.layout.ranks as usize - finished.min(self.layout.ranks as usize);
        let ranks = self.layout.ranks;
        self.facts.errors.push(match ended.status.success() {
            true => format!("{missing} of {ranks} ranks did not finish, although {launcher} reports success"),
            false if files.is_empty() => format!("{launcher} started no rank ({})", ended.status),
            false => {
                format!("a rank died, and {missing} of {ranks} did not finish ({launcher}: {})", ended.status)
            }
        });
        let printed = last_lines(&ended.printed);
        if !printed.is_empty() {
            self.facts.errors.push(format!("the launcher printed: {printed}"));
        }
    }
}

/// The factor by which `quell replay --scale` scales the noise of this command; work is scaled by the same factor.
fn scaled_by() -> f64 {
    let printed = std::env::var(crate::values::replay::SCALE).ok().and_then(|text| text.parse().ok());
    printed.filter(|scale: &f64| scale.is_finite() && *scale > 0.0).unwrap_or(1.0)
}

/// An argument of the benchmark program; if it is a time, it is scaled.
fn scaled(word: &str, scale: f64) -> String {
    let time = |name| word.strip_prefix(name)?.parse::<u64>().ok();
    let of = |name| time(name).map(|ns| format!("{name}{}", (ns as f64 * scale).round()));
    of("work_ns=").or_else(|| of("duration_ns=")).unwrap_or_else(|| word.to_owned())
}

/// Marks the run as active, with a lock that holds as long as the returned file is open.
fn going_on(folder: &Path) -> anyhow::Result<std::fs::File> {
    let file = fs_err::File::open(folder.join("run.json"))?.into_parts().0;
    // On a file system without locks, other processes cannot detect that the run is active; that does no harm.
    let _ = file.try_lock();
    Ok(file)
}

/// Whether a run is active.
pub fn goes_on(folder: &Path) -> bool {
    let file = fs_err::File::open(folder.join("run.json"));
    file.is_ok_and(|file| matches!(file.file().try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// The launcher's last lines, without the frames that some launchers draw.
fn last_lines(printed: &str) -> String {
    let tells = |line: &&str| line.chars().any(char::is_alphanumeric);
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(tells).collect();
    let text = lines[lines.len().saturating_sub(8)..].join(" ");
    quell_recording::one_line(&text).chars().take(900).collect()
}

/// Ends ranks of this host that outlive their launcher. A rank is identified by its process id and its program.
fn leave_no_one(files: &[RankFile], program: &Path) {
    let host = quell_node::machine::host();
    let here = |file: &&RankFile| file.facts.get("host") == host.as_ref();
    let begun = Instant::now();
    for pid in files.iter().filter(here).filter_map(|file| file.number::<i32>("pid")) {
        let lives = || {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
            exe.is_ok_and(|exe| exe == program)
        };
        while lives() && begun.elapsed() < LINGER {
            std::thread::sleep(Duration::from_millis(20));
        }
        if lives() {
            // SAFETY: a plain system call; the process is one that this command started.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}
