//! `quell replay`: recorded noise inside a program, or under quell's own phases.

mod emulate;
mod run;
mod validate;

use super::Outcome;
use crate::args::Replay;
use crate::plan::Usage;
use crate::printer::Printer;

/// Does what was asked for.
pub fn run(args: &Replay, printer: Printer) -> anyhow::Result<Outcome> {
    if args.emulate {
        if !args.command.is_empty() || args.validate {
            return Err(Usage(
                "--emulate runs quell's own phases: leave the command and --validate out".into(),
            )
            .into());
        }
        return emulate::run(args, printer);
    }
    if args.validate {
        return validate::run(args, printer);
    }
    run::run(args, printer)
}
