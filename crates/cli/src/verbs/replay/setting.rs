//! Where and how noise comes in: the context, what it costs here, and the folder for what a job loads.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use quell_node::injector::calibrate::{CalibrationError, calibrate};
use quell_node::injector::job::{self, Loading};
use quell_node::injector::{preload, process};
use quell_node::machine::Cpus;
use quell_recording::Cpu;
use quell_replay::Launched;
use quell_replay::load;
use quell_replay::schedule::Context;
use tempfile::TempDir;

use super::prepare::{self, Cost};
use quell_analysis::predict::SyncName;

use crate::args::Replay;
use crate::printer::Printer;
use quell_request::Usage;

/// How folders begin that are deleted at the end.
const FOLDER: &str = "quell-replay-";

/// The least time between two detours by a timer, where what one costs could not be measured: the longest that is tried then.
const CAREFUL_GAP_NS: u64 = 64_000;

/// The context that was asked for, or the one that fits the command; says which.
pub fn context(args: &Replay, printer: Printer) -> anyhow::Result<Context> {
    let program = args.command.first().map(String::as_str).unwrap_or_default();
    let context = match args.context {
        Some(context) => prepare::of_name(context),
        None if starts_ranks(&args.command)
            || Launched::here().is_some_and(|copy| copy.among_several())
            || args.command.is_empty() =>
        {
            Context::Boundary
        }
        None => {
            printer.say(&format!(
                "{program} is no MPI launcher, so the noise comes in by timers; --context boundary is for MPI programs"
            ));
            Context::Timer
        }
    };
    if args.job.sync == SyncName::Phase && context != Context::Boundary {
        return Err(Usage(format!(
            "--sync phase needs --context boundary: by {} nobody sees a phase end",
            prepare::name(context)
        ))
        .into());
    }
    Ok(context)
}

/// Whether a command starts ranks: by a launcher, be it named by a shell or by `env`, or by quell itself, where it runs a benchmark or
/// records what does.
pub fn starts_ranks(command: &[String]) -> bool {
    const WRAPS: [&str; 9] =
        ["env", "sh", "bash", "time", "nice", "numactl", "taskset", "timeout", "setpriv"];
    let own = std::env::current_exe().ok();
    let name = |path: &Path| path.file_name().map(ToOwned::to_owned);
    let Some((program, words)) = command.split_first() else { return false };
    let first = name(Path::new(program));
    if own.is_some_and(|own| name(&own) == first) {
        let mut parts = words.splitn(2, |word| word == "--");
        let verb = parts.next().and_then(|options| options.iter().find(|word| !word.starts_with('-')));
        return verb.is_some_and(|verb| verb == "bench") || parts.next().is_some_and(starts_ranks);
    }
    let wraps = first.is_some_and(|first| WRAPS.iter().any(|wrap| first == *wrap));
    let mut within = words.iter().flat_map(|word| word.split_whitespace());
    job::is_launcher(program) || (wraps && within.any(job::is_launcher))
}

/// Which CPUs are disturbed from beside, and which is left alone.
#[derive(Debug)]
pub struct Beside {
    pub cpus: Vec<Cpu>,
    pub alone: Cpu,
}

/// The CPUs that were asked for, or all but one.
pub fn beside(args: &Replay) -> anyhow::Result<Beside> {
    let machine = Cpus::of_this_machine()?;
    let wanted = args.cpus.as_ref().map(|list| list.0.as_slice());
    if let Some(wanted) = wanted {
        machine.check(wanted).map_err(|error| Usage(error.to_string()))?;
    }
    let (cpus, alone) = process::choose(wanted, &machine.allowed)?;
    Ok(Beside { cpus, alone })
}

/// What one detour costs in this context, here, where one comes every `period_ns`.
pub fn cost(
    args: &Replay,
    context: Context,
    beside: Option<&Beside>,
    period_ns: u64,
) -> anyhow::Result<Cost> {
    let given = args.overhead.map(|overhead| overhead.as_nanos());
    let mut cost = match (context, beside) {
        (Context::Boundary, _) => Cost::default(),
        (_, Some(beside)) => {
            let found = process::calibrate(beside.cpus[0], beside.alone, period_ns)?;
            Cost {
                overhead_ns: found.overhead_ns,
                early_ns: found.early_ns,
                smallest_gap_ns: found.overhead_ns,
            }
        }
        (_, None) => match (calibrate(Cpus::of_this_machine()?.allowed.last().copied(), period_ns), given) {
            // A CPU that is too busy to tell: what was given then stands alone, with the most careful gap.
            (Err(CalibrationError::Silent { .. }), Some(given)) => {
                Cost { overhead_ns: given, early_ns: 0, smallest_gap_ns: CAREFUL_GAP_NS.max(2 * given) }
            }
            (found, _) => {
                let found = found?;
                Cost {
                    overhead_ns: found.overhead_ns,
                    early_ns: found.early_ns,
                    smallest_gap_ns: found.apart_ns(),
                }
            }
        },
    };
    cost.overhead_ns = given.unwrap_or(cost.overhead_ns);
    Ok(cost)
}

/// Where schedule and reports are.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// What is deleted at the end.
    passing: Option<TempDir>,
}

impl Folder {
    /// The one that was asked for, or one of this user's alone that is deleted at the end.
    pub fn of(args: &Replay) -> anyhow::Result<Self> {
        let folder = match &args.output {
            Some(path) => Self::kept(path)?,
            None => Self::passing(args)?,
        };
        if let Some(why) = preload::obstacle(&folder.path) {
            anyhow::bail!("{}: {why}: name another folder with -o", folder.path.display());
        }
        Ok(folder)
    }

    fn kept(path: &Path) -> anyhow::Result<Self> {
        if path.is_file() || path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let path = path.display();
            return Err(Usage(format!("{path} is there already: name another folder with -o")).into());
        }
        fs_err::create_dir_all(path)?;
        Ok(Self { path: std::path::absolute(path)?, passing: None })
    }

    fn passing(args: &Replay) -> anyhow::Result<Self> {
        let name = |before: &str| format!("{before}{FOLDER}{}-", std::process::id());
        // Other hosts see the folder that a job is started in, and rarely /tmp.
        let here = std::env::current_dir()
            .ok()
            .filter(|here| starts_ranks(&args.command) && preload::fits_variable(here));
        here.iter().for_each(|here| sweep(here));
        let made = here.and_then(|here| tempfile::Builder::new().prefix(&name(".")).tempdir_in(here).ok());
        let made = match made {
            Some(made) => made,
            None => {
                sweep(&std::env::temp_dir());
                tempfile::Builder::new()
                    .prefix(&name(""))
                    .tempdir()
                    .context("name a folder that can be written with -o")?
            }
        };
        Ok(Self { path: made.path().to_owned(), passing: Some(made) })
    }

    /// Nothing ran: what was to be kept would only be in the way of the next try.
    pub fn give_up(self) {
        if self.passing.is_none() {
            let _ = fs_err::remove_dir_all(&self.path);
        }
    }
}

/// Removes folders of quells that were killed; on a folder that hosts share a process of this number may live elsewhere, so only old ones.
fn sweep(folder: &Path) {
    const OLD_S: u64 = 86_400;
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.trim_start_matches('.').strip_prefix(FOLDER).and_then(|rest| rest.split_once('-'));
        let pid = rest.and_then(|(pid, _)| pid.parse::<u32>().ok());
        let gone = pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        let age =
            entry.metadata().and_then(|facts| facts.modified()).ok().and_then(|time| time.elapsed().ok());
        if gone && age.is_some_and(|age| age.as_secs() > OLD_S) {
            let _ = fs_err::remove_dir_all(entry.path());
        }
    }
}

/// Where what a job loads finds its schedule.
pub fn schedule_in(folder: &Path) -> PathBuf {
    folder.join("schedule")
}

/// What a job is to load, in a folder: its library is written, its schedule is not. `None` where a context loads nothing.
pub fn loading(context: Context, folder: &Path, reports: &Path) -> std::io::Result<Option<Loading>> {
    let library = preload::write(context, folder)?;
    let name = |name: &'static CStr| name.to_str().map_err(std::io::Error::other);
    let variables = vec![
        (name(load::SCHEDULE)?, schedule_in(folder).into()),
        (name(load::REPORTS)?, reports.to_owned().into()),
    ];
    Ok(library.map(|library| Loading { library, variables }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_found_behind_what_wraps_them() {
        let starts = |line: &str| starts_ranks(&line.split('|').map(str::to_owned).collect::<Vec<_>>());
        assert!(
            starts("mpirun|-n|2|./app") && starts("env|A=1|srun|./app") && starts("sh|-c|mpiexec -n 2 ./app")
        );
        assert!(!starts("./app|mpirun") && !starts("sh|-c|./app") && !starts(""));
    }
}
