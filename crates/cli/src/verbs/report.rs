//! `quell report`: writes one HTML page from a recording, from several, from a study, or from a traced MPI run.

mod study;

use std::path::Path;

use quell_analysis::attribution::JoinedRecording;
use quell_analysis::fleet::FleetJob;
use quell_analysis::overview::overview;
use quell_analysis::track::Given;
use quell_page::{Page, Part};
use quell_recording::Recording;
use quell_request::Usage;
use quell_request::job::Defaults;
use quell_request::show::Several;
use quell_sim::SyncMode;

use self::study::Study;
use crate::args::Report;
use crate::html;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::steps::archive_page;
use crate::steps::page::{Cost, Measured, write};
use crate::steps::track::{analyse, verdict};

/// Writes the page of what is named.
pub fn run(args: &Report, printer: Printer) -> anyhow::Result<Outcome> {
    args.job.options(&Defaults::for_study())?;
    let one = match args.recordings.as_slice() {
        [one] => Some(one.as_path()),
        _ => None,
    };
    if let Some(archive) = one.filter(|path| archive_page::is_archive(path)) {
        let output = args.output.clone().unwrap_or_else(|| archive_page::default_path(archive));
        return report_run(archive, &output, printer);
    }
    let study = one.and_then(Study::at);
    match Several::among(&args.recordings)?.filter(|_| study.is_none()) {
        Some(several) => report_hosts(args, &several, printer),
        None => report_recording(args, study, printer),
    }
}

/// Writes the page of several hosts.
fn report_hosts(args: &Report, several: &Several, printer: Printer) -> anyhow::Result<Outcome> {
    let options = args.job.options(&Defaults::for_study())?;
    if options.sync != SyncMode::None {
        let text = "the page of several recordings has the cost of phases of unsynchronised hosts only: leave --sync out, or name one recording";
        return Err(Usage(text.into()).into());
    }
    let Some(first) = args.recordings.first() else { anyhow::bail!("no recording is named") };
    let folder = archive_page::default_path(first);
    let output = match (&args.output, args.recordings.as_slice()) {
        (Some(output), _) => output.clone(),
        (None, [_]) => folder.clone(),
        (None, _) => folder.with_file_name("hosts.html"),
    };
    let job = FleetJob { ranks: options.ranks, quantum: options.quantum, seed: options.seed };
    let mut hosts = {
        let step = Step::long(printer, "read", Some(1));
        several.summarized(Some(job), &mut |text| printer.warn(text), &|done, all| step.go_on(done, all))?
    };
    let title = match args.recordings.as_slice() {
        [_] => archive_page::name(first),
        _ => format!("{} recordings", hosts.hosts.len()),
    };
    let fleet = hosts.fleet.take();
    let mut page = Page::new(&title).with(Part::Hosts, &hosts)?;
    if let Some(fleet) = &fleet {
        page = page.with(Part::Fleet, fleet)?;
    }
    html::write(&output, &page)?;
    printer.status(&format!("wrote {}", output.display()));
    Ok(Outcome::Done)
}

/// Summarizes, predicts and advises if there are detours, and writes the page.
fn report_recording(args: &Report, study: Option<Study<'_>>, printer: Printer) -> anyhow::Result<Outcome> {
    let Some(given) = args.recordings.first() else { anyhow::bail!("no recording is named") };
    let path = study.map_or_else(|| given.clone(), Study::recording);
    let page = || study.map_or_else(|| given.with_extension("html"), Study::page);
    let output = args.output.clone().unwrap_or_else(page);
    let job = study.map_or_else(|| args.job.clone(), |study| study.job(&args.job));
    let options = job.options(&Defaults::for_study())?;
    let recording = Recording::open(&path)?;
    let overview = overview(&recording);
    let joined = JoinedRecording::new(&recording);
    let attribution = joined.attribution();
    let cost = Cost::predicted(joined, &options, "the page", printer)?;
    let trials = study.map_or_else(|| Ok(Vec::new()), |study| study.trials(printer))?;
    let measured = Measured { recording: &recording, overview: &overview, attribution: &attribution };
    write(&output, measured, &cost, &trials)?;
    printer.status(&format!("wrote {}", output.display()));
    Ok(Outcome::Done)
}

/// Writes the page of an MPI run.
fn report_run(archive: &Path, output: &Path, printer: Printer) -> anyhow::Result<Outcome> {
    let tracked = analyse(archive, false, &Given::default(), printer)?.tracked;
    archive_page::write(archive, &tracked, output, printer)?;
    verdict(&tracked, printer)
}
