//! `predict`: what the noise costs a bulk-synchronous program.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quell_recording::Nanos;

use super::net::NetArgs;
use super::noise_file::{self, ModelScale};
use super::pattern::OpText;
use super::size::Size;
use super::{RankList, Usage, WhatIf, changed, net, positive};
use crate::Progress;
use crate::predict::{self, Mode, Network, NodeNoise, Options, PredictError, Prediction};
use crate::whatif::Sourced;

/// How the ranks' noise lines up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncName {
    /// Each node starts at its own place in the trace.
    None,
    /// All nodes start at the same place, then go their own way.
    Start,
    /// The same place in every phase: perfect co-scheduling.
    Phase,
}

impl From<SyncName> for Mode {
    fn from(name: SyncName) -> Self {
        match name {
            SyncName::None => Self::None,
            SyncName::Start => Self::Start,
            SyncName::Phase => Self::Phase,
        }
    }
}

/// What is to be predicted.
#[derive(Debug, Args)]
pub struct Asked {
    /// Recordings; several make the nodes of one machine in turn.
    #[arg(value_name = "R.quell")]
    pub recordings: Vec<PathBuf>,
    /// A synthetic noise model in TOML, in place of or beside recordings.
    #[arg(long, value_name = "MODEL.toml")]
    pub noise: Vec<PathBuf>,
    /// Ranks: a list (`16,256`) or a range that doubles (`16..2048`); `Ki` and `Mi` are understood.
    #[arg(long, default_value = "16..2048", value_name = "LIST")]
    pub ranks: RankList,
    /// Length of a compute phase without noise.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// What ends a phase: max (the slowest rank, at no cost of its own), or messages under LogGOPS: barrier, allreduce, bcast, reduce,
    /// alltoall, halo2d, halo3d, or any other pattern of `quell goal list`.
    #[arg(long, default_value = "max", value_name = "NAME")]
    pub op: OpText,
    /// Bytes of a message of --op, or of each rank's part [default: 8].
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// How the nodes' noise lines up.
    #[arg(long, value_enum, default_value = "none")]
    pub sync: SyncName,
    /// With --sync start: each node starts later by up to this much.
    #[arg(long, default_value = "0ns", value_name = "TIME")]
    pub skew: Nanos,
    /// With --sync start: each node runs faster or slower by up to so many parts per million.
    #[arg(long, default_value_t = 0.0, value_name = "PPM")]
    pub drift: f64,
    /// Phases to simulate; with messages large scales run fewer, to bound the time.
    #[arg(long, default_value_t = 2000)]
    pub phases: u64,
    /// Seed; equal seeds give equal results.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads to use; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
    /// The noise otherwise than it was recorded.
    #[command(flatten)]
    pub what_if: WhatIf,
}

/// What the options mean.
///
/// # Errors
/// [`Usage`] for options that contradict each other.
pub fn options(asked: &Asked) -> anyhow::Result<Options> {
    positive(asked.quantum, "--quantum")?;
    let drifts = asked.skew != Nanos::ZERO || asked.drift != 0.0;
    if drifts && asked.sync != SyncName::Start {
        return Err(Usage("--skew and --drift need --sync start".into()).into());
    }
    if asked.phases == 0 {
        return Err(Usage("--phases 0 simulates nothing: give at least 1".into()).into());
    }
    Ok(Options {
        quantum: asked.quantum,
        mode: asked.sync.into(),
        skew: asked.skew,
        drift_ppm: asked.drift,
        phases: asked.phases,
        seed: asked.seed,
        network: network(&asked.op, asked.bytes, &asked.net)?,
        ..Options::new(asked.ranks.0.clone())
    })
}

/// The messages that end a phase.
///
/// # Errors
/// [`Usage`] for a network without messages.
pub fn network(op: &OpText, bytes: Option<Size>, net: &NetArgs) -> anyhow::Result<Option<Network>> {
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
    let (net, preset) = net::of(net, Some(bytes));
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
/// [`Usage`] for what was asked wrongly; else what is wrong with the noise, or that it was stopped.
pub fn prediction(asked: &Asked, progress: Progress<'_>) -> anyhow::Result<Prediction> {
    net::refuse_help(&asked.net)?;
    let options = options(asked)?;
    on_threads(asked.threads, || match asked.what_if.is_given() {
        false => predict::predict(&noise(asked, &options)?, &options, progress).map_err(explained),
        true => otherwise(sourced(asked, &options)?, &asked.what_if, &options, progress),
    })
}

/// Has as many threads as were asked for.
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
    nodes: Vec<Sourced>,
    what_if: &WhatIf,
    options: &Options,
    progress: Progress<'_>,
) -> anyhow::Result<Prediction> {
    let changed = changed::apply(nodes, what_if)?;
    let noise: Vec<NodeNoise> = changed.nodes.iter().map(Sourced::noise).collect();
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

fn noise(asked: &Asked, options: &Options) -> anyhow::Result<Vec<NodeNoise>> {
    let scale = scale(options);
    let recorded = asked.recordings.iter().map(|path| noise_file::open(path, scale));
    let modelled = asked.noise.iter().map(|path| noise_file::model(path, scale));
    something(recorded.chain(modelled).collect::<anyhow::Result<_>>()?)
}

fn sourced(asked: &Asked, options: &Options) -> anyhow::Result<Vec<Sourced>> {
    let scale = scale(options);
    let all = asked.recordings.iter().chain(&asked.noise);
    something(all.map(|path| Ok(noise_file::sourced(path, scale)?.0)).collect::<anyhow::Result<_>>()?)
}
