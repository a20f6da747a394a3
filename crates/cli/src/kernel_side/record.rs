//! `quell record --method kernel`, `quell record -- CMD` and `quell trace`: record only what the kernel sees, without a probe.

mod run;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use quell_kernel::{Recorder, container};

use quell_node::clock::{monotonic_ns, realtime_ns};
use quell_node::injector::passing::Variable;
use quell_node::machine;
use quell_node::probe::{Plan, RowSource as _, Threshold, first_manifest};
use quell_recording::{Cpu, Manifest, Method, Nanos, State, Writer, format_cpu_list};

use crate::kernel_side::{Rows, refusal};
use crate::plan::until;
use crate::printer::{Printer, one_line};
use crate::signals::stopped_by_signals;
use run::{AdoptedProcesses, LONGEST, LONGEST_WITH_RANKS, Run};

/// Records the planned CPUs, or the noise of `command` and of all processes that it starts, on any CPU.
pub fn record(
    plan: &Plan,
    command: &[String],
    cost: bool,
    output: &Path,
    printer: Printer,
) -> anyhow::Result<Manifest> {
    let follow = !command.is_empty();
    let cpus = if follow { Vec::new() } else { plan.cpus.clone() };
    let recorder = Recorder::start(quell_kernel::Plan { cpus, follow, cost, ..Default::default() })
        .context("without a probe, the kernel recorder is the only source of data (`quell doctor` shows why it cannot run)")?;
    let rows = Rows::new(recorder);
    let variables = if follow { serve(&rows, printer) } else { None };
    let variables: Vec<Variable> = variables.into_iter().collect();
    let followed = follow.then_some(Followed { words: command, variables: &variables });
    stream(plan, rows, followed, LONGEST, output, printer)
}

/// A command to follow.
#[derive(Clone, Copy, Debug)]
pub struct Followed<'a> {
    pub words: &'a [String],
    /// Variables to add to its environment.
    pub variables: &'a [Variable],
}

/// Serves the metric container of the followed threads; returns the variable with its name, for programs.
pub fn serve(rows: &Rows, printer: Printer) -> Option<Variable> {
    match rows.recorder().container()?.serve() {
        Ok(name) => Some((container::VARIABLE, name.into())),
        Err(error) => {
            printer.warn(&format!(
                "{:#}: programs cannot read their own noise counters",
                anyhow::Error::new(error)
            ));
            None
        }
    }
}

/// Records the noise of a command and of all processes that it starts, on any CPU of this machine, with a recorder that has already started
/// and that disturbs ranks as little as possible.
pub fn follow(
    rows: Rows,
    followed: Followed<'_>,
    output: &Path,
    printer: Printer,
) -> anyhow::Result<Manifest> {
    let plan = Plan { command: followed.words.to_vec(), ..all_cpus()? };
    stream(&plan, rows, Some(followed), LONGEST_WITH_RANKS, output, printer)
}

fn stream(
    plan: &Plan,
    rows: Rows,
    followed: Option<Followed<'_>>,
    longest: Duration,
    output: &Path,
    printer: Printer,
) -> anyhow::Result<Manifest> {
    let (mut rows, mut manifest, zero_ns) = begin(rows, &plan.cpus, &plan.command);
    let mut writer = Writer::create(output, &manifest)?;
    let stop = stopped_by_signals()?;
    let mut run = Run::new(plan, &stop, zero_ns, longest);
    if let Some(followed) = followed {
        run.child = Some(start(followed, &rows, &mut manifest, &writer)?);
        printer
            .status(&format!("following `{}` and its child processes", one_line(&followed.words.join(" "))));
    } else {
        let _ = leave(&plan.cpus);
        printer.status(&format!(
            "watching the kernel on CPUs {} {}",
            format_cpu_list(&plan.cpus),
            until(plan)
        ));
    }
    let written = run.stream(&mut rows, &mut writer, printer);
    let interrupted = stop.load(Ordering::SeqCst);
    // From here on a signal ends quell as usual. A command outlives a recording that failed.
    stop.store(true, Ordering::SeqCst);
    let status = run.child.as_mut().and_then(|child| child.wait().ok());
    // CPUs may have come online while the command ran.
    manifest.add_cpus(writer.cpus_with_intervals());
    if let Err(error) = written {
        writer.abandon(&mut manifest, &error);
        return Err(error.into());
    }
    complete(&mut manifest, &run, status, interrupted);
    rows.complete(&mut manifest);
    writer.finish(&mut manifest)?;
    manifest.warnings.iter().for_each(|warning| printer.warn(&warning.to_string()));
    Ok(manifest)
}

/// Records the noise of the processes that ask for the container under `name`, until all of them have ended or a signal stops quell.
pub fn adopt(name: &str, own_work: bool, output: &Path, printer: Printer) -> Result<Manifest, Unwatched> {
    let plan = all_cpus()?;
    let wanted = quell_kernel::Plan { follow: true, adopt: true, own_work, ..Default::default() };
    let recorder = Recorder::start(wanted).map_err(refusal)?;
    let (mut rows, mut manifest, zero_ns) = begin(Rows::new(recorder), &plan.cpus, &[]);
    let mut writer = Writer::create(output, &manifest)?;
    let stop = stopped_by_signals()?;
    // The process that started this one may be bound to the CPU where its rank computes.
    let _ = machine::pin(&plan.cpus);
    if let Some(container) = rows.recorder().container() {
        container.serve_under(name)?;
    }
    let mut run = Run::new(&plan, &stop, zero_ns, LONGEST_WITH_RANKS);
    run.guests = Some(AdoptedProcesses::default());
    let written = run.stream(&mut rows, &mut writer, printer);
    manifest.add_cpus(writer.cpus_with_intervals());
    if let Err(error) = written {
        writer.abandon(&mut manifest, &error);
        return Err(error.into());
    }
    complete(&mut manifest, &run, None, stop.load(Ordering::SeqCst));
    rows.complete(&mut manifest);
    writer.finish(&mut manifest)?;
    Ok(manifest)
}

/// Prepares a recording that starts now: the rows, the first manifest, and its zero on CLOCK_MONOTONIC.
fn begin(mut rows: Rows, cpus: &[Cpu], command: &[String]) -> (Rows, Manifest, u64) {
    let mut manifest = first_manifest(Method::Kernel, cpus, command);
    let zero_ns = monotonic_ns();
    manifest.zero_monotonic_ns = Some(zero_ns);
    manifest.zero_unix_ns = Some(realtime_ns());
    rows.begin(&mut manifest);
    (rows, manifest, zero_ns)
}

/// Why the kernel cannot be recorded. No command was started.
#[derive(Debug)]
pub struct Unwatched(pub anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Unwatched {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// Runs `command` to its end, and records the kernel on every CPU of this machine while it runs. A recording that fails does not affect the
/// command.
pub fn alongside(command: &mut Command, output: &Path, printer: Printer) -> Result<ExitStatus, Unwatched> {
    let cpus = machine::Cpus::from_this_machine()?.online;
    let recorder =
        Recorder::start(quell_kernel::Plan { cpus: cpus.clone(), ..Default::default() }).map_err(refusal)?;
    let (mut rows, mut manifest, zero_ns) = begin(Rows::new(recorder), &cpus, &[]);
    let mut writer = Writer::create(output, &manifest)?;
    let stop = stopped_by_signals()?;
    let child = command.spawn()?;
    // The launcher may have bound this process to the CPU where its rank computes.
    let _ = machine::pin(&cpus);
    let plan = plan_of(cpus);
    let mut run = Run::new(&plan, &stop, zero_ns, LONGEST_WITH_RANKS);
    run.child = Some(child);
    let written = run.stream(&mut rows, &mut writer, printer);
    stop.store(true, Ordering::SeqCst);
    // A child that cannot be waited for counts as failed.
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
        printer.warn(&format!("the kernel recording of the run is incomplete: {error}"));
    }
    Ok(status)
}

/// A plan that only lists the CPUs, with no limit on time or rows.
fn plan_of(cpus: Vec<Cpu>) -> Plan {
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

fn all_cpus() -> anyhow::Result<Plan> {
    Ok(plan_of(machine::Cpus::from_this_machine()?.online))
}

/// Starts the command as a child that is followed from its first instruction. If it cannot be started, there is nothing to record, and the
/// folder is deleted.
fn start(
    followed: Followed<'_>,
    rows: &Rows,
    manifest: &mut Manifest,
    writer: &Writer,
) -> anyhow::Result<Child> {
    let started = spawn(followed, rows.recorder());
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

fn spawn(followed: Followed<'_>, recorder: &Recorder) -> anyhow::Result<Child> {
    let mut child = Command::new(&followed.words[0]);
    child.args(&followed.words[1..]).envs(followed.variables.iter().map(|(name, value)| (name, value)));
    recorder
        .follow_children_started_by(|| child.spawn())?
        .map_err(|error| anyhow::Error::new(error).context(Unstarted(followed.words[0].clone())))
}

/// The command cannot be started; the system's reason follows in the error chain.
#[derive(Debug)]
pub struct Unstarted(pub String);

impl std::fmt::Display for Unstarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the command `{}` cannot be started", one_line(&self.0))
    }
}

/// Moves this thread off the recorded CPUs, if there are others.
pub fn leave(watched: &[Cpu]) -> std::io::Result<()> {
    let allowed = machine::Cpus::from_this_machine().map_err(std::io::Error::other)?.allowed;
    let others: Vec<Cpu> = allowed.into_iter().filter(|cpu| !watched.contains(cpu)).collect();
    if others.is_empty() { Ok(()) } else { machine::pin(&others) }
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
