//! `quell predict`: what the noise costs a bulk-synchronous program.

use quell_analysis::predict::{self, Mode, Network, NodeNoise, Options, PredictError, Prediction};
use quell_recording::Nanos;

use super::Outcome;
use crate::args::{Predict, SyncName};
use crate::noise_file::{self, ModelScale};
use crate::plan::net::{self, NetText};
use crate::plan::pattern::OpText;
use crate::plan::{self, Usage};
use crate::printer::Printer;
use crate::progress::Step;
use crate::terminal;

/// Predicts and prints the curve.
pub fn run(args: &Predict, printer: Printer) -> anyhow::Result<Outcome> {
    if args.net.net == Some(NetText::Help) {
        printer.result(&net::help())?;
        return Ok(Outcome::Done);
    }
    let options = options(args)?;
    let noise = noise(args, &options)?;
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
        network: network(args)?,
        ..Options::new(args.ranks.0.clone())
    })
}

/// The messages that end a phase.
fn network(args: &Predict) -> anyhow::Result<Option<Network>> {
    let OpText::Pattern(op) = &args.op else {
        return match args.bytes.is_some() || args.net.is_given() {
            true => Err(Usage(
                "--op max sends no messages: name an --op that does, or leave --bytes and the network out"
                    .into(),
            )
            .into()),
            false => Ok(None),
        };
    };
    let bytes = args.bytes.map_or(8, |size| size.0);
    let (net, preset) = net::of(&args.net, Some(bytes));
    Ok(Some(Network { op: op.clone(), bytes, net, preset }))
}

/// Runs a prediction with a progress bar.
pub fn curve(noise: &[NodeNoise], options: &Options, printer: Printer) -> anyhow::Result<Prediction> {
    let step = Step::long(printer, "predict", Some(1));
    predict::predict(noise, options, &|done, all| step.set(done, all)).map_err(|error| match error {
        PredictError::Noise { .. } | PredictError::Network(_) => error.into(),
        // All else was typed.
        _ => Usage(error.to_string()).into(),
    })
}

fn noise(args: &Predict, options: &Options) -> anyhow::Result<Vec<NodeNoise>> {
    let ranks = options.ranks.iter().copied().max().unwrap_or(1);
    let scale = ModelScale { quantum: options.quantum, ranks, seed: options.seed };
    let recorded = args.recordings.iter().map(|path| noise_file::open(path, scale));
    let modelled = args.noise.iter().map(|path| noise_file::model(path, scale));
    recorded.chain(modelled).collect()
}
