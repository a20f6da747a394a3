//! `quell predict`: what the noise costs a bulk-synchronous program.

mod sweep;

use quell_analysis::predict::{self, Network, NodeNoise, Options, PredictError, Prediction};
use quell_analysis::whatif::Sourced;
use quell_recording::Nanos;

use super::Outcome;
use crate::args::{NetArgs, Predict, SyncName, WhatIf};
use crate::noise_file::{self, ModelScale};
use crate::plan::net::{self, NetText};
use crate::plan::pattern::OpText;
use crate::plan::size::Size;
use crate::plan::{self, Usage};
use crate::printer::Printer;
use crate::progress::Step;
use crate::sweep::Asked;
use crate::{terminal, whatif};

/// Predicts and prints the curve.
pub fn run(args: &Predict, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.sweep {
        let asked = Asked { file, args: &args.sweeping, threads: args.threads, json: args.json };
        return crate::sweep::run(sweep::Curves::new(), asked, printer);
    }
    args.sweeping.refuse()?;
    if args.net.net == Some(NetText::Help) {
        printer.result(&net::help())?;
        return Ok(Outcome::Done);
    }
    let options = options(args)?;
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    let prediction = match args.what_if.is_given() {
        false => curve(&noise(args, &options)?, &options, printer)?,
        true => otherwise(sourced(args, &options)?, &args.what_if, &options, printer)?,
    };
    if args.json {
        printer.json(&prediction)?;
    } else {
        printer.result(&terminal::predict(&prediction))?;
    }
    Ok(Outcome::Done)
}

fn options(args: &Predict) -> anyhow::Result<Options> {
    plan::positive(args.quantum, "--quantum")?;
    let drifts = args.skew != Nanos::ZERO || args.drift != 0.0;
    if drifts && args.sync != SyncName::Start {
        return Err(Usage("--skew and --drift need --sync start".into()).into());
    }
    if args.phases == 0 {
        return Err(Usage("--phases 0 simulates nothing: give at least 1".into()).into());
    }
    Ok(Options {
        quantum: args.quantum,
        mode: args.sync.into(),
        skew: args.skew,
        drift_ppm: args.drift,
        phases: args.phases,
        seed: args.seed,
        network: network(&args.op, args.bytes, &args.net)?,
        ..Options::new(args.ranks.0.clone())
    })
}

/// The messages that end a phase.
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

/// Runs a prediction with a progress bar.
pub fn curve(noise: &[NodeNoise], options: &Options, printer: Printer) -> anyhow::Result<Prediction> {
    let step = Step::long(printer, "predict", Some(1));
    predict::predict(noise, options, &|done, all| step.set(done, all)).map_err(explained)
}

/// Whose mistake it is.
pub fn explained(error: PredictError) -> anyhow::Error {
    match error {
        PredictError::Noise { .. } | PredictError::Network(_) => error.into(),
        // All else was typed.
        _ => Usage(error.to_string()).into(),
    }
}

/// Predicts for the noise as it would be.
fn otherwise(
    nodes: Vec<Sourced>,
    what_if: &WhatIf,
    options: &Options,
    printer: Printer,
) -> anyhow::Result<Prediction> {
    let changed = whatif::apply(nodes, what_if)?;
    let noise: Vec<NodeNoise> = changed.nodes.iter().map(Sourced::noise).collect();
    let prediction = match &changed.common {
        None => curve(&noise, options, printer)?,
        Some(common) => {
            let step = Step::long(printer, "predict", Some(1));
            let progress = |done, all| step.set(done, all);
            predict::predict_in_step(&noise, &common.noise(), options, &progress).map_err(explained)?
        }
    };
    Ok(Prediction { what_if: changed.words, ..prediction })
}

fn scale(options: &Options) -> ModelScale {
    let ranks = options.ranks.iter().copied().max().unwrap_or(1);
    ModelScale { quantum: options.quantum, ranks, seed: options.seed }
}

fn noise(args: &Predict, options: &Options) -> anyhow::Result<Vec<NodeNoise>> {
    let scale = scale(options);
    let recorded = args.recordings.iter().map(|path| noise_file::open(path, scale));
    let modelled = args.noise.iter().map(|path| noise_file::model(path, scale));
    recorded.chain(modelled).collect()
}

fn sourced(args: &Predict, options: &Options) -> anyhow::Result<Vec<Sourced>> {
    let scale = scale(options);
    args.recordings.iter().chain(&args.noise).map(|path| Ok(noise_file::sourced(path, scale)?.0)).collect()
}
