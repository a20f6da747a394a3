//! How noise is injected: the context, its cost on this machine, and the folder for the files that a job loads.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use quell_node::injector::calibrate::{CalibrationError, calibrate};
use quell_node::injector::passing::Loading;
use quell_node::injector::process::{self, ProcessError};
use quell_node::injector::{has_launcher, preload};
use quell_node::leftovers;
use quell_node::machine::Cpus;
use quell_node::mpi::is_launcher;
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

/// Prefix of the names of folders that are deleted at the end.
const FOLDER: &str = "quell-replay-";
/// The same in the folder in which a job is started.
const HIDDEN_FOLDER: &str = ".quell-replay-";

/// Whether the library for `boundary` has its hooks (`quell_replay`).
const HAS_HOOKS: bool = cfg!(target_arch = "x86_64");

/// Minimum time between two detours by a timer if their cost could not be measured: the longest that a calibration tries.
const CAREFUL_GAP_NS: u64 = 64_000;

/// The requested context, or the one that suits the command; prints the choice.
pub fn context(args: &Replay, printer: Printer) -> anyhow::Result<Context> {
    let program = args.command.first().map(String::as_str).unwrap_or_default();
    let context = match args.context {
        Some(context) => prepare::from_name(context),
        None if !HAS_HOOKS && starts_ranks(&args.command) => {
            printer.status("timers inject the noise: quell injects at MPI calls on x86-64 only");
            Context::Timer
        }
        None if starts_ranks(&args.command)
            || Launched::here().is_some_and(|copy| copy.among_several())
            || args.command.is_empty() =>
        {
            Context::Boundary
        }
        None => {
            printer.status(&format!(
                "{program} is not an MPI launcher, so timers inject the noise; --context boundary is for MPI programs"
            ));
            Context::Timer
        }
    };
    if context == Context::Boundary && !HAS_HOOKS && !args.command.is_empty() {
        return Err(Usage("--context boundary is for x86-64 only: use --context timer".into()).into());
    }
    if args.job.sync == SyncName::Phase && context != Context::Boundary {
        return Err(Usage(format!(
            "--sync phase needs --context boundary: with {} quell does not see the end of a phase",
            prepare::name(context)
        ))
        .into());
    }
    Ok(context)
}

/// Whether a command starts ranks: by a launcher, which a shell or `env` may wrap, or by quell itself, if it runs a benchmark or records
/// such a command.
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
    is_launcher(program) || has_launcher(command) || (wraps && within.any(is_launcher))
}

/// The CPUs to disturb from a separate process, and the CPU that is left alone.
#[derive(Debug)]
pub struct DisturbedCpus {
    pub cpus: Vec<Cpu>,
    pub alone: Cpu,
}

/// The requested CPUs, or all but one.
pub fn disturbed(args: &Replay) -> anyhow::Result<DisturbedCpus> {
    let machine = Cpus::from_this_machine()?;
    let wanted = args.cpus.as_ref().map(|list| list.0.as_slice());
    if let Some(wanted) = wanted {
        machine.check(wanted).map_err(|error| Usage(error.to_string()))?;
    }
    let (cpus, alone) = process::choose(wanted, &machine.allowed)?;
    Ok(DisturbedCpus { cpus, alone })
}

/// The cost of one detour in this context, on this machine, if one comes every `period_ns`.
pub fn cost(
    args: &Replay,
    context: Context,
    disturbed: Option<&DisturbedCpus>,
    period_ns: u64,
) -> anyhow::Result<Cost> {
    let given = args.overhead.map(|overhead| overhead.as_nanos());
    let mut cost = match (context, disturbed) {
        (Context::Boundary, _) => Cost::default(),
        (_, Some(disturbed)) => {
            match (process::calibrate(disturbed.cpus[0], disturbed.alone, period_ns), given) {
                (Err(ProcessError::Silent(_)), Some(given)) => {
                    Cost { overhead_ns: given, early_ns: 0, smallest_gap_ns: given }
                }
                (found, _) => {
                    let found = found?;
                    Cost {
                        overhead_ns: found.overhead_ns,
                        early_ns: found.early_ns,
                        smallest_gap_ns: found.overhead_ns,
                    }
                }
            }
        }
        (_, None) => {
            match (calibrate(Cpus::from_this_machine()?.allowed.last().copied(), period_ns), given) {
                // On a CPU that is too busy to calibrate, the given overhead is used with the most careful gap.
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
            }
        }
    };
    cost.overhead_ns = given.unwrap_or(cost.overhead_ns);
    Ok(cost)
}

/// The folder of the schedule and the reports.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// A temporary folder that is deleted at the end.
    passing: Option<TempDir>,
}

impl Folder {
    /// The requested folder, or a private one that is deleted at the end.
    pub fn from_args(args: &Replay) -> anyhow::Result<Self> {
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
            return Err(Usage(format!("{path} exists already: name another folder with -o")).into());
        }
        quell_recording::create_folder(path)?;
        Ok(Self { path: std::path::absolute(path)?, passing: None })
    }

    fn passing(args: &Replay) -> anyhow::Result<Self> {
        // Other hosts see the folder in which a job is started, but rarely /tmp.
        let here = std::env::current_dir()
            .ok()
            .filter(|here| starts_ranks(&args.command) && preload::fits_variable(here));
        let made = here.and_then(|here| leftovers::new_in(&here, HIDDEN_FOLDER).ok());
        let made = match made {
            Some(made) => made,
            None => leftovers::new_in(&std::env::temp_dir(), FOLDER)
                .context("name a folder that can be written with -o")?,
        };
        Ok(Self { path: made.path().to_owned(), passing: Some(made) })
    }

    /// Deletes the folder of a run that did not start, since the next attempt requires a new one.
    pub fn give_up(self) {
        if self.passing.is_none() {
            let _ = fs_err::remove_dir_all(&self.path);
        }
    }
}

/// The path at which a job's library finds its schedule.
pub fn schedule_in(folder: &Path) -> PathBuf {
    folder.join("schedule")
}

/// What a job loads, in a folder: writes its library, but not its schedule. `None` if the context loads nothing.
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
