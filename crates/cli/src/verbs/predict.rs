//! `quell predict`: what the noise costs a bulk-synchronous program.

mod sweep;

use quell_request::predict as request;

use crate::args::Predict;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::render;
use crate::sweep::Request;
use quell_request::network::{self, NetText};

/// Predicts, and prints the curve.
pub fn run(args: &Predict, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.sweep {
        let request = Request { file, args: &args.sweeping, threads: args.options.threads, json: args.json };
        return crate::sweep::run(sweep::Curves::new(), request, printer);
    }
    args.sweeping.refuse()?;
    if args.options.net.net == Some(NetText::Help) {
        printer.result(&network::help())?;
        return Ok(Outcome::Done);
    }
    let prediction = {
        let step = Step::long(printer, "predict", Some(1));
        request::prediction(&args.options, &|done, all| step.go_on(done, all))?
    };
    if args.json {
        printer.json(&prediction)?;
    } else {
        printer.result(&render::predict::curve(&prediction))?;
    }
    Ok(Outcome::Done)
}
