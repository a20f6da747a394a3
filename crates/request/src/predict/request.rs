//! Converts the options of `predict` to a prediction.

use std::path::PathBuf;

use quell_analysis::Progress;
use quell_analysis::predict::{self, NodeNoise, Options, PredictError, Prediction};
use quell_analysis::whatif::AttributedNoise;

use super::PredictArgs;
use crate::job::Defaults;
use crate::noise::{self, ModelScale};
use crate::{Usage, WhatIfArgs, network, threads, what_if};

/// Checks and converts the options.
///
/// # Errors
/// [`Usage`] for options that contradict each other.
pub fn options(args: &PredictArgs) -> anyhow::Result<Options> {
    let messages = args.messages.messages(&args.net)?;
    Ok(Options { messages, ..args.job.options(&Defaults::for_prediction())? })
}

/// Classifies a failure: wrong options are [`Usage`]; noise, network and a stop by the user are not.
pub fn explained(error: PredictError) -> anyhow::Error {
    match error {
        PredictError::Noise { .. } | PredictError::Network(_) | PredictError::Stopped(_) => error.into(),
        // All other errors come from wrong options.
        _ => Usage(error.to_string()).into(),
    }
}

/// Predicts the job.
///
/// # Errors
/// [`Usage`] for wrong options; otherwise what is wrong with the noise, or that `progress` stopped it.
pub fn prediction(args: &PredictArgs, progress: Progress<'_>) -> anyhow::Result<Prediction> {
    network::refuse_help(&args.net)?;
    let options = options(args)?;
    on_threads(args.threads, || match args.what_if.is_given() {
        false => predict::predict(&noise(args, &options)?, &options, progress).map_err(explained),
        true => predict_what_if(attributed(args, &options)?, &args.what_if, &options, progress),
    })
}

/// Runs the work on the requested number of threads.
fn on_threads<T: Send>(
    threads: Option<u16>,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    match threads {
        Some(threads) => threads::pool(threads.into())?.install(work),
        None => work(),
    }
}

/// Predicts with the noise as the what-if options change it.
fn predict_what_if(
    nodes: Vec<AttributedNoise>,
    what_if: &WhatIfArgs,
    options: &Options,
    progress: Progress<'_>,
) -> anyhow::Result<Prediction> {
    let changed = what_if::apply(nodes, what_if)?;
    let noise: Vec<NodeNoise> = changed.nodes.iter().map(AttributedNoise::noise).collect();
    let prediction = match &changed.common {
        None => predict::predict(&noise, options, progress),
        Some(common) => predict::predict_in_step(&noise, &common.noise(), options, progress),
    };
    Ok(Prediction { what_if: changed.words, ..prediction.map_err(explained)? })
}

/// The noise that a model must generate: enough for the largest number of ranks.
pub fn scale(options: &Options) -> ModelScale {
    let ranks = options.ranks.iter().copied().max().unwrap_or(1);
    ModelScale { quantum: options.quantum, ranks, seed: options.seed }
}

/// Requires at least one node.
fn require_nonempty<T>(noise: Vec<T>) -> anyhow::Result<Vec<T>> {
    match noise.is_empty() {
        true => {
            Err(Usage("there is nothing to predict from: name a recording, or --noise MODEL.toml".into())
                .into())
        }
        false => Ok(noise),
    }
}

fn noise(args: &PredictArgs, options: &Options) -> anyhow::Result<Vec<NodeNoise>> {
    let scale = scale(options);
    let recorded = args.recordings.iter().map(|path| noise::open(path, scale));
    let given =
        |path: &PathBuf| if path.is_dir() { noise::open(path, scale) } else { noise::model(path, scale) };
    let modelled = args.noise.iter().map(given);
    require_nonempty(recorded.chain(modelled).collect::<anyhow::Result<_>>()?)
}

fn attributed(args: &PredictArgs, options: &Options) -> anyhow::Result<Vec<AttributedNoise>> {
    let scale = scale(options);
    let all = args.recordings.iter().chain(&args.noise);
    require_nonempty(all.map(|path| noise::attributed(path, scale)).collect::<anyhow::Result<_>>()?)
}
