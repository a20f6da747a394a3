//! Dispatches the command line to its verb, and maps the verb's outcome to an exit code.

use std::process::ExitCode;

use quell_request::{Usage, threads};

use crate::args::{Args, TuneVerb, Verb};
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::verbs::{
    advise, bench, bench_loop, compare, convert, doctor, generate_fleet, generate_run, goal, predict, record,
    replay, report, serve_metrics, show, simulate, study, trace, track, tune, watch, welcome,
};
use crate::{confine, example, generate, suggestions};

/// Runs a verb and maps its outcome to an exit code: 0 done, 1 failed, 2 wrong usage, 3 limit exceeded.
pub fn run(args: Args) -> ExitCode {
    let printer = Printer::new(args.quiet);
    confine::to(&args.verb);
    if analyses(&args.verb) {
        threads::share(None);
    }
    let outcome = match args.verb {
        Verb::Study(args) => study::run(&args, printer),
        Verb::Record(args) => record::run(&args, printer),
        Verb::Show(args) => show::run(&args, printer),
        Verb::Watch(args) => watch::run(&args, printer),
        Verb::ServeMetrics(args) => serve_metrics::run(&args, printer),
        Verb::Compare(args) => compare::run(&args, printer),
        Verb::Predict(args) => predict::run(&args, printer),
        Verb::Advise(args) => advise::run(&args, printer),
        Verb::Simulate(args) => simulate::run(&args, printer),
        // The exit code is that of the command.
        Verb::Replay(args) => match replay::run(&args, printer) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Verb::Track(args) => track::run(&args, printer),
        // The exit code may be that of a command.
        Verb::Tune(args) => match tune::run(&args, printer) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Verb::TuneKeep => tune::keep(),
        Verb::Goal(args) => goal::run(&args, printer),
        Verb::Bench(args) => bench::run(&args, printer),
        // The exit code is that of the rank.
        Verb::BenchNode(args) => match bench::node::run(&args, printer) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        // The exit code is that of the command.
        Verb::Trace(args) => match trace::run(&args, printer) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Verb::TraceNode(args) => trace::node::run(&args, printer),
        Verb::Convert(args) => convert::run(&args, printer),
        Verb::Report(args) => report::run(&args, printer),
        Verb::Doctor(args) => doctor::run(&args, printer),
        Verb::Example(args) => example::run(&args, printer),
        Verb::Generate(args) => generate::run(&args, printer),
        Verb::GenerateRun(args) => generate_run::run(&args, printer),
        Verb::GenerateFleet(args) => generate_fleet::run(&args, printer),
        Verb::BenchLoop(args) => bench_loop::run(&args, printer),
    };
    finish(outcome, printer)
}

/// Whether the verb computes on all cores. Verbs that choose the number of their threads themselves are not among them.
fn analyses(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Study(_)
            | Verb::Show(_)
            | Verb::Compare(_)
            | Verb::Predict(_)
            | Verb::Bench(_)
            | Verb::Report(_)
            | Verb::Example(_)
            | Verb::GenerateFleet(_)
    ) || matches!(verb, Verb::Replay(args) if args.emulate)
        // The others, of which one is a service, may run where few threads are permitted.
        || matches!(verb, Verb::Tune(args) if matches!(args.verb, TuneVerb::Try(_) | TuneVerb::Audit(_)))
}

/// Prints what `quell` without a verb prints.
pub fn welcome() -> ExitCode {
    let printer = Printer::new(false);
    finish(welcome::run(printer), printer)
}

fn finish(outcome: anyhow::Result<Outcome>, printer: Printer) -> ExitCode {
    match outcome {
        Ok(outcome) => outcome.into(),
        // A reader that closes the pipe early, such as `head`, is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            printer.error(&error);
            if let Some(hint) = suggestions::hint(&error) {
                printer.notice(&hint);
            }
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn of_the_verbs_of_tune_only_those_that_analyse_share_threads() {
        for (line, expected) in [
            ("quell tune try thp --yes", true),
            ("quell tune audit run.quell", true),
            ("quell tune serve hpc-node --yes", false),
            ("quell tune apply PLAN --yes", false),
            ("quell tune revert", false),
        ] {
            let args = Args::parse_from(line.split(' '));
            assert_eq!(analyses(&args.verb), expected, "{line}");
        }
    }
}
