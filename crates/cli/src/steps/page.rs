//! The HTML page of one recording, with its prediction and advice.

use std::path::Path;

use quell_analysis::advise::Advice;
use quell_analysis::attribution::Attribution;
use quell_analysis::overview::Overview;
use quell_analysis::predict::Prediction;
use quell_analysis::whatif::MainSources;
use quell_page::{Page, Part};
use quell_recording::Recording;
use serde_json::Value;

use crate::html;

/// Writes the HTML page of one recording.
pub fn write(
    output: &Path,
    recording: &Recording,
    overview: &Overview,
    (attribution, sources): (&Attribution, Option<&MainSources>),
    (curves, advice, trials): (&[Prediction], Option<&Advice>, &[Value]),
) -> anyhow::Result<()> {
    let title = recording.manifest.host.clone().unwrap_or_else(|| recording.name());
    let mut page = Page::new(&title)
        .with(Part::Show, overview)?
        .with(Part::Sources, attribution)?
        .with_detours(&recording.traces, sources);
    for curve in curves {
        page = page.with(Part::Predict, curve)?;
    }
    if let Some(advice) = advice {
        page = page.with(Part::Advice, advice)?;
    }
    for trial in trials {
        page = page.with(Part::Trial, trial)?;
    }
    html::write(output, &page)
}
