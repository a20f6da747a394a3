//! Analyses an archive, with a progress bar.

use std::path::Path;

use quell_analysis::track::{Given, NoiseOnly, Reading, Tracked, Watch, track};
use quell_otf2::Archive;
use quell_request::track::failure;

use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;

/// Maximum number of findings on stderr; the document has all of them.
const MAX_LISTED: usize = 8;

/// Shows the progress of the analysis.
struct Progress {
    step: Step,
}

impl Watch for Progress {
    fn progress(&mut self, events: u64) {
        self.step.reach(events);
    }
}

/// Analyses the noise of the archived run.
pub fn analyse(archive: &Path, own_work: bool, given: &Given, printer: Printer) -> anyhow::Result<Reading> {
    let mut progress = Progress { step: Step::new(printer, "track", None) };
    if archive.join("logs").is_dir() && !archive.join("traces.otf2").exists() {
        let shown = archive.display();
        anyhow::bail!(
            "{shown} has the logs of a run, and no archive yet: wait for its end, or, if its `quell trace` was killed, make it with \
             `quell trace -o {shown} --recover`"
        );
    }
    let open = || Archive::open(archive).map(|archive| NoiseOnly::new(archive, own_work));
    Ok(track(open, given, &mut progress)?)
}

/// Prints what is wrong with the archive; errors make the command fail.
pub fn verdict(tracked: &Tracked, printer: Printer) -> anyhow::Result<Outcome> {
    let reported = &tracked.findings.warnings;
    for warning in reported.iter().take(MAX_LISTED) {
        printer.warn(&warning.to_string());
    }
    if reported.len() > MAX_LISTED {
        printer
            .warn(&format!("and {} more: `--json` has them under `findings`", reported.len() - MAX_LISTED));
    }
    if let Some(failure) = failure(tracked) {
        anyhow::bail!(failure);
    }
    Ok(Outcome::Done)
}
