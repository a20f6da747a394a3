//! Writes schedules to files: chooses the format, refuses to overwrite, and describes what was written.

use std::io::{BufWriter, Write};
use std::path::Path;

use quell_recording::AtomicFile;
use quell_request::Usage;
use quell_sim::goal::{self, Format, Schedule};

use crate::args::{GoalForm, GoalTarget};

/// The format to write.
pub fn form(target: &GoalTarget) -> Result<Format, Usage> {
    let extension = target.output.extension().and_then(|extension| extension.to_str());
    match (target.to, extension) {
        (Some(GoalForm::Text), _) | (None, Some("goal")) => Ok(Format::Text),
        (Some(GoalForm::Binary), _) | (None, Some("bin")) => Ok(Format::Binary),
        _ => Err(Usage(format!(
            "{} does not determine the format: name it NAME.goal or NAME.bin, or add --to text or --to binary",
            target.output.display()
        ))),
    }
}

/// Refuses to overwrite a file without `--force`.
pub fn keep(target: &GoalTarget) -> anyhow::Result<()> {
    if target.output.exists() && !target.force {
        anyhow::bail!("{} exists already: choose another name, or add --force", target.output.display());
    }
    Ok(())
}

/// Writes a schedule; returns its size in bytes.
pub fn write(schedule: &Schedule, format: Format, output: &Path) -> anyhow::Result<u64> {
    let mut file = AtomicFile::create(output)?;
    let mut buffered = BufWriter::with_capacity(1 << 20, &mut file);
    match format {
        Format::Text => goal::write_text(schedule, &mut buffered)?,
        Format::Binary => goal::write_binary(schedule, &mut buffered)?,
    }
    buffered.flush()?;
    drop(buffered);
    let bytes = file.as_file().metadata()?.len();
    file.commit()?;
    Ok(bytes)
}

/// A description of a schedule's size.
pub fn size(schedule: &Schedule) -> String {
    let (operations, _) = quell_sim::loggops::Program::totals(schedule).unwrap_or_default();
    let ranks = quell_sim::loggops::Program::ranks(schedule);
    format!("{ranks} ranks, {operations} operations, {} dependencies", schedule.dependencies())
}

/// Formats a number of bytes.
pub fn bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| n >> shift > 0);
    unit.map_or_else(
        || format!("{n} bytes"),
        |(shift, name)| format!("{:.1} {name}", n as f64 / (1u64 << shift) as f64),
    )
}
