//! `quell goal convert`: text to LogGOPSim's binary, or back.

use super::{form, keep, size, write};
use crate::args::GoalConvert;
use crate::commands::Outcome;
use crate::printer::Printer;
use quell_request::simulate::program;

/// Reads either form, writes the one that was asked for.
pub fn run(args: &GoalConvert, printer: Printer) -> anyhow::Result<Outcome> {
    let format = form(&args.target)?;
    keep(&args.target)?;
    let (schedule, _) = program::read(&args.schedule, &mut |text| printer.warn(text))?;
    let bytes = write(&schedule, format, &args.target.output)?;
    let output = args.target.output.display();
    printer.say(&format!("{output} holds {}: {}", size(&schedule), super::bytes(bytes)));
    Ok(Outcome::Done)
}
