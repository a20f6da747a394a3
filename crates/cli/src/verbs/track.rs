//! `quell track`: what noise did to an MPI run.

mod goal;
mod timeline;

use std::path::Path;

use crate::args::Track;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::render;
use crate::steps::archive_page as page;
use crate::steps::track::{analyse, verdict};
use quell_analysis::track::Reading;
use quell_request::Usage;
use quell_request::network::{self, NetText};

/// Prints the path of the kernel recording of the run, which names the tasks and interrupts that the counters only sum up.
fn name_recording(archive: &Path, printer: Printer) {
    let folder = if archive.is_dir() { Some(archive) } else { archive.parent() };
    let entries = folder.and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let recordings = entries.map(|entry| entry.path());
    if let Some(recording) =
        recordings.filter(|path| path.extension().is_some_and(|end| end == "quell")).min()
    {
        printer.status(&format!(
            "which tasks and interrupts these were: `quell show {} --by source`",
            recording.display()
        ));
    }
}

/// Analyses the archive, and shows the result.
pub fn run(args: &Track, printer: Printer) -> anyhow::Result<Outcome> {
    if args.options.net.net == Some(NetText::Help) {
        printer.result(&network::help())?;
        return Ok(Outcome::Done);
    }
    if let Some(output) = &args.goal {
        if args.options.net.is_given() {
            return Err(Usage("a schedule has no network: give it to `quell simulate`".to_owned()).into());
        }
        return goal::run(args, output, printer);
    }
    if let Some(output) = &args.timeline {
        timeline::refuse(output)?;
    }
    let given = args.options.given()?;
    let Reading { tracked, learned } =
        analyse(&args.options.archive, args.options.own_work, &given, printer)?;
    if args.json {
        printer.json(&tracked)?;
    } else {
        printer.result(&render::track::tracked(&tracked))?;
        name_recording(&args.options.archive, printer);
    }
    if let Some(output) = &args.html {
        page::write(&args.options.archive, &tracked, output, printer)?;
    }
    if let Some(output) = &args.timeline {
        timeline::draw(&args.options, (&given, learned), &tracked, output, printer)?;
    }
    verdict(&tracked, printer)
}
