//! `quell track --goal`: converts the run to a schedule for `quell simulate`.

use std::path::Path;

use quell_analysis::track::{Extrapolation, Replayable, goal};
use quell_otf2::Archive;

use crate::args::{GoalTarget, Track};
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::steps::schedule_file as schedules;
use quell_request::Usage;

/// Maximum number of skipped events to list on stderr.
const MAX_LISTED: usize = 8;

/// Makes the schedule, and writes it.
pub fn run(args: &Track, output: &Path, printer: Printer) -> anyhow::Result<Outcome> {
    let target = GoalTarget { output: output.to_owned(), to: None, force: false };
    let format = schedules::form(&target).map_err(|_| {
        Usage(format!("{} does not determine the format: name it NAME.goal or NAME.bin", output.display()))
    })?;
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    let mut archive = args.options.noise_of(Archive::open(&args.options.archive)?);
    let extrapolation = args.extrapolate.map(|ranks| Extrapolation { ranks: ranks.0, seed: args.seed });
    let made = {
        let step = Step::new(printer, "track", None);
        goal(&mut archive, extrapolation, &mut |events| step.reach(events))?
    };
    let bytes = schedules::write(&made.schedule, format, output)?;
    report(&made, printer);
    printer.status(&format!(
        "{} holds {}: {}; without noise it takes {:.6} s on the default network",
        output.display(),
        schedules::size(&made.schedule),
        schedules::bytes(bytes),
        made.quiet_ns as f64 / 1e9
    ));
    printer.status(&format!(
        "next: quell simulate {} --noise NODE.quell --baseline, with a recording of a node by `quell record`",
        output.display()
    ));
    Ok(Outcome::Done)
}

/// Prints how the schedule differs from the run.
fn report(made: &Replayable, printer: Printer) {
    let skipped = &made.skipped;
    let counts = [
        (skipped.sends, "sends without a receive"),
        (skipped.receives, "receives without a send"),
        (skipped.collectives, "parts of incomplete collectives"),
        (skipped.threads, "threads that are not the first of their rank"),
    ];
    let counted: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !counted.is_empty() {
        printer.warn(&format!("left out: {}", counted.join(", ")));
    }
    for words in skipped.notes.iter().take(MAX_LISTED) {
        printer.warn(words);
    }
    if skipped.notes.len() > MAX_LISTED {
        printer.warn("and more");
    }
    if made.needs_buffers {
        printer.warn(
            "it ends only if sends do not wait for their receivers: give `quell simulate` a network with a \
             large S, such as --net S=1Gi",
        );
    }
    if let Some(grid) = &made.grid {
        printer.status(&format!(
            "regular: {grid}; work drawn from the traced ranks' at the same step, sizes of each rank kept"
        ));
    }
}
