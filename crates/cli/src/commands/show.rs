//! `quell show`: a recording at a glance, or those of many hosts.

use std::path::{Path, PathBuf};

use quell_analysis::attribution::{Attribution, Show as Document, attribution};
use quell_analysis::overview::overview;
use quell_recording::Recording;

use super::{Outcome, show_hosts};
use crate::args::{By, Show};
use crate::printer::Printer;
use crate::{terminal, terminal_sources};

/// Where the rest of the sources is.
fn hint(attribution: &Attribution) -> &'static str {
    match attribution.sources {
        Some(_) => "\n`--by source`, `--by task` and `--by class` show who took the CPUs.\n",
        None => "",
    }
}

/// The first run in the folder of a benchmark that made several.
fn one_of_several_runs(folder: &Path) -> Option<PathBuf> {
    let inside = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    inside.filter(|path| path.join("run.json").is_file()).min()
}

/// Prints the recording as tables and plots, or as JSON.
pub fn run(args: &Show, printer: Printer) -> anyhow::Result<Outcome> {
    let hosts = show_hosts::recordings_in(&args.recording)?;
    if !hosts.is_empty() {
        return show_hosts::run(args, &hosts, printer);
    }
    if let Some(run) = one_of_several_runs(&args.recording) {
        anyhow::bail!(
            "{} holds several runs of a benchmark: `quell bench show` shows them together, `quell show {}` the hosts of one",
            args.recording.display(),
            run.display()
        );
    }
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
        None => terminal::show(&overview, &attribution, &recording) + hint(&attribution),
    };
    printer.result(&text)?;
    Ok(Outcome::Done)
}
