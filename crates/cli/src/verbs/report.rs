//! `quell report`: writes one HTML page from a recording, from a study, or from a traced MPI run.

mod study;

use std::path::Path;

use quell_analysis::attribution::JoinedRecording;
use quell_analysis::overview::overview;
use quell_analysis::track::Given;
use quell_recording::Recording;
use quell_request::job::Defaults;
use quell_request::noise;

use self::study::Study;
use crate::args::Report;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::steps::advise::advice;
use crate::steps::archive_page;
use crate::steps::page::write;
use crate::steps::predict::curves;
use crate::steps::track::{analyse, verdict};

/// Summarizes, predicts and advises if there are detours, and writes the page.
pub fn run(args: &Report, printer: Printer) -> anyhow::Result<Outcome> {
    args.job.options(&Defaults::for_study())?;
    if archive_page::is_archive(&args.recording) {
        let output = args.output.clone().unwrap_or_else(|| archive_page::default_path(&args.recording));
        return report_run(&args.recording, &output, printer);
    }
    let study = Study::at(&args.recording);
    let path = study.map_or_else(|| args.recording.clone(), Study::recording);
    let page = || study.map_or_else(|| args.recording.with_extension("html"), Study::page);
    let output = args.output.clone().unwrap_or_else(page);
    let job = study.map_or_else(|| args.job.clone(), |study| study.job(&args.job));
    let options = job.options(&Defaults::for_study())?;
    let recording = Recording::open(&path)?;
    let overview = overview(&recording);
    let joined = JoinedRecording::new(&recording);
    let attribution = joined.attribution();
    let (curves, advice) = match noise::check(&recording) {
        Ok(()) => {
            let node = noise::sources_of(joined)?;
            (curves(&recording, &options, printer)?, advice(node, &recording, &options, printer))
        }
        Err(why) => {
            printer.warn(&format!("the page has no prediction: {why}"));
            (Vec::new(), None)
        }
    };
    let trials = study.map_or_else(|| Ok(Vec::new()), |study| study.trials(printer))?;
    write(&output, &recording, &overview, &attribution, (&curves, advice.as_ref(), &trials))?;
    printer.status(&format!("wrote {}", output.display()));
    Ok(Outcome::Done)
}

/// Writes the page of an MPI run.
fn report_run(archive: &Path, output: &Path, printer: Printer) -> anyhow::Result<Outcome> {
    let tracked = analyse(archive, false, &Given::default(), printer)?.tracked;
    archive_page::write(archive, &tracked, output, printer)?;
    verdict(&tracked, printer)
}
