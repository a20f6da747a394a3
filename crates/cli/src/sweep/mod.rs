//! Sweeps: any number of processes compute the points of a plan, into a dataset that does not depend on which process did what.
//!
//! A verb declares its axes and the rows of a point ([`Sweepable`]); everything else is here.
//! `docs/decisions/2026-11-22-sweeps-are-cut-by-the-plan.md` gives the reasons for this design.

pub mod axis_syntax;
mod context;
pub mod document;
mod failure;
mod folder;
mod identity;
mod lru_cache;
mod noise;
mod work;

use std::path::{Path, PathBuf};

use quell_analysis::sweep::{Axis, MOST_BYTES, Plan, SweepSpec, Unit};
use quell_recording::results::{Cell, Kind};
use quell_recording::whole_file;

pub use context::{Context, Options};
pub use failure::Failure;
pub use lru_cache::Recent;

use crate::args::SweepArgs;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::share::Share;
use document::{Estimate, Sweep};
use folder::Folder;
use quell_request::Usage;

/// A verb that can be swept.
pub trait Sweepable: Send + Sync + 'static {
    /// Name of the verb.
    const VERB: &'static str;
    /// Its axes.
    const SPEC: SweepSpec;
    /// The columns after those of the axes. Every sweep has `point` before and `error` after them.
    fn columns() -> Vec<(String, Kind)>;

    /// Refuses a plan that makes no sense, for example one without any noise to predict from.
    ///
    /// # Errors
    /// [`Usage`], with what to write in the plan.
    fn check(&self, context: &Context) -> anyhow::Result<()>;

    /// The rows of a unit, in order, at least one for each of its points. They depend only on the plan and the files.
    ///
    /// # Errors
    /// A [`Failure`] that passes.
    fn rows(&self, context: &Context, unit: &Unit) -> Result<Vec<Row>, Failure>;

    /// The approximate CPU time of a unit, in nanoseconds.
    ///
    /// # Errors
    /// If its noise or its program cannot be read.
    fn cost_ns(&self, context: &Context, unit: &Unit) -> anyhow::Result<u64>;
}

/// One row of the dataset.
#[derive(Clone, Debug)]
pub struct Row {
    /// The index of its point in the unit, from 0.
    pub point: usize,
    /// A cell for each of the verb's columns, or why the point has no result.
    pub cells: Result<Vec<Cell>, String>,
}

/// The request to run a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The file of the plan.
    pub file: &'a Path,
    /// The other options of the sweep.
    pub args: &'a SweepArgs,
    /// Number of threads; all cores if not given.
    pub threads: Option<u16>,
    /// Whether to print the result as JSON.
    pub json: bool,
}

/// From this number of ranks on, points are expensive, and a file holds fewer of them.
const DEAR_RANKS: u64 = 1 << 16;

/// The default number of points per file. It bounds what is lost in a crash: one file per core at most.
fn points_a_file(axes: &[Axis]) -> u64 {
    let dear = |axis: &Axis| {
        let many = |cell: &Cell| matches!(cell, Cell::U64(ranks) if *ranks >= DEAR_RANKS);
        axis.kind.name == "ranks" && axis.values.iter().any(|value| many(&value.cell))
    };
    if axes.iter().any(dear) { 4 } else { 16 }
}

/// Computes this process's share of a sweep.
pub fn run<V: Sweepable>(verb: V, request: Request<'_>, printer: Printer) -> anyhow::Result<Outcome> {
    let context = Context::new(read(request.file, &V::SPEC)?, request.file);
    verb.check(&context).map_err(|error| in_file(request.file, error))?;
    let share = Share::here(request.args.shard)?;
    let folder = Folder::new(place(request), V::VERB, V::columns(), &context);
    let folder = folder.map_err(|error| in_file(request.file, error))?;
    if request.args.dry_run {
        return dry_run(&verb, &context, &folder, &share, request.json, printer);
    }
    folder.claim()?;
    // Progress bars of several processes would overwrite each other.
    let drawing = if share.prints_result() { printer } else { Printer::new(true) };
    let shared = work::Shared::new(verb, context, folder, &share);
    let counts = work::run(&shared, request.threads, drawing)?;
    let there = shared.folder.there();
    if there == shared.context.plan.chunks() {
        shared.folder.clean();
    }
    let document =
        Sweep { files_there: there, counts, ..Sweep::new(V::VERB, &shared.context, &shared.folder, &share) };
    report(&document, request.json, printer)?;
    // A launcher would end the other processes of a job if one of them failed.
    let failed = document.counts.failed_rows > 0 && !share.launched;
    Ok(if failed { Outcome::LimitExceeded } else { Outcome::Done })
}

/// Prints the result in one process for all; each process warns about its own share.
fn report(document: &Sweep, json: bool, printer: Printer) -> anyhow::Result<()> {
    if document.counts.failed_rows > 0 {
        printer.warn(&document.failures());
    }
    if document.share.prints_result() {
        match json {
            true => printer.json(document)?,
            false => printer.result(&document.text())?,
        }
    }
    Ok(())
}

fn read(file: &Path, form: &SweepSpec) -> anyhow::Result<Plan> {
    let text = whole_file::read_text(file, MOST_BYTES as u64)?;
    let plan = Plan::read(&text, form, points_a_file);
    plan.map_err(|error| in_file(file, Usage(error.to_string()).into()))
}

/// Adds the name of the file to an error; [`Usage`] stays [`Usage`].
fn in_file(file: &Path, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Usage>() {
        Ok(Usage(reason)) => Usage(format!("{}: {reason}", file.display())).into(),
        Err(error) => error.context(file.display().to_string()),
    }
}

/// The folder of a plan's dataset if none is given: the plan's name, in the current directory.
pub fn default_folder(plan: &Path) -> PathBuf {
    Path::new(plan.file_stem().unwrap_or_default()).with_extension("sweep")
}

/// The folder of the dataset.
fn place(request: Request<'_>) -> PathBuf {
    request.args.output.clone().unwrap_or_else(|| default_folder(request.file))
}

/// Maximum number of units to sample for an estimate.
const MOST_SAMPLES: u64 = 32;

fn dry_run<V: Sweepable>(
    verb: &V,
    context: &Context,
    folder: &Folder,
    share: &Share,
    json: bool,
    printer: Printer,
) -> anyhow::Result<Outcome> {
    folder.compare()?;
    let plan = &context.plan;
    let (units, samples) = (plan.units(), plan.units().min(MOST_SAMPLES));
    let mut cost_ns = 0.0;
    let mut known = 0u64;
    for sample in 0..samples {
        let unit = plan.unit(sample * units / samples);
        match verb.cost_ns(context, &unit) {
            Ok(cost) => (cost_ns, known) = (cost_ns + cost as f64, known + 1),
            Err(error) => printer.warn(&format!("point {}: {error:#}", unit.points[0].number)),
        }
    }
    let each = if known > 0 { cost_ns / known as f64 / 1e9 } else { 0.0 };
    let units_of = |chunk: u64| plan.units_of(chunk).count() as u64;
    let left: Vec<u64> = (0..plan.chunks()).filter(|chunk| !folder.has(*chunk)).collect();
    let own: u64 = left.iter().filter(|chunk| share.holds(**chunk)).map(|chunk| units_of(*chunk)).sum();
    let estimate = Estimate {
        samples: known,
        cpu_s: each * left.iter().map(|chunk| units_of(*chunk)).sum::<u64>() as f64,
        cpu_of_share_s: each * own as f64,
    };
    let there = plan.chunks() - left.len() as u64;
    let document =
        Sweep { files_there: there, dry_run: Some(estimate), ..Sweep::new(V::VERB, context, folder, share) };
    match json {
        true => printer.json(&document)?,
        false => printer.result(&document.text())?,
    }
    Ok(Outcome::Done)
}
