//! Sweeps: the points of a plan, computed by any number of processes, into a dataset that is the same whoever did what.
//!
//! A verb says what its axes are and what a point's row holds ([`Swept`]); the rest is here. Why it is cut as it is:
//! `docs/decisions/2026-11-22-sweeps-are-cut-by-the-plan.md`.

mod context;
pub mod document;
mod folder;
mod identity;
mod noise;
mod recent;
pub mod words;
mod work;

use std::path::Path;

use quell_analysis::sweep::{Axis, Form, MOST_BYTES, Plan, Unit};
use quell_recording::results::{Cell, Kind};

pub use context::{Context, Options};
pub use recent::Recent;

use crate::args::SweepArgs;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::share::Share;
use document::{Estimate, Sweep};
use folder::Folder;
use quell_request::Usage;

/// What a verb says of its sweeps.
pub trait Swept: Send + Sync + 'static {
    /// Its name.
    const VERB: &'static str;
    /// Its axes.
    const FORM: Form;
    /// The columns that follow those of the axes. `point` before them and `error` behind them are every sweep's.
    fn columns() -> Vec<(String, Kind)>;

    /// Refuses a plan that makes no sense, such as one without any noise to predict from.
    ///
    /// # Errors
    /// [`Usage`], with what to write.
    fn check(&self, context: &Context) -> anyhow::Result<()>;

    /// The rows of a unit, in order: at least one for each of its points. A function of the plan and the files alone.
    fn rows(&self, context: &Context, unit: &Unit) -> Vec<Row>;

    /// About how much CPU time a unit takes, in nanoseconds.
    ///
    /// # Errors
    /// Where its noise or its program cannot be read.
    fn cost_ns(&self, context: &Context, unit: &Unit) -> anyhow::Result<u64>;
}

/// One row of the dataset.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which of the unit's points it is of, from 0.
    pub point: usize,
    /// A cell for each of the verb's columns, or why the point has none.
    pub cells: Result<Vec<Cell>, String>,
}

/// How the process was asked to run it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The plan's file.
    pub file: &'a Path,
    /// What was typed beside it.
    pub args: &'a SweepArgs,
    /// Threads; all cores without.
    pub threads: Option<u16>,
    /// Whether a document is printed.
    pub json: bool,
}

/// From here on files of dear points hold fewer.
const DEAR_RANKS: u64 = 1 << 16;

/// Points of a file where the plan does not say: what is done again after a crash is this much for each core at most.
fn points_a_file(axes: &[Axis]) -> u64 {
    let dear = |axis: &Axis| {
        let many = |cell: &Cell| matches!(cell, Cell::U64(ranks) if *ranks >= DEAR_RANKS);
        axis.kind.name == "ranks" && axis.values.iter().any(|value| many(&value.cell))
    };
    if axes.iter().any(dear) { 4 } else { 16 }
}

/// Runs this process's share of a sweep.
pub fn run<V: Swept>(verb: V, asked: Asked<'_>, printer: Printer) -> anyhow::Result<Outcome> {
    let context = Context::new(read(asked.file, &V::FORM)?, asked.file);
    verb.check(&context).map_err(|error| in_file(asked.file, error))?;
    let share = Share::here(asked.args.shard)?;
    let folder = Folder::new(place(asked), V::VERB, V::columns(), &context);
    let folder = folder.map_err(|error| in_file(asked.file, error))?;
    if asked.args.dry_run {
        return dry_run(&verb, &context, &folder, &share, asked.json, printer);
    }
    folder.claim()?;
    // The others' bars would overwrite each other.
    let drawing = if share.speaks() { printer } else { Printer::new(true) };
    let shared = work::Shared::new(verb, context, folder, &share);
    let counts = work::run(&shared, asked.threads, drawing)?;
    let there = shared.folder.there();
    if there == shared.context.plan.chunks() {
        shared.folder.clean();
    }
    let document =
        Sweep { files_there: there, counts, ..Sweep::of(V::VERB, &shared.context, &shared.folder, &share) };
    tell(&document, asked.json, printer)?;
    // A launcher would end the other processes of a job of which one ends otherwise than well.
    let failed = document.counts.failed_rows > 0 && !share.launched;
    Ok(if failed { Outcome::LimitExceeded } else { Outcome::Done })
}

/// What one process of several says for all, or each of what limits its own part.
fn tell(document: &Sweep, json: bool, printer: Printer) -> anyhow::Result<()> {
    if document.counts.failed_rows > 0 {
        printer.warn(&document.failures());
    }
    if document.share.speaks() {
        match json {
            true => printer.json(document)?,
            false => printer.result(&document.text())?,
        }
    }
    Ok(())
}

fn read(file: &Path, form: &Form) -> anyhow::Result<Plan> {
    let bytes = fs_err::metadata(file)?.len();
    if bytes > MOST_BYTES as u64 {
        return Err(Usage(format!("{} has {bytes} bytes, and is no plan of a sweep", file.display())).into());
    }
    let text = fs_err::read_to_string(file)?;
    let plan = Plan::read(&text, form, points_a_file);
    plan.map_err(|error| in_file(file, Usage(error.to_string()).into()))
}

/// Usage stays usage, and names the file.
fn in_file(file: &Path, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Usage>() {
        Ok(Usage(reason)) => Usage(format!("{}: {reason}", file.display())).into(),
        Err(error) => error.context(file.display().to_string()),
    }
}

/// The dataset's folder: what was typed, or the plan's name beside where quell was started.
fn place(asked: Asked<'_>) -> std::path::PathBuf {
    let usual = || Path::new(asked.file.file_stem().unwrap_or_default()).with_extension("sweep");
    asked.args.output.clone().unwrap_or_else(usual)
}

/// So many units are asked what they cost.
const MOST_SAMPLES: u64 = 32;

fn dry_run<V: Swept>(
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
        Sweep { files_there: there, dry_run: Some(estimate), ..Sweep::of(V::VERB, context, folder, share) };
    match json {
        true => printer.json(&document)?,
        false => printer.result(&document.text())?,
    }
    Ok(Outcome::Done)
}
