//! An archive analysed, with a progress bar.

use std::path::Path;

use quell_analysis::track::{Network, Tracked, Watch, track};
use quell_otf2::Archive;
use quell_request::track::failure;

use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;

/// Findings that are told on stderr; the document has more.
const MOST_TOLD: usize = 8;

/// Tells how far the analysis is.
struct Progress {
    step: Step,
}

impl Watch for Progress {
    fn progress(&mut self, events: u64) {
        self.step.reach(events);
    }
}

/// Follows the noise through the archive.
pub fn analyse(archive: &Path, network: Option<Network>, printer: Printer) -> anyhow::Result<Tracked> {
    let mut archive = Archive::open(archive)?;
    let mut progress = Progress { step: Step::new(printer, "track", None) };
    Ok(track(&mut archive, network, &mut progress))
}

/// Names what is wrong with the archive, which makes the command fail.
pub fn verdict(tracked: &Tracked, printer: Printer) -> anyhow::Result<Outcome> {
    let told = &tracked.findings.warnings;
    for warning in told.iter().take(MOST_TOLD) {
        printer.warn(&warning.to_string());
    }
    if told.len() > MOST_TOLD {
        printer.warn(&format!("and {} more: `--json` has them under `findings`", told.len() - MOST_TOLD));
    }
    if let Some(failure) = failure(tracked) {
        anyhow::bail!(failure);
    }
    Ok(Outcome::Done)
}
