//! `quell predict`: what the noise costs a bulk-synchronous program.

use quell_analysis::predict::{self, Mode, NodeNoise, Options, PredictError, Prediction};
use quell_recording::Nanos;

use super::Outcome;
use crate::args::{OpName, Predict, SyncName};
use crate::noise_file::{self, ModelScale};
use crate::plan::{self, Usage};
use crate::printer::Printer;
use crate::progress::Step;
use crate::terminal;

/// Predicts and prints the curve.
pub fn run(args: &Predict, printer: Printer) -> anyhow::Result<Outcome> {
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

fn noise(args: &Predict, options: &Options) -> anyhow::Result<Vec<NodeNoise>> {
    let ranks = options.ranks.iter().copied().max().unwrap_or(1);
    let scale = ModelScale { quantum: options.quantum, ranks, seed: options.seed };
    let recorded = args.recordings.iter().map(|path| noise_file::open(path, scale));
    let modelled = args.noise.iter().map(|path| noise_file::model(path, scale));
    recorded.chain(modelled).collect()
}
