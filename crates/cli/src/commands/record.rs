//! `quell record`: the noise of this node into a recording.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quell_node::probe::{self, Plan};
use quell_recording::{Manifest, State, format_cpu_list};

use super::Outcome;
use crate::args::Record;
use crate::plan;
use crate::printer::Printer;
use crate::progress::Step;

/// Records as asked and says where the recording is.
pub fn run(args: &Record, printer: Printer) -> anyhow::Result<Outcome> {
    let plan = plan::of_record(args)?;
    let output = args.output.clone().unwrap_or_else(plan::recording_of_now);
    let manifest = record(&plan, &output, printer)?;
    if manifest.state == State::Interrupted {
        printer.say("interrupted: what was recorded up to then is kept");
    }
    printer.say(&format!("look at it with `quell show {}`", output.display()));
    printer.result(&format!("{}\n", output.display()))?;
    Ok(Outcome::Done)
}

/// Runs the probes with a progress bar; Ctrl-C ends the run, not quell.
pub fn record(plan: &Plan, output: &Path, printer: Printer) -> anyhow::Result<Manifest> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        // The second Ctrl-C ends quell at once; the recording is then as after a crash, and can be read.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let until = match (plan.duration, plan.count) {
        (Some(time), Some(count)) => format!("for {time} or {count} rows"),
        (Some(time), None) => format!("for {time}"),
        (None, Some(count)) => format!("until {count} rows are found (Ctrl-C ends it earlier)"),
        (None, None) => "until Ctrl-C".into(),
    };
    printer.say(&format!("watching CPUs {} {until}", format_cpu_list(&plan.cpus)));
    let manifest = {
        let step = Step::recording(printer, plan.duration, plan.count);
        probe::record(plan, output, &stop, &mut |status| step.recorded(status, plan.duration.is_some()))?
    };
    // From here on a signal ends quell as usual.
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    for warning in &manifest.warnings {
        printer.warn(warning);
    }
    Ok(manifest)
}

/// The path of a recording within a folder.
pub fn inside(folder: &Path) -> PathBuf {
    folder.join("node.quell")
}
