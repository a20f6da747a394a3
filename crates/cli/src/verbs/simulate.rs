//! `quell simulate`: simulates a schedule or a pattern under LogGOPS and noise.

mod sweep;
mod timeline;

use quell_request::simulate::program::{self, Playable};
use quell_request::simulate::{self as request, About};
use quell_sim::loggops::Program;

use crate::args::Simulate;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::render;
use crate::sweep::Request;
use quell_request::network::{self, NetText};

/// Simulates the program, and prints when its ranks finish.
pub fn run(args: &Simulate, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.sweep {
        let request = Request { file, args: &args.sweeping, threads: args.options.threads, json: args.json };
        return crate::sweep::run(sweep::Runs::new(), request, printer);
    }
    args.sweeping.refuse()?;
    if args.options.net.net == Some(NetText::Help) {
        printer.result(&network::help())?;
        return Ok(Outcome::Done);
    }
    timeline::refuse(args)?;
    match program::from_args(&args.options, &mut |text| printer.warn(text))? {
        Playable::Schedule(schedule, source) => {
            play(&schedule, &About::schedule(&schedule, &source), args, printer)
        }
        Playable::Pattern(named) => play(&named.steps, &About::pattern(&named), args, printer),
    }
}

fn play<P: Program>(
    program: &P,
    about: &About<'_>,
    args: &Simulate,
    printer: Printer,
) -> anyhow::Result<Outcome> {
    let played = {
        let known = program.totals().is_some();
        let step = Step::long(printer, "simulate", known.then_some(1));
        request::play(program, about, &args.options, &|done, all| step.go_on(done, all))?
    };
    let draw = || match &played.run {
        Some((outcome, noise)) => {
            timeline::draw(program, noise, args, (&about.name, outcome.last().0), printer)
        }
        None => Ok(()),
    };
    if args.json {
        printer.json(&played.simulation)?;
    }
    if let Some(failure) = &played.failure {
        draw().unwrap_or_else(|failed| printer.warn(&format!("{failed:#}")));
        anyhow::bail!("{failure}");
    }
    if let (false, Some((outcome, _))) = (args.json, &played.run) {
        printer.result(&render::simulate::simulation(&played.simulation, outcome))?;
    }
    draw()?;
    Ok(Outcome::Done)
}
