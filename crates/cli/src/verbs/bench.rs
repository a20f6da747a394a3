//! `quell bench`: runs benchmarks under the site's MPI, and records the kernel while they run.

mod allreduce;
mod bsp;
mod collect;
mod document;
mod fwq;
mod halo;
mod job;
mod loggp;
pub mod node;
mod run;
mod show;

use std::path::{Path, PathBuf};

use quell_analysis::bench::job::RunFacts;
use quell_node::machine::Cpus;
use quell_node::mpi::{self, Built, Layout, Mpi, MpiSelection};
use quell_replay::Launched;

use crate::args::{Bench, BenchVerb, LaunchArgs};
use crate::outcome::Outcome;
use crate::plan::name_of_now;
use crate::printer::Printer;
use crate::steps::mpi_cache::mpi_cache;
use job::Job;
use quell_request::Usage;
use run::Run;

/// Runs a benchmark, or shows the results of an earlier run.
pub fn run(args: &Bench, printer: Printer) -> anyhow::Result<Outcome> {
    match &args.bench {
        BenchVerb::Bsp(args) => bsp::run(args, printer),
        BenchVerb::Allreduce(args) => allreduce::run(args, printer),
        BenchVerb::Halo(args) => halo::run(args, printer),
        BenchVerb::Fwq(args) => fwq::run(args, printer),
        BenchVerb::Loggp(args) => loggp::run(args, printer),
        BenchVerb::Show(args) => show::run(args, printer),
    }
}

/// What all runs of one command share.
#[derive(Debug)]
struct Site {
    mpi: Mpi,
    program: PathBuf,
    /// The folder of all results.
    folder: PathBuf,
}

impl Site {
    /// Finds the MPI, builds the benchmark program, and creates the folder.
    fn prepare(args: &LaunchArgs, bench: &str, printer: Printer) -> anyhow::Result<Self> {
        if Launched::here().is_some_and(|launched| launched.among_several() && !is_interactive(launched)) {
            let text =
                "`quell bench` starts the launcher itself: run it once, without mpirun or srun before it";
            return Err(Usage(text.into()).into());
        }
        let selection = MpiSelection { mpi: args.mpi.clone(), launcher: args.launcher.clone() };
        let mpi = mpi::find(&selection)?;
        let folder = args.output.clone().unwrap_or_else(|| free_name(bench));
        if folder.exists() {
            return Err(Usage(format!(
                "{} exists already: choose another folder with -o, or remove it first",
                folder.display()
            ))
            .into());
        }
        let Built { path: program, fresh } = mpi::build(&mpi::BENCH, &mpi.wrapper(), &mpi_cache()?)?;
        if fresh {
            printer.status(&format!(
                "built the benchmarks with {} ({})",
                mpi.compiler.display(),
                describe(&mpi)
            ));
        }
        quell_recording::create_folder(&folder)?;
        // Ranks may start in another directory.
        let folder = fs_err::canonicalize(&folder)?;
        Ok(Self { mpi, program, folder })
    }
}

/// Whether this is an interactive shell's task in a Slurm step, as of `srun --pty`; other tasks of the step may run in parallel.
fn is_interactive(launched: Launched) -> bool {
    launched.rank == 0 && std::env::var_os("SLURM_STEP_ID").is_some()
}

/// An unused name for a folder: several runs may start within a second.
fn free_name(bench: &str) -> PathBuf {
    let name = format!("bench-{bench}-{}", name_of_now());
    let numbered = (2..).map(|number| PathBuf::from(format!("{name}-{number}")));
    let mut names = std::iter::once(PathBuf::from(&name)).chain(numbered);
    names.find(|name| !name.exists()).unwrap_or_default()
}

/// A description of the MPI.
fn describe(mpi: &Mpi) -> String {
    format!("{} {}", mpi.family, mpi.version).trim_end().to_owned()
}

/// Runs each job until one fails, shows the results of all, and fails if a run did.
fn run_and_show<'a>(
    site: &Site,
    args: &LaunchArgs,
    jobs: impl Iterator<Item = Job<'a>>,
    printer: Printer,
) -> anyhow::Result<Outcome> {
    let mut runs: Vec<Run> = Vec::new();
    for job in jobs {
        runs.push(job.run(printer)?);
        if runs.last().is_some_and(|run| run.facts.state != "complete") {
            break;
        }
    }
    conclude(site, args, &runs, 1, printer)
}

/// Shows the results of the runs, and fails if a run did.
fn conclude(
    site: &Site,
    args: &LaunchArgs,
    runs: &[Run],
    seed: u64,
    printer: Printer,
) -> anyhow::Result<Outcome> {
    let failed = runs.iter().find(|run| run.facts.state == "failed");
    match document::build(runs, seed) {
        Ok(document) => document::show(&document, Some(&site.folder), args.json, printer)?,
        // A run that failed before its first phase has no result but its error.
        Err(_) if failed.is_some() => {}
        Err(error) => return Err(error),
    }
    if let Some(run) = failed {
        return Err(failure(run));
    }
    printer
        .status(&format!("the run is in {}: show it again with `quell bench show`", site.folder.display()));
    Ok(Outcome::Done)
}

/// Why a run failed, and where to find its output.
fn failure(run: &Run) -> anyhow::Error {
    anyhow::anyhow!(
        "the run failed: {} (its finished part is in {})",
        run.facts.errors.join("; "),
        run.folder.display()
    )
}

/// A run with this number of ranks. If there are several runs, each has a folder of its own.
fn job_of<'a>(
    site: &'a Site,
    args: &'a LaunchArgs,
    several: bool,
    ranks: u32,
    words: Vec<String>,
    facts: RunFacts,
) -> Job<'a> {
    let folder = folder_of(site, several, &format!("n{ranks:05}"));
    let layout = Layout { ranks, per_node: args.per_node, extra: args.extra_words() };
    Job { site, args, folder, layout, words, facts }
}

/// The folder of one of several runs.
fn folder_of(site: &Site, several: bool, name: &str) -> PathBuf {
    if several { site.folder.join(name) } else { site.folder.clone() }
}

/// The numbers of ranks to run with.
fn ranks(args: &LaunchArgs) -> anyhow::Result<Vec<u32>> {
    let Some(list) = &args.ranks else {
        let cpus = Cpus::from_this_machine()?.allowed.len();
        return Ok(vec![u32::try_from(cpus)?]);
    };
    let fits = |&ranks: &u64| {
        let fits = u32::try_from(ranks).ok().filter(|ranks| *ranks <= 1 << 20);
        fits.ok_or_else(|| Usage(format!("{ranks} ranks are more than any launcher starts")))
    };
    Ok(list.0.iter().map(fits).collect::<Result<_, _>>()?)
}

/// Writes the facts of a run into its folder.
fn write_facts(folder: &Path, facts: &RunFacts) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(facts)? + "\n";
    Ok(quell_recording::atomic_write(&folder.join("run.json"), text.as_bytes())?)
}
