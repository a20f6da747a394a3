//! `quell report`: one HTML page from a recording, from a study, or from a traced MPI run.

mod study;

use quell_analysis::advise::Advice;
use quell_analysis::attribution::{Attribution, attribution};
use quell_analysis::overview::{Overview, overview};
use quell_analysis::predict::{Options, Prediction};
use quell_analysis::whatif::Job;
use quell_recording::Recording;
use quell_request::job::Defaults;
use quell_sim::SyncMode;
use serde_json::Value;

use self::study::Study;
use super::advise::{self, Remedies};
use super::track::page;
use super::{Outcome, predict, track};
use crate::args::{Report, this_machine};
use crate::html::{self, Page};
use crate::printer::Printer;
use quell_request::noise;

/// So many sources stand alone on a page.
const MOST_SOURCES: usize = 8;

/// Sums up, predicts and advises where there are detours, and writes the page.
pub fn run(args: &Report, printer: Printer) -> anyhow::Result<Outcome> {
    args.job.options(&Defaults::of_a_study())?;
    if page::is_archive(&args.recording) {
        let output = args.output.clone().unwrap_or_else(|| page::beside(&args.recording));
        return track::report(&args.recording, &output, printer);
    }
    let study = Study::at(&args.recording);
    let path = study.map_or_else(|| args.recording.clone(), Study::recording);
    let page = || study.map_or_else(|| args.recording.with_extension("html"), Study::page);
    let output = args.output.clone().unwrap_or_else(page);
    let job = study.map_or_else(|| args.job.clone(), |study| study.job(&args.job));
    let options = job.options(&Defaults::of_a_study())?;
    let recording = Recording::open(&path)?;
    let overview = overview(&recording);
    let attribution = attribution(&recording);
    let (curves, advice) = match can_predict(&recording) {
        Ok(()) => (curves(&recording, &options, printer)?, advice(&recording, &options, printer)),
        Err(why) => {
            printer.warn(&format!("the page has no prediction: {why}"));
            (Vec::new(), None)
        }
    };
    let trials = study.map_or_else(|| Ok(Vec::new()), |study| study.trials(printer))?;
    write(&output, &recording, &overview, &attribution, (&curves, advice.as_ref(), &trials))?;
    printer.say(&format!("wrote {}", output.display()));
    Ok(Outcome::Done)
}

/// Whether there is something to predict from.
pub fn can_predict(recording: &Recording) -> anyhow::Result<()> {
    noise::check(recording)
}

/// The job as it is, and what co-scheduling can do at most: all nodes in step.
pub fn curves(recording: &Recording, options: &Options, printer: Printer) -> anyhow::Result<Vec<Prediction>> {
    let noise = [noise::of_recording(recording)?];
    let curve = |sync| predict::curve(&noise, &Options { sync, ..options.clone() }, printer);
    let mut modes = vec![options.sync, SyncMode::Phase];
    modes.dedup();
    modes.into_iter().map(curve).collect()
}

/// The scales at which a study advises, those of `tune try` and more; sources are ordered by what they cost at the last.
const ADVISED: [u64; 5] = [2, 16, 128, 1_024, 4_096];

/// What each source costs and what to do about it, up to the largest scale that is predicted; said to be missing where it fails.
pub fn advice(recording: &Recording, options: &Options, printer: Printer) -> Option<Advice> {
    let made = || {
        let most = options.ranks.iter().copied().max().unwrap_or(1);
        let mut ranks: Vec<u64> = ADVISED.into_iter().filter(|ranks| *ranks <= most).collect();
        if ranks.is_empty() {
            ranks.push(most);
        }
        let &Options { quantum, sync, phases, seed, .. } = options;
        let options = Options { quantum, sync, seed, phases: phases.min(1_000), ..advise::of_advice(ranks) };
        let nodes = [noise::sources_of(recording)?];
        let remedies = Remedies::look(&this_machine(), None, std::slice::from_ref(&recording.manifest.host))?;
        advise::of(&nodes, &Job::Phases(options), &remedies, MOST_SOURCES, printer)
    };
    match made() {
        Ok(advice) => Some(advice),
        Err(why) => {
            printer.warn(&format!("there is no advice: {why:#}"));
            None
        }
    }
}

/// Writes the page of one recording.
pub fn write(
    output: &std::path::Path,
    recording: &Recording,
    overview: &Overview,
    attribution: &Attribution,
    (curves, advice, trials): (&[Prediction], Option<&Advice>, &[Value]),
) -> anyhow::Result<()> {
    let title = recording.manifest.host.clone().unwrap_or_else(|| recording.name());
    html::write(
        output,
        &Page {
            show: Some(overview),
            sources: Some(attribution),
            traces: &recording.traces,
            predict: curves,
            advice,
            trials,
            ..Page::new(&title)
        },
    )
}
