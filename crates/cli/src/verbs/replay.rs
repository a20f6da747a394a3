//! `quell replay`: injects recorded noise into a program, or into quell's own phases.

mod emulate;
mod prepare;
mod process_reports;
mod run;
mod setting;
mod validate;

use std::process::ExitCode;

use crate::args::Replay;
use crate::printer::Printer;
use quell_analysis::predict::SyncName;
use quell_request::Usage;
use quell_request::job::JobArgs;

/// Runs as requested. With a command, the exit code is that of the command.
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
        return emulate::run(args, printer).map(Into::into);
    }
    if !args.phase_at.is_empty() && args.job.sync != SyncName::Phase && args.interleave.is_none() {
        return Err(Usage("--phase-at needs --sync phase or --interleave".into()).into());
    }
    refuse_phases(&args.job)?;
    if args.validate {
        return validate::run(args, printer).map(Into::into);
    }
    run::run(args, printer).map(ExitCode::from)
}

/// Refuses the options of quell's own phases for a command, which has phases of its own.
fn refuse_phases(job: &JobArgs) -> Result<(), Usage> {
    let usual = JobArgs::default();
    let given = [
        ("--ranks", job.ranks.is_some()),
        ("--quantum", job.quantum != usual.quantum),
        ("--phases", job.phases.is_some()),
        ("--drift", job.drift != usual.drift),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Usage(format!("{option} needs --emulate"))),
        None => Ok(()),
    }
}
