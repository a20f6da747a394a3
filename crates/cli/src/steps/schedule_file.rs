//! Schedules written to files: in which form, whether one may be replaced, and what was written, in words.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use quell_request::Usage;
use quell_sim::goal::{self, Format, Schedule};

use crate::args::{GoalForm, GoalTarget};

/// The form to write.
pub fn form(target: &GoalTarget) -> Result<Format, Usage> {
    let extension = target.output.extension().and_then(|extension| extension.to_str());
    match (target.to, extension) {
        (Some(GoalForm::Text), _) | (None, Some("goal")) => Ok(Format::Text),
        (Some(GoalForm::Binary), _) | (None, Some("bin")) => Ok(Format::Binary),
        _ => Err(Usage(format!(
            "{} does not say in which form to write: name it NAME.goal or NAME.bin, or add --to text or --to binary",
            target.output.display()
        ))),
    }
}

/// Refuses to replace a file unless that was asked for.
pub fn keep(target: &GoalTarget) -> anyhow::Result<()> {
    if target.output.exists() && !target.force {
        anyhow::bail!("{} exists already: choose another name, or add --force", target.output.display());
    }
    Ok(())
}

/// Writes a schedule beside its place, then moves it there, so that nothing half written stays.
pub fn write(schedule: &Schedule, format: Format, output: &Path) -> anyhow::Result<u64> {
    let mut beside = output.as_os_str().to_owned();
    beside.push(".part");
    let beside = Path::new(&beside);
    let written = write_to(schedule, format, beside).and_then(|bytes| {
        fs_err::rename(beside, output)?;
        Ok(bytes)
    });
    if written.is_err() {
        // The first error is what the reader must know.
        let _ = fs_err::remove_file(beside);
    }
    written.with_context(|| format!("failed to write {}", output.display()))
}

fn write_to(schedule: &Schedule, format: Format, path: &Path) -> anyhow::Result<u64> {
    let mut file = BufWriter::with_capacity(1 << 20, fs_err::File::create(path)?);
    match format {
        Format::Text => goal::write_text(schedule, &mut file)?,
        Format::Binary => goal::write_binary(schedule, &mut file)?,
    }
    file.flush()?;
    Ok(file.get_ref().metadata()?.len())
}

/// What a schedule holds, in words.
pub fn size(schedule: &Schedule) -> String {
    let (operations, _) = quell_sim::loggops::Program::totals(schedule).unwrap_or_default();
    let ranks = quell_sim::loggops::Program::ranks(schedule);
    format!("{ranks} ranks, {operations} operations, {} dependencies", schedule.dependencies())
}

/// Bytes as people read them.
pub fn bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| n >> shift > 0);
    unit.map_or_else(
        || format!("{n} bytes"),
        |(shift, name)| format!("{:.1} {name}", n as f64 / (1u64 << shift) as f64),
    )
}
