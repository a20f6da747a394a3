//! Recording a node's noise.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use quell_node::probe::{self, Plan};
use quell_recording::{Manifest, format_cpu_list};

use crate::args::SourcesMode;
use crate::kernel_side::KernelSide;
use crate::plan::until;
use crate::printer::Printer;
use crate::progress::Step;
use crate::signals::stopped_by_signals;

/// Runs the probes and, at the same time, the kernel recorder, with a progress bar; Ctrl-C ends the recording, not quell.
pub fn record(
    plan: &Plan,
    sources: SourcesMode,
    cost: bool,
    output: &Path,
    printer: Printer,
) -> anyhow::Result<Manifest> {
    let watched = quell_kernel::Plan { cpus: plan.cpus.clone(), cost, ..Default::default() };
    let mut side = KernelSide::start(sources, watched, printer)?;
    let stop = stopped_by_signals()?;
    printer.status(&format!("watching CPUs {} {}", format_cpu_list(&plan.cpus), until(plan)));
    let manifest = {
        let step = Step::recording(printer, plan.duration, plan.count);
        let mut status = |status| step.recorded(status, plan.duration.is_some());
        probe::record(plan, output, &stop, &mut side, &mut status)?
    };
    // From here on a signal ends quell as usual.
    stop.store(true, Ordering::SeqCst);
    manifest.warnings.iter().for_each(|warning| printer.warn(&warning.to_string()));
    Ok(manifest)
}

/// The path of a recording within a folder.
pub fn inside(folder: &Path) -> PathBuf {
    folder.join("node.quell")
}
