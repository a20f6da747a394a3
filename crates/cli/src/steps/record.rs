//! Recording a node's noise.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use quell_node::probe::{self, Plan};
use quell_recording::{Manifest, Method, format_cpu_list};

use crate::args::SourcesMode;
use crate::kernel_side::{KernelSide, effect};
use crate::plan::until;
use crate::printer::Printer;
use crate::progress::Step;
use crate::signals::stopped_by_signals;

/// How the kernel recorder takes part in a recording.
#[derive(Clone, Copy, Debug)]
pub struct Sources {
    /// Whether it does.
    pub mode: SourcesMode,
    /// Whether the time in its programs is counted.
    pub cost: bool,
    /// Number of pairs of blocks by which its effect is measured, if that was requested.
    pub effect: Option<u64>,
}

impl From<SourcesMode> for Sources {
    fn from(mode: SourcesMode) -> Self {
        Self { mode, cost: false, effect: None }
    }
}

/// Runs the probes and, at the same time, the kernel recorder, with a progress bar; Ctrl-C ends the recording, not quell.
pub fn record(plan: &Plan, sources: Sources, output: &Path, printer: Printer) -> anyhow::Result<Manifest> {
    let watched = quell_kernel::Plan { cpus: plan.cpus.clone(), cost: sources.cost, ..Default::default() };
    let mut side = KernelSide::start(sources.mode, watched, printer)?;
    let stop = stopped_by_signals()?;
    if let KernelSide::Known(rows) = &mut side {
        rows.measure_effect(plan, effect::pairs(sources.effect, plan), &stop, printer)?;
    }
    printer.status(&format!("watching CPUs {} {}", format_cpu_list(&plan.cpus), until(plan)));
    if plan.method == Method::Memory {
        printer.status("first it makes the lines to load, which takes up to ten seconds");
    }
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
