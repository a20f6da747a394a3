//! `quell show`: a recording at a glance.

use quell_analysis::attribution::{Show as Document, attribution};
use quell_analysis::overview::overview;
use quell_recording::Recording;

use super::Outcome;
use crate::args::{By, Show};
use crate::printer::Printer;
use crate::{terminal, terminal_sources};

/// Prints the recording as tables and plots, or as JSON.
pub fn run(args: &Show, printer: Printer) -> anyhow::Result<Outcome> {
    let recording = Recording::open(&args.recording)?;
    let overview = overview(&recording);
    let mut attribution = attribution(&recording);
    if args.json {
        attribution.tasks = attribution.tasks.filter(|_| args.by == By::Task);
        attribution.classes = attribution.classes.filter(|_| args.by == By::Class);
        printer.json(&Document { overview: &overview, attribution: &attribution })?;
        return Ok(Outcome::Done);
    }
    let view = match args.by {
        By::Cpu => None,
        By::Source => Some(terminal_sources::by_source(&attribution)),
        By::Task => Some(terminal_sources::by_task(&attribution)),
        By::Class => Some(terminal_sources::by_class(&attribution)),
    };
    let text = match view {
        Some(view) => terminal::heading(&overview) + &view,
        None => terminal::show(&overview, &attribution, &recording),
    };
    printer.result(&text)?;
    Ok(Outcome::Done)
}
