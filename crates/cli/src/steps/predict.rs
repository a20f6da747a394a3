//! A prediction with a progress bar.

use quell_analysis::predict::{NodeNoise, Options, Prediction, predict};
use quell_recording::Recording;
use quell_request::noise;
use quell_request::predict::explained;
use quell_sim::SyncMode;

use crate::printer::Printer;
use crate::progress::Step;

/// Runs a prediction, with a progress bar.
pub fn curve(noise: &[NodeNoise], options: &Options, printer: Printer) -> anyhow::Result<Prediction> {
    let step = Step::long(printer, "predict", Some(1));
    predict(noise, options, &|done, all| step.go_on(done, all)).map_err(explained)
}

/// The requested job, and the best that co-scheduling can achieve: all nodes in phase.
pub fn curves(recording: &Recording, options: &Options, printer: Printer) -> anyhow::Result<Vec<Prediction>> {
    let noise = [noise::from_recording(recording)?];
    let curve = |sync| curve(&noise, &Options { sync, ..options.clone() }, printer);
    let mut modes = vec![options.sync, SyncMode::Phase];
    modes.dedup();
    modes.into_iter().map(curve).collect()
}
