//! `quell goal convert`: converts text to LogGOPSim's binary format, or back.

use crate::args::GoalConvert;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::steps::schedule_file::{bytes, form, keep, size, write};
use quell_request::simulate::program;

/// Reads either format, and writes the requested one.
pub fn run(args: &GoalConvert, printer: Printer) -> anyhow::Result<Outcome> {
    let format = form(&args.target)?;
    keep(&args.target)?;
    let (schedule, _) = program::read(&args.schedule, None, &mut |text| printer.warn(text))?;
    let written = write(&schedule, format, &args.target.output)?;
    let output = args.target.output.display();
    printer.status(&format!("{output} holds {}: {}", size(&schedule), bytes(written)));
    Ok(Outcome::Done)
}
