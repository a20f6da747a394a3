//! `quell record`: records the noise of this node, or of one command on it.

use std::path::Path;

use quell_node::machine::{self, Cpus};
use quell_recording::{Cpu, Manifest, Method, State, format_cpu_list};
use quell_replay::Launched;

use crate::args::Record;
use crate::kernel_side::record as record_kernel;
use crate::outcome::Outcome;
use crate::plan;
use crate::plan::place::{self, Place};
use crate::printer::Printer;
use crate::steps::record::{Sources, record};

/// Records as requested, and prints where the recording is.
pub fn run(args: &Record, printer: Printer) -> anyhow::Result<Outcome> {
    let plan = plan::for_record(args)?;
    let launched = Launched::here();
    let host = machine::host().unwrap_or_else(|| "node".into());
    let place = place::for_recording(args.output.as_deref(), &host, launched, !args.command.is_empty())?;
    let Place::To(output) = place else {
        printer.status(&format!("the first copy of quell on {host} records it: this copy has nothing to do"));
        return Ok(Outcome::Done);
    };
    if let (Some(given), Some(folder)) = (&args.output, output.parent())
        && *given != output
    {
        // That of the copies of a launcher, or one with the host's name.
        quell_recording::create_folder(folder)?;
    }
    quell_recording::check_new(&output)?;
    let copies = launched.filter(Launched::among_several);
    if copies.is_some() && args.command.is_empty() && args.watching.cpus.is_none() {
        report_bound(&plan.cpus, printer)?;
    }
    let manifest = if args.command.is_empty() && plan.method != Method::Kernel {
        let sources = Sources { mode: args.watching.sources, cost: args.cost, effect: args.effect };
        record(&plan, sources, &output, printer)?
    } else {
        record_kernel::record(&plan, &args.command, args.cost, &output, printer)?
    };
    if manifest.state == State::Interrupted {
        printer.status("interrupted: what was recorded up to then is kept");
    }
    match (copies, output.parent()) {
        // One of the copies prints this for all.
        (Some(Launched { rank: 1.., .. }), _) => {}
        (Some(_), Some(folder)) => {
            printer.status(&format!("look at all hosts with `quell show {}`", folder.display()));
        }
        _ => printer.status(&format!("look at it with `{}`", look_at(&manifest, &output))),
    }
    printer.path(&output)?;
    match manifest.sources.and_then(|sources| sources.command_exit_code) {
        Some(code) if code != 0 && manifest.state != State::Interrupted => {
            printer.status(&format!(
                "the command ended with exit code {code}; its noise up to then is in {}",
                output.display()
            ));
            Ok(Outcome::CommandFailed(u8::try_from(code).unwrap_or(1)))
        }
        _ => Ok(Outcome::Done),
    }
}

/// Warns if a launcher bound quell to a few cores, since the rest of the host is then not recorded.
fn report_bound(watched: &[Cpu], printer: Printer) -> anyhow::Result<()> {
    let online = Cpus::from_this_machine()?.online;
    if watched.len() < online.len() {
        printer.status(&format!(
            "only CPUs {} of {} are open to this process; to watch all: mpirun --bind-to none, mpiexec -bind-to none, srun --cpu-bind=none",
            format_cpu_list(watched),
            format_cpu_list(&online)
        ));
    }
    Ok(())
}

/// The command that shows most of a recording.
fn look_at(manifest: &Manifest, output: &Path) -> String {
    let by = match &manifest.sources {
        Some(sources) if sources.unknown_because.is_none() && manifest.method != Method::Memory => {
            " --by source"
        }
        _ => "",
    };
    format!("quell show {}{by}", output.display())
}
