//! `quell show`: a recording at a glance.

use quell_analysis::overview::overview;
use quell_recording::Recording;

use super::Outcome;
use crate::args::Show;
use crate::printer::Printer;
use crate::terminal;

/// Prints the recording as tables and plots, or as JSON.
pub fn run(args: &Show, printer: Printer) -> anyhow::Result<Outcome> {
    let recording = Recording::open(&args.recording)?;
    let overview = overview(&recording);
    if args.json {
        printer.json(&overview)?;
    } else {
        printer.result(&terminal::show(&overview, &recording))?;
    }
    Ok(Outcome::Done)
}
