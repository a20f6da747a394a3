//! `quell report`: one HTML page from a recording, or from a traced MPI run.

use quell_analysis::attribution::{Attribution, attribution};
use quell_analysis::overview::{Overview, overview};
use quell_analysis::predict::{Mode, Options, Prediction};
use quell_recording::Recording;

use super::track::page;
use super::{Outcome, predict, track};
use crate::args::{Report, Scaling};
use crate::html::{self, Page};
use crate::noise_file;
use crate::plan;
use crate::printer::Printer;

/// Sums up, predicts where there are detours, and writes the page.
pub fn run(args: &Report, printer: Printer) -> anyhow::Result<Outcome> {
    plan::positive(args.scaling.quantum, "--quantum")?;
    if page::is_archive(&args.recording) {
        let output = args.output.clone().unwrap_or_else(|| page::beside(&args.recording));
        return track::report(&args.recording, &output, printer);
    }
    let recording = Recording::open(&args.recording)?;
    let output = args.output.clone().unwrap_or_else(|| args.recording.with_extension("html"));
    let overview = overview(&recording);
    let attribution = attribution(&recording);
    let curves = match can_predict(&recording) {
        Ok(()) => curves(&recording, &args.scaling, printer)?,
        Err(why) => {
            printer.warn(&format!("the page has no prediction: {why}"));
            Vec::new()
        }
    };
    write(&output, &recording, &overview, &attribution, &curves)?;
    printer.say(&format!("wrote {}", output.display()));
    Ok(Outcome::Done)
}

/// Whether there is something to predict from.
pub fn can_predict(recording: &Recording) -> anyhow::Result<()> {
    noise_file::of_recording(recording).map(|_| ())
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

/// Writes the page of one recording.
pub fn write(
    output: &std::path::Path,
    recording: &Recording,
    overview: &Overview,
    attribution: &Attribution,
    curves: &[Prediction],
) -> anyhow::Result<()> {
    let title = recording.manifest.host.clone().unwrap_or_else(|| recording.name());
    html::write(
        output,
        &Page {
            show: Some(overview),
            sources: Some(attribution),
            traces: &recording.traces,
            predict: curves,
            ..Page::new(&title)
        },
    )
}
