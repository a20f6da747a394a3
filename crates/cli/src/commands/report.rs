//! `quell report`: one HTML page from a recording, from a study, or from a traced MPI run.

mod study;

use quell_analysis::advise::Advice;
use quell_analysis::attribution::{Attribution, attribution};
use quell_analysis::overview::{Overview, overview};
use quell_analysis::predict::{Mode, Options, Prediction};
use quell_analysis::whatif::Job;
use quell_recording::Recording;
use serde_json::Value;

use self::study::Study;
use super::advise::{self, Remedies};
use super::track::page;
use super::{Outcome, predict, track};
use crate::args::{Report, Scaling, this_machine};
use crate::html::{self, Page};
use crate::noise_file;
use crate::plan;
use crate::printer::Printer;

/// So many sources stand alone on a page.
const MOST_SOURCES: usize = 8;

/// Sums up, predicts and advises where there are detours, and writes the page.
pub fn run(args: &Report, printer: Printer) -> anyhow::Result<Outcome> {
    plan::positive(args.scaling.quantum, "--quantum")?;
    if page::is_archive(&args.recording) {
        let output = args.output.clone().unwrap_or_else(|| page::beside(&args.recording));
        return track::report(&args.recording, &output, printer);
    }
    let study = Study::at(&args.recording);
    let path = study.map_or_else(|| args.recording.clone(), Study::recording);
    let page = || study.map_or_else(|| args.recording.with_extension("html"), Study::page);
    let output = args.output.clone().unwrap_or_else(page);
    let scaling = study.map_or_else(|| args.scaling.clone(), |study| study.scaling(&args.scaling));
    let recording = Recording::open(&path)?;
    let overview = overview(&recording);
    let attribution = attribution(&recording);
    let (curves, advice) = match can_predict(&recording) {
        Ok(()) => (curves(&recording, &scaling, printer)?, advice(&recording, &scaling, printer)),
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
    noise_file::check(recording)
}

/// The two ends of what co-scheduling can do: every node on its own, and all in step.
pub fn curves(recording: &Recording, scaling: &Scaling, printer: Printer) -> anyhow::Result<Vec<Prediction>> {
    let noise = [noise_file::of_recording(recording)?];
    let curve = |mode| {
        let Scaling { ref ranks, quantum, phases, seed } = *scaling;
        let options = Options { quantum, mode, phases, seed, ..Options::new(ranks.0.clone()) };
        predict::curve(&noise, &options, printer)
    };
    [Mode::None, Mode::Phase].into_iter().map(curve).collect()
}

/// The scales at which a study advises, those of `tune try` and more; sources are ordered by what they cost at the last.
const ADVISED: [u64; 5] = [2, 16, 128, 1_024, 4_096];

/// What each source costs and what to do about it, up to the largest scale that is predicted; said to be missing where it fails.
pub fn advice(recording: &Recording, scaling: &Scaling, printer: Printer) -> Option<Advice> {
    let made = || {
        let most = scaling.ranks.0.iter().copied().max().unwrap_or(1);
        let mut ranks: Vec<u64> = ADVISED.into_iter().filter(|ranks| *ranks <= most).collect();
        if ranks.is_empty() {
            ranks.push(most);
        }
        let (quantum, seed) = (scaling.quantum, scaling.seed);
        let options =
            Options { quantum, seed, phases: scaling.phases.min(1_000), ..advise::of_advice(ranks) };
        let nodes = [noise_file::sources_of(recording)?];
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
