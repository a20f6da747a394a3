//! `quell trace`: traces an MPI run, with noise counters on every event.

mod archive;
mod folder;
mod network;
pub mod node;
mod run_summary;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::ExitCode;

use quell_kernel::{Plan, container};
use quell_node::injector::job::{self, Input, Output, RunOptions};
use quell_node::injector::passing::{Loading, Passed, Variable};
use quell_node::mpi::{self, Built, Used};
use quell_recording::mpi_log::variable;
use quell_request::Usage;

use self::folder::Folder;
use crate::args::{SourcesMode, Trace};
use crate::kernel_side::KernelSide;
use crate::kernel_side::record::{self as record_kernel, Followed, Unstarted};
use crate::printer::Printer;
use crate::signals::Signals;
use crate::steps::measured_networks;
use crate::steps::mpi_cache::mpi_cache;

/// Exit codes of a command that does not exist, and of one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Minimum of `--limit`, in bytes: room for any record.
const LEAST_LIMIT: u64 = 4096;

/// Runs the command, and makes the archive from its ranks' logs. Returns the command's exit code.
pub fn run(args: &Trace, printer: Printer) -> anyhow::Result<ExitCode> {
    if let Some(limit) = args.limit.filter(|limit| limit.0 < LEAST_LIMIT) {
        return Err(Usage(format!("--limit: {} bytes hold no event: give 4Ki or more", limit.0)).into());
    }
    if args.recover {
        return recover(args, printer);
    }
    let folder = Folder::new(&args.output)?;
    match trace(args, &folder, printer) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) => {
            if archive::has_logs(&folder).unwrap_or(false) {
                // The logs that ranks wrote are kept after an error here.
                printer
                    .warn(&format!("no archive was made; the ranks' logs stay in {}", folder.logs.display()));
            } else {
                folder.give_up();
            }
            let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            if !error.is::<Unstarted>() {
                return Err(error);
            }
            printer.error(&error);
            Ok(ExitCode::from(if kind == Some(ErrorKind::NotFound) { NOT_FOUND } else { NOT_STARTED }))
        }
    }
}

/// Makes the archive of a run whose `quell trace` ended before it could.
fn recover(args: &Trace, printer: Printer) -> anyhow::Result<ExitCode> {
    let folder = Folder::left_behind(&args.output)?;
    let made = archive::make(&folder, &[], wants_counters(args))?;
    Ok(ExitCode::from(run_summary::recovered(args, &made, printer)))
}

fn trace(args: &Trace, folder: &Folder, printer: Printer) -> anyhow::Result<u8> {
    let wanted = Plan { follow: true, adopt: true, own_work: args.own_work, ..Plan::default() };
    let tracer = || tracer(args, folder, printer);
    let start = || KernelSide::start(args.sources, wanted, printer);
    let ((used, library), kernel) = match args.network {
        // The recorder would add its cost to what is measured.
        true => (tracer()?, start()?),
        false => both(tracer, start)?,
    };
    let mut loading = Loading { library, variables: variables(args, folder)? };
    let code = match kernel {
        KernelSide::Known(rows) => {
            let container = record_kernel::serve(&rows, printer);
            let served = container.is_some();
            loading.variables.extend(container);
            if served {
                loading.variables.push((variable::NODE, std::env::current_exe()?.into()));
            }
            let Passed { words, variables, .. } = passed(args, &loading, printer);
            let followed = Followed { words: &words, variables: &variables };
            let manifest = record_kernel::follow(*rows, followed, &folder.recording(), printer)?;
            let code = manifest.sources.and_then(|sources| sources.command_exit_code);
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
        }
        KernelSide::Unknown(_) | KernelSide::Unwanted => {
            // This process may be followed itself; then its recorder serves the ranks too. Otherwise the name leads to no recorder, because
            // another one would follow other programs.
            let outer = std::env::var_os(container::VARIABLE).filter(|name| !name.is_empty());
            loading.variables.push((container::VARIABLE, outer.unwrap_or_else(|| "quell-trace-none".into())));
            alone(args, &loading, printer)?
        }
    };
    let nodes = node::wait_for_all(&folder.logs);
    let made = archive::make(folder, &args.command, wants_counters(args));
    if let Ok(made) = &made {
        measured_networks::copy(&used.wrapper, &made.hosts, &folder.path)?;
    }
    Ok(run_summary::report(args, folder, &used, &nodes, made, code, printer))
}

/// Does `aside` in a thread of its own while `here` is done, if there is a thread to be had. The error is that of `aside` if both fail.
fn both<A: Send, H>(
    aside: impl Fn() -> anyhow::Result<A> + Sync,
    here: impl FnOnce() -> anyhow::Result<H>,
) -> anyhow::Result<(A, H)> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, &aside);
        let here = here();
        let aside = thread
            .map_or_else(|_| aside(), |thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        Ok((aside?, here?))
    })
}

/// The MPI that the command uses, and its tracer; measures its network first if that is requested.
fn tracer(args: &Trace, folder: &Folder, printer: Printer) -> anyhow::Result<(Used, PathBuf)> {
    let used = mpi::used_by(&args.command, args.mpi.as_deref())?;
    if args.network {
        network::measure(&used.wrapper, folder, printer)?;
    }
    let library = library(&used, folder, printer)?;
    Ok((used, library))
}

/// Puts the tracer for this MPI into the run's folder, where every host sees it.
fn library(used: &Used, folder: &Folder, printer: Printer) -> anyhow::Result<PathBuf> {
    let Built { path, fresh } = mpi::build(&mpi::TRACER, &used.wrapper, &mpi_cache()?)?;
    if fresh {
        let wrapper = &used.wrapper;
        printer.status(&format!(
            "built the tracer with {} ({})",
            wrapper.compiler.display(),
            format!("{} {}", wrapper.family, wrapper.version).trim_end()
        ));
    }
    let library = folder.library();
    fs_err::copy(path, &library)?;
    Ok(library)
}

fn variables(args: &Trace, folder: &Folder) -> anyhow::Result<Vec<Variable>> {
    let mut variables = vec![(variable::FOLDER, folder.logs.clone().into())];
    variables.extend(args.limit.map(|limit| (variable::LIMIT, OsString::from(limit.0.to_string()))));
    variables.extend(args.own_work.then(|| (node::OWN_WORK, OsString::from("1"))));
    Ok(variables)
}

/// The command that passes the tracer to its ranks; warns where they may lack it.
fn passed(args: &Trace, loading: &Loading, printer: Printer) -> Passed {
    let passed = loading.passed(&args.command);
    passed.doubts.iter().for_each(|doubt| printer.warn(&doubt.to_string()));
    passed
}

/// Runs the command without a recorder.
fn alone(args: &Trace, loading: &Loading, printer: Printer) -> anyhow::Result<u8> {
    let Passed { words, variables, .. } = passed(args, loading, printer);
    let how = RunOptions { variables: &variables, input: Input::Own, output: Output::Own };
    let signals = Signals::catch()?;
    let unstarted = |error| anyhow::Error::new(error).context(Unstarted(words[0].clone()));
    Ok(job::run(&words, &how, &signals.pass).map_err(unstarted)?.code())
}

/// Whether counters were requested, so that quell reports their absence.
fn wants_counters(args: &Trace) -> bool {
    args.sources != SourcesMode::Off
}
