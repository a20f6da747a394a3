//! `quell predict`: what the noise costs a bulk-synchronous program.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use quell_analysis::predict::{self, Mode, NodeNoise, Options, PredictError, Prediction};
use quell_recording::{Method, Nanos, Recording, State, formats};
use quell_sim::Model;

use super::Outcome;
use crate::args::{OpName, Predict, SyncName};
use crate::plan::{self, Usage};
use crate::printer::Printer;
use crate::progress::Step;
use crate::terminal;

/// Predicts and prints the curve.
pub fn run(args: &Predict, printer: Printer) -> anyhow::Result<Outcome> {
    let options = options(args)?;
    let noise = noise(&args.recordings, &args.noise, &options)?;
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    let prediction = curve(&noise, &options, printer)?;
    if args.json {
        printer.json(&prediction)?;
    } else {
        printer.result(&terminal::predict(&prediction))?;
    }
    Ok(Outcome::Done)
}

fn options(args: &Predict) -> anyhow::Result<Options> {
    let OpName::Max = args.op;
    plan::positive(args.quantum, "--quantum")?;
    let drifts = args.skew != Nanos::ZERO || args.drift != 0.0;
    if drifts && args.sync != SyncName::Start {
        return Err(Usage("--skew and --drift need --sync start".into()).into());
    }
    let mode = match args.sync {
        SyncName::None => Mode::None,
        SyncName::Start => Mode::Start,
        SyncName::Phase => Mode::Phase,
    };
    if args.phases == 0 {
        return Err(Usage("--phases 0 simulates nothing: give at least 1".into()).into());
    }
    Ok(Options {
        quantum: args.quantum,
        mode,
        skew: args.skew,
        drift_ppm: args.drift,
        phases: args.phases,
        seed: args.seed,
        ..Options::new(args.ranks.0.clone())
    })
}

/// Runs a prediction with a progress bar.
pub fn curve(noise: &[NodeNoise], options: &Options, printer: Printer) -> anyhow::Result<Prediction> {
    let step = Step::new(printer, "predict", Some(1));
    predict::predict(noise, options, &|done, all| step.set(done, all)).map_err(|error| match error {
        PredictError::Noise { .. } => error.into(),
        // All else was typed.
        _ => Usage(error.to_string()).into(),
    })
}

fn noise(recordings: &[PathBuf], models: &[PathBuf], options: &Options) -> anyhow::Result<Vec<NodeNoise>> {
    let recorded = recordings.iter().map(|path| of_file(path, options));
    let modelled = models.iter().map(|path| of_model(path, options));
    recorded.chain(modelled).collect()
}

/// A recording; or, as anywhere that one is accepted, a model or another tool's file.
fn of_file(path: &Path, options: &Options) -> anyhow::Result<NodeNoise> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        of_model(path, options)
    } else if path.is_file() {
        of_recording(&formats::import(path)?)
    } else {
        of_recording(&Recording::open(path)?)
    }
}

/// The noise of a recorded node.
pub fn of_recording(recording: &Recording) -> anyhow::Result<NodeNoise> {
    let path = recording.path.display();
    if recording.manifest.method != Method::Detour {
        anyhow::bail!(
            "{path} holds {}, not detours: record with --method detour to predict",
            recording.manifest.method.holds()
        );
    }
    if recording.traces.iter().all(|trace| trace.noise().next().is_none()) {
        anyhow::bail!(
            "{path} holds no detours, so there is nothing to predict from: record for longer, or with a lower --threshold"
        );
    }
    Ok(NodeNoise { name: recording.name(), traces: recording.traces.clone(), limits: limits(recording) })
}

/// What the reader of any figure from this recording must know.
pub fn limits(recording: &Recording) -> Vec<String> {
    let manifest = &recording.manifest;
    let mut limits = manifest.warnings.clone();
    match manifest.state {
        State::Recording | State::Failed => {
            limits.push("it was cut off, and ends with its last flush".into());
        }
        State::Interrupted => limits.push("it was interrupted before its end".into()),
        State::Complete | State::Imported => {}
    }
    let lost = manifest.lost();
    if lost > 0 && !limits.iter().any(|limit| limit.contains("lost")) {
        limits.push(format!("{lost} rows were lost"));
    }
    limits
}

fn of_model(path: &Path, options: &Options) -> anyhow::Result<NodeNoise> {
    let text = fs_err::read_to_string(path)?;
    let model = Model::from_toml(&text).with_context(|| path.display().to_string())?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let most_ranks = options.ranks.iter().copied().max().unwrap_or(1);
    NodeNoise::from_model(model.name().unwrap_or(&stem), &model, options.quantum, most_ranks, options.seed)
        .with_context(|| path.display().to_string())
}
