//! The HTML page of one recording, with its prediction and advice.

use std::path::Path;

use quell_analysis::advise::Advice;
use quell_analysis::attribution::{Attribution, JoinedRecording};
use quell_analysis::overview::Overview;
use quell_analysis::predict::{Options, Prediction};
use quell_analysis::whatif::MainSources;
use quell_page::{Page, Part};
use quell_recording::Recording;
use quell_request::noise;
use serde_json::Value;

use super::advise::advice;
use super::predict::curves;
use crate::html;
use crate::printer::Printer;

/// What a recording shows.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    pub recording: &'a Recording,
    pub overview: &'a Overview,
    pub attribution: &'a Attribution,
}

/// What its noise costs, and what to do about it.
#[derive(Default)]
pub struct Cost {
    pub curves: Vec<Prediction>,
    pub sources: Option<MainSources>,
    pub advice: Option<Advice>,
}

impl Cost {
    /// Predicts and advises. If nothing can be predicted from the recording, a warning says that `what` has no prediction, and why.
    pub fn predicted(
        joined: JoinedRecording<'_>,
        options: &Options,
        what: &str,
        printer: Printer,
    ) -> anyhow::Result<Self> {
        let recording = joined.recording();
        if let Err(why) = noise::check(recording) {
            printer.warn(&format!("{what} has no prediction: {why}"));
            return Ok(Self::default());
        }
        let node = noise::sources_of(joined)?;
        let sources = Some(node.main_sources());
        let curves = curves(recording, options, printer)?;
        Ok(Self { curves, sources, advice: advice(node, recording, options, printer) })
    }
}

/// Writes the page; `trials` are documents of mitigations that were tried.
pub fn write(output: &Path, measured: Measured<'_>, cost: &Cost, trials: &[Value]) -> anyhow::Result<()> {
    let Measured { recording, overview, attribution } = measured;
    let title = recording.manifest.host.clone().unwrap_or_else(|| recording.name());
    let mut page = Page::new(&title)
        .with(Part::Show, overview)?
        .with(Part::Sources, attribution)?
        .with_detours(&recording.traces, cost.sources.as_ref());
    for curve in &cost.curves {
        page = page.with(Part::Predict, curve)?;
    }
    if let Some(advice) = &cost.advice {
        page = page.with(Part::Advice, advice)?;
    }
    for trial in trials {
        page = page.with(Part::Trial, trial)?;
    }
    html::write(output, &page)
}
