//! `quell tune export`: exports a plan for other tools.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use quell_tune::Root;
use quell_tune::export::{Export, bindings, shell, slurm, tuned};
use quell_tune::facts::{Facts, Parts};

use super::read_plan;
use crate::args::{ExportForm, TuneExport};
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::steps::audit::root;
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
        Some(folder) => write(&export, folder, printer)?,
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

/// Writes all files or none; existing files are not replaced.
fn write(export: &Export, folder: &Path, printer: Printer) -> anyhow::Result<()> {
    for file in &export.files {
        let path = folder.join(&file.name);
        if path.symlink_metadata().is_ok() {
            anyhow::bail!("{} exists already: choose another folder, or remove it", path.display());
        }
    }
    for file in &export.files {
        use std::io::Write as _;
        let path = folder.join(&file.name);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let mut out = options
            .write(true)
            .create_new(true)
            .mode(file.mode)
            .open(&path)
            .map_err(|e| anyhow::anyhow!("{} cannot be written: {e}", path.display()))?;
        out.write_all(file.text.as_bytes())?;
        printer.status(&format!("wrote {}", path.display()));
    }
    Ok(())
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
