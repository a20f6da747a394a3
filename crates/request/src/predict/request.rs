//! From the options of `predict` to a prediction.

use quell_analysis::Progress;
use quell_analysis::predict::{self, Network, NodeNoise, Options, PredictError, Prediction};
use quell_analysis::whatif::AttributedNoise;

use super::PredictArgs;
use crate::job::Defaults;
use crate::network::NetArgs;
use crate::noise::{self, ModelScale};
use crate::pattern::OpText;
use crate::size::Size;
use crate::{Usage, WhatIfArgs, network, what_if};

/// What the options mean.
///
/// # Errors
/// [`Usage`] for options that contradict each other.
pub fn options(args: &PredictArgs) -> anyhow::Result<Options> {
    let network = message_op(&args.op, args.bytes, &args.net)?;
    Ok(Options { network, ..args.job.options(&Defaults::of_a_prediction())? })
}

/// The messages that end a phase.
///
/// # Errors
/// [`Usage`] for a network without messages.
pub fn message_op(op: &OpText, bytes: Option<Size>, net: &NetArgs) -> anyhow::Result<Option<Network>> {
    let OpText::Pattern(op) = op else {
        return match bytes.is_some() || net.is_given() {
            true => Err(Usage(
                "--op max sends no messages: name an --op that does, or leave --bytes and the network out"
                    .into(),
            )
            .into()),
            false => Ok(None),
        };
    };
    let bytes = bytes.map_or(8, |size| size.0);
    let (net, preset) = network::of(net, Some(bytes))?;
    Ok(Some(Network { op: op.clone(), bytes, net, preset }))
}

/// Whose mistake it is.
pub fn explained(error: PredictError) -> anyhow::Error {
    match error {
        PredictError::Noise { .. } | PredictError::Network(_) | PredictError::Stopped(_) => error.into(),
        // All else was typed.
        _ => Usage(error.to_string()).into(),
    }
}

/// Predicts.
///
/// # Errors
/// [`Usage`] for options that are wrong; else what is wrong with the noise, or that it was stopped.
pub fn prediction(args: &PredictArgs, progress: Progress<'_>) -> anyhow::Result<Prediction> {
    network::refuse_help(&args.net)?;
    let options = options(args)?;
    on_threads(args.threads, || match args.what_if.is_given() {
        false => predict::predict(&noise(args, &options)?, &options, progress).map_err(explained),
        true => otherwise(attributed(args, &options)?, &args.what_if, &options, progress),
    })
}

/// Has as many threads as were requested.
fn on_threads<T: Send>(
    threads: Option<u16>,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    match threads {
        Some(threads) => rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build()?.install(work),
        None => work(),
    }
}

/// Predicts for the noise as it would be.
fn otherwise(
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

/// A model makes noise for the largest scale.
pub fn scale(options: &Options) -> ModelScale {
    let ranks = options.ranks.iter().copied().max().unwrap_or(1);
    ModelScale { quantum: options.quantum, ranks, seed: options.seed }
}

/// Each has some.
fn something<T>(noise: Vec<T>) -> anyhow::Result<Vec<T>> {
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
    let modelled = args.noise.iter().map(|path| noise::model(path, scale));
    something(recorded.chain(modelled).collect::<anyhow::Result<_>>()?)
}

fn attributed(args: &PredictArgs, options: &Options) -> anyhow::Result<Vec<AttributedNoise>> {
    let scale = scale(options);
    let all = args.recordings.iter().chain(&args.noise);
    something(all.map(|path| Ok(noise::attributed(path, scale)?.0)).collect::<anyhow::Result<_>>()?)
}
