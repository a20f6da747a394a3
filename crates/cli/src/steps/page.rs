//! The page of one recording, with what was predicted and advised.

use std::path::Path;

use quell_analysis::advise::Advice;
use quell_analysis::attribution::Attribution;
use quell_analysis::overview::Overview;
use quell_analysis::predict::Prediction;
use quell_recording::Recording;
use serde_json::Value;

use crate::html::{self, Page};

/// Writes the page of one recording.
pub fn write(
    output: &Path,
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
