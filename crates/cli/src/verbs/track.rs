//! `quell track`: what noise did to an MPI run.

mod goal;
pub mod page;
mod timeline;

use std::path::Path;

use quell_analysis::track::{Network, Tracked, Watch, track};
use quell_otf2::Archive;
use quell_request::track::failure;

use super::Outcome;
use crate::args::Track;
use crate::plan::Usage;
use crate::plan::network::{self, NetText};
use crate::printer::Printer;
use crate::progress::Step;
use crate::terminal_track;

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

/// The kernel's side of the run, which has names for what the counters only sum up.
fn name_recording(archive: &Path, printer: Printer) {
    let folder = if archive.is_dir() { Some(archive) } else { archive.parent() };
    let entries = folder.and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let recordings = entries.map(|entry| entry.path());
    if let Some(recording) =
        recordings.filter(|path| path.extension().is_some_and(|end| end == "quell")).min()
    {
        printer.say(&format!(
            "which tasks and interrupts these were: `quell show {} --by source`",
            recording.display()
        ));
    }
}

/// Analyses the archive and shows what came of it.
pub fn run(args: &Track, printer: Printer) -> anyhow::Result<Outcome> {
    if args.asked.net.net == Some(NetText::Help) {
        printer.result(&network::help())?;
        return Ok(Outcome::Done);
    }
    if let Some(output) = &args.goal {
        if args.asked.net.is_given() {
            return Err(Usage("a schedule has no network: give it to `quell simulate`".to_owned()).into());
        }
        return goal::run(args, output, printer);
    }
    if let Some(output) = &args.timeline {
        timeline::refuse(output)?;
    }
    let network = args.asked.network()?;
    let tracked = analyse(&args.asked.archive, network, printer)?;
    if args.json {
        printer.json(&tracked)?;
    } else {
        printer.result(&terminal_track::tracked(&tracked))?;
        name_recording(&args.asked.archive, printer);
    }
    if let Some(output) = &args.html {
        page::write(&args.asked.archive, &tracked, output, printer)?;
    }
    if let Some(output) = &args.timeline {
        timeline::draw(&args.asked.archive, network, &tracked, output, printer)?;
    }
    verdict(&tracked, printer)
}

/// The page alone: `quell report` of an MPI run.
pub fn report(archive: &Path, output: &Path, printer: Printer) -> anyhow::Result<Outcome> {
    let tracked = analyse(archive, None, printer)?;
    page::write(archive, &tracked, output, printer)?;
    verdict(&tracked, printer)
}

fn analyse(archive: &Path, network: Option<Network>, printer: Printer) -> anyhow::Result<Tracked> {
    let mut archive = Archive::open(archive)?;
    let mut progress = Progress { step: Step::new(printer, "track", None) };
    Ok(track(&mut archive, network, &mut progress))
}

/// Names what is wrong with the archive, which makes the command fail.
fn verdict(tracked: &Tracked, printer: Printer) -> anyhow::Result<Outcome> {
    let told = &tracked.findings.told;
    for words in told.iter().take(MOST_TOLD) {
        printer.warn(words);
    }
    if told.len() > MOST_TOLD {
        printer.warn(&format!("and {} more: `--json` has them under `findings`", told.len() - MOST_TOLD));
    }
    if let Some(failure) = failure(tracked) {
        anyhow::bail!(failure);
    }
    Ok(Outcome::Done)
}
