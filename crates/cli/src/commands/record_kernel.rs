//! `quell record --method kernel` and `quell record -- CMD`: no probe, only what the kernel saw.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use quell_kernel::{Recorder, container};
use quell_node::clock::{monotonic_ns, realtime_ns};
use quell_node::machine;
use quell_node::probe::{Beside as _, Plan, Status, Threshold, first_manifest};
use quell_recording::{
    Cpu, CpuFacts, Manifest, Method, Nanos, Progress, Span, State, Writer, format_cpu_list,
};

use super::record::{say_warnings, stopped_by_signals, until};
use crate::kernel_side::{Rows, refusal};
use crate::printer::{Printer, one_line};
use crate::progress::Step;

/// How often the rings are looked at, at most and at least.
const LONGEST: Duration = Duration::from_millis(50);
/// Where ranks compute on all CPUs, each look is noise to them.
const LONGEST_BESIDE: Duration = Duration::from_millis(300);
const SHORTEST: Duration = Duration::from_millis(2);
/// How long a command has to end by itself, once somebody wants the end.
const GRACE_NS: u64 = 2_000_000_000;
/// How often the file says how far it is.
const FLUSH_NS: u64 = 700_000_000;

/// Records the planned CPUs, or what `command` and all that it starts suffer on any CPU.
pub fn record(
    plan: &Plan,
    command: &[String],
    cost: bool,
    output: &Path,
    printer: Printer,
) -> anyhow::Result<Manifest> {
    let follow = !command.is_empty();
    let cpus = if follow { Vec::new() } else { plan.cpus.clone() };
    let recorder = Recorder::start(quell_kernel::Plan { cpus, follow, cost })
        .context("without a probe there is nothing but what the kernel tells (`quell doctor` tells more)")?;
    let (mut rows, mut manifest, zero_ns) = begin(recorder, &plan.cpus, &plan.command);
    let mut writer = Writer::create(output, &manifest)?;
    let stop = stopped_by_signals()?;
    let mut run = Run { plan, stop: &stop, child: None, asked_ns: None, zero_ns, longest: LONGEST };
    if follow {
        run.child = Some(start(command, &rows, &mut manifest, &writer, printer)?);
        printer.say(&format!("following `{}` and all that it starts", one_line(&command.join(" "))));
    } else {
        let _ = leave(&plan.cpus);
        printer.say(&format!("watching the kernel on CPUs {} {}", format_cpu_list(&plan.cpus), until(plan)));
    }
    let written = run.stream(&mut rows, &mut writer, printer);
    let interrupted = stop.load(Ordering::SeqCst);
    // From here on a signal ends quell as usual. A command outlives a recording that failed.
    stop.store(true, Ordering::SeqCst);
    let status = run.child.as_mut().and_then(|child| child.wait().ok());
    if let Err(error) = written {
        writer.abandon(&mut manifest, &error);
        return Err(error.into());
    }
    add_late_cpus(&mut manifest, &writer);
    complete(&mut manifest, &run, status, interrupted);
    rows.complete(&mut manifest);
    writer.finish(&mut manifest)?;
    say_warnings(&manifest, printer);
    Ok(manifest)
}

/// The rows and the first manifest of a recording that begins now, and its zero on CLOCK_MONOTONIC.
fn begin(recorder: Recorder, cpus: &[Cpu], command: &[String]) -> (Rows, Manifest, u64) {
    let mut rows = Rows::of(recorder);
    let mut manifest = first_manifest(Method::Kernel, cpus, command);
    let zero_ns = monotonic_ns();
    manifest.zero_monotonic_ns = Some(zero_ns);
    manifest.zero_unix_ns = Some(realtime_ns());
    rows.begin(&mut manifest);
    (rows, manifest, zero_ns)
}

/// Why the kernel is not watched. No command was started.
#[derive(Debug)]
pub struct Unwatched(pub anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Unwatched {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// Runs `command` to its end, and records meanwhile what the kernel does on every CPU of this machine. A recording that fails
/// leaves the command alone.
pub fn beside(command: &mut Command, output: &Path, printer: Printer) -> Result<ExitStatus, Unwatched> {
    let cpus = machine::Cpus::of_this_machine()?.online;
    let recorder = Recorder::start(quell_kernel::Plan { cpus: cpus.clone(), follow: false, cost: false })
        .map_err(refusal)?;
    let (mut rows, mut manifest, zero_ns) = begin(recorder, &cpus, &[]);
    let mut writer = Writer::create(output, &manifest)?;
    let stop = stopped_by_signals()?;
    let child = command.spawn()?;
    // The launcher may have bound this process where its rank is to compute.
    let _ = machine::pin(&cpus);
    let plan = beside_plan(cpus);
    let longest = LONGEST_BESIDE;
    let mut run = Run { plan: &plan, stop: &stop, child: Some(child), asked_ns: None, zero_ns, longest };
    let written = run.stream(&mut rows, &mut writer, printer);
    stop.store(true, Ordering::SeqCst);
    // A child that cannot be waited for counts as one that failed.
    let failed = ExitStatus::from_raw(1 << 8);
    let status = run.child.as_mut().and_then(|child| child.wait().ok()).unwrap_or(failed);
    let finished = match written {
        Ok(()) => {
            complete(&mut manifest, &run, None, false);
            rows.complete(&mut manifest);
            writer.finish(&mut manifest)
        }
        Err(error) => {
            writer.abandon(&mut manifest, &error);
            Err(error)
        }
    };
    if let Err(error) = finished {
        printer.warn(&format!("the kernel's side of the run is not whole: {error}"));
    }
    Ok(status)
}

/// A plan that only says which CPUs there are, and that nobody counts.
fn beside_plan(cpus: Vec<Cpu>) -> Plan {
    Plan {
        cpus,
        method: Method::Kernel,
        threshold: Threshold::Absolute(Nanos::ZERO),
        quantum: Nanos::ZERO,
        duration: None,
        count: None,
        realtime: None,
        command: Vec::new(),
    }
}

/// Starts the command as a child that is followed from its first instruction on. Where it cannot be started there is
/// nothing to record, and the folder goes again.
fn start(
    command: &[String],
    rows: &Rows,
    manifest: &mut Manifest,
    writer: &Writer,
    printer: Printer,
) -> anyhow::Result<Child> {
    let started = spawn(command, rows.recorder(), printer);
    match &started {
        Ok(child) => {
            if let Some(sources) = &mut manifest.sources {
                sources.command_pid = Some(child.id());
            }
            writer.describe(manifest)?;
        }
        Err(_) => fs_err::remove_dir_all(writer.folder())?,
    }
    started
}

fn spawn(command: &[String], recorder: &Recorder, printer: Printer) -> anyhow::Result<Child> {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    match recorder.container().map(container::Container::serve) {
        Some(Ok(name)) => drop(child.env(container::VARIABLE, name)),
        Some(Err(error)) => {
            printer.warn(&format!("{:#}: programs cannot read their own account", anyhow::Error::new(error)));
        }
        None => {}
    }
    recorder
        .children_of_this_thread(|| child.spawn())?
        .with_context(|| format!("the command `{}` cannot be started", one_line(&command[0])))
}

/// Off the watched CPUs, where there are others.
pub fn leave(watched: &[Cpu]) -> std::io::Result<()> {
    let allowed = machine::Cpus::of_this_machine().map_err(std::io::Error::other)?.allowed;
    let others: Vec<Cpu> = allowed.into_iter().filter(|cpu| !watched.contains(cpu)).collect();
    if others.is_empty() { Ok(()) } else { machine::pin(&others) }
}

/// A run while it lasts.
struct Run<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    child: Option<Child>,
    /// Since when the command is expected to end.
    asked_ns: Option<u64>,
    zero_ns: u64,
    longest: Duration,
}

impl Run<'_> {
    /// Writes what comes until the run is over.
    fn stream(
        &mut self,
        rows: &mut Rows,
        writer: &mut Writer,
        printer: Printer,
    ) -> Result<(), quell_recording::Error> {
        let step = Step::recording(printer, self.plan.duration, None);
        let longest = self.longest.min(rows.patience());
        let (mut sleep, mut flushed) = (SHORTEST, 0);
        loop {
            std::thread::sleep(sleep);
            let over = self.over(writer.interval_rows());
            let now = monotonic_ns();
            if over {
                rows.end_threads(now, writer)?;
            }
            let fill = rows.collect(writer)?;
            let elapsed = now - self.zero_ns;
            if over || elapsed - flushed >= FLUSH_NS {
                flushed = elapsed;
                let lost = vec![0; self.plan.cpus.len()];
                let (until_ns, intervals_lost) = (Nanos::from_nanos(elapsed), rows.lost());
                writer.progress(&Progress { until_ns, lost, intervals_lost })?;
                let status = Status { elapsed: until_ns, rows: writer.interval_rows(), lost: intervals_lost };
                step.recorded(status, self.plan.duration.is_some());
            }
            if over {
                return Ok(());
            }
            let by_rate = Duration::try_from_secs_f64(sleep.as_secs_f64() * 0.25 / fill).unwrap_or(longest);
            sleep = by_rate.clamp(SHORTEST, longest);
        }
    }

    /// Whether the command has ended; without one, whether the time is up or somebody wants the end.
    fn over(&mut self, rows: u64) -> bool {
        let stopped = self.stop.load(Ordering::SeqCst);
        let Some(child) = &mut self.child else {
            let elapsed = Nanos::from_nanos(monotonic_ns() - self.zero_ns);
            return stopped
                || self.plan.duration.is_some_and(|length| elapsed >= length)
                || self.plan.count.is_some_and(|count| rows >= count);
        };
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        // Ctrl-C has reached the command too, which may want to end in its own way; later it is asked to.
        let now = monotonic_ns();
        if stopped && now - *self.asked_ns.get_or_insert(now) >= GRACE_NS {
            // SAFETY: the child is ours and has not been waited for, so the id is still its own.
            unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
            self.asked_ns = None;
        }
        false
    }
}

/// CPUs that came online while the command ran.
fn add_late_cpus(manifest: &mut Manifest, writer: &Writer) {
    for cpu in writer.cpus_with_intervals() {
        if manifest.cpus.iter().all(|facts| facts.cpu != cpu) {
            manifest.cpus.push(CpuFacts::of_span(cpu, Span::default()));
        }
    }
    manifest.cpus.sort_by_key(|facts| facts.cpu);
}

fn complete(manifest: &mut Manifest, run: &Run<'_>, code: Option<ExitStatus>, interrupted: bool) {
    let end = Nanos::from_nanos(monotonic_ns() - run.zero_ns);
    for facts in &mut manifest.cpus {
        facts.end_ns = end;
    }
    let interrupted = interrupted && code.is_none_or(|code| code.code().is_none());
    manifest.state = if interrupted { State::Interrupted } else { State::Complete };
    if let (Some(sources), Some(status)) = (&mut manifest.sources, code) {
        sources.command_exit_code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    }
}
