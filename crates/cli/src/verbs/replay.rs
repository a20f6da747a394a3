//! `quell replay`: recorded noise inside a program, or under quell's own phases.

mod emulate;
mod prepare;
mod run;
mod setting;
mod told;
mod validate;

use std::process::ExitCode;

use crate::args::Replay;
use crate::outcome::Outcome;
use crate::printer::Printer;
use quell_request::Usage;

/// Does what was asked for. A command's exit code is its own.
pub fn run(args: &Replay, printer: Printer) -> anyhow::Result<ExitCode> {
    if args.duration.is_some() && !args.validate {
        return Err(Usage("--duration needs --validate".into()).into());
    }
    if args.emulate {
        if !args.command.is_empty() || args.validate {
            return Err(Usage(
                "--emulate runs quell's own phases: leave the command and --validate out".into(),
            )
            .into());
        }
        return emulate::run(args, printer).map(ended);
    }
    if args.validate {
        return validate::run(args, printer).map(ended);
    }
    run::run(args, printer).map(ExitCode::from)
}

fn ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Done => ExitCode::SUCCESS,
        Outcome::LimitExceeded => ExitCode::from(3),
    }
}
