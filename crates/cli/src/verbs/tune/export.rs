//! `quell tune export`: exports a plan for other tools.

use quell_tune::Root;
use quell_tune::export::{Export, bindings, shell, slurm, tuned};
use quell_tune::facts::{Facts, Parts};

use super::read_plan;
use crate::args::{ExportForm, TuneExport};
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::steps::audit::root;
use crate::steps::export_files;
use quell_request::Usage;

/// Writes the export into a folder, or prints it.
pub fn run(args: &TuneExport, printer: Printer) -> anyhow::Result<Outcome> {
    let export = match (args.form, &args.plan) {
        (ExportForm::Bindings, _) => export_this_node(args, &root(args.sysroot.as_deref())?)?,
        (_, None) => return Err(Usage("this format needs a PLAN (`quell tune plan -o PLAN`)".into()).into()),
        (ExportForm::Tuned, Some(plan)) => tuned(&read_plan(plan)?),
        (ExportForm::Shell, Some(plan)) => shell(&read_plan(plan)?),
        (ExportForm::Slurm, Some(plan)) => slurm(&read_plan(plan)?),
    };
    match &args.output {
        Some(folder) => export_files::write(&export, folder, printer)?,
        None => print(&export, printer)?,
    }
    for left in &export.left {
        printer.warn(&format!("{}: {}: {}", left.mitigation, left.what, left.why));
    }
    Ok(Outcome::Done)
}

fn export_this_node(args: &TuneExport, root: &Root) -> anyhow::Result<Export> {
    if args.plan.is_some() {
        return Err(Usage("bindings depend on this node, not on a plan: leave PLAN out".into()).into());
    }
    if args.ranks == Some(0) {
        return Err(Usage("--ranks 0 binds nothing: give at least 1".into()).into());
    }
    let facts = Facts::look(root).map_err(anyhow::Error::msg)?;
    let cpus = args.options.cpus.as_ref().map(|list| list.0.as_slice());
    let parts = Parts::choose(&facts, cpus).map_err(Usage)?;
    Ok(bindings(&facts, &parts, args.ranks))
}

fn print(export: &Export, printer: Printer) -> anyhow::Result<()> {
    let mut text = String::new();
    for file in &export.files {
        if export.files.len() > 1 {
            text += &format!("### {}\n", one_line(&file.name));
        }
        text += &file.text;
    }
    Ok(printer.result(&text)?)
}
