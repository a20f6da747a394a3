//! `quell predict`: what the noise costs a bulk-synchronous program.

mod sweep;

use quell_analysis::predict::{self, NodeNoise, Options, Prediction};
use quell_request::predict::{self as asked, explained};

use super::Outcome;
use crate::args::Predict;
use crate::plan::network::{self, NetText};
use crate::printer::Printer;
use crate::progress::Step;
use crate::sweep::Asked;
use crate::terminal;

/// Predicts and prints the curve.
pub fn run(args: &Predict, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.sweep {
        let asked = Asked { file, args: &args.sweeping, threads: args.asked.threads, json: args.json };
        return crate::sweep::run(sweep::Curves::new(), asked, printer);
    }
    args.sweeping.refuse()?;
    if args.asked.net.net == Some(NetText::Help) {
        printer.result(&network::help())?;
        return Ok(Outcome::Done);
    }
    let prediction = {
        let step = Step::long(printer, "predict", Some(1));
        asked::prediction(&args.asked, &|done, all| step.go_on(done, all))?
    };
    if args.json {
        printer.json(&prediction)?;
    } else {
        printer.result(&terminal::predict(&prediction))?;
    }
    Ok(Outcome::Done)
}

/// Runs a prediction with a progress bar.
pub fn curve(noise: &[NodeNoise], options: &Options, printer: Printer) -> anyhow::Result<Prediction> {
    let step = Step::long(printer, "predict", Some(1));
    predict::predict(noise, options, &|done, all| step.go_on(done, all)).map_err(explained)
}
