//! One run from its plan to its manifest.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use quell_recording::{
    ClockFacts, Cpu, CpuFacts, Error, Manifest, Method, Nanos, PROBE_THREAD, Span, State, Throttling, Warning,
};

use super::memory::Levels;
use super::sink::Disk;
use super::thread::{Gate, Probe, Run, Seen};
use super::writer::Stream;
use super::{Plan, ProbeError, RowSource, Sink, Status, Threshold};
use crate::clock::{Anchor, ClockKind, Scale, realtime_ns};
use crate::machine::{self, Cpus};
use crate::processor::Counters;
use crate::realtime;

/// How long the clock is calibrated at the beginning and at the end.
const CALIBRATION: Duration = Duration::from_millis(20);
/// The kernel ends a real-time run that is overdue by this much.
const HARD_LIMIT: Nanos = Nanos::from_secs(3);
/// The change of the clock's rate, in parts per million, from which a recording has a warning.
const DRIFT_WORTH_SAYING: f64 = 100.0;

/// Runs the probes and writes the recording to `folder`; ends by time, by count, or when `stop` is set.
///
/// The writer empties `rows` together with the probes' buffers, and calls `status` about once a second. The time of both
/// counts as quell's own.
///
/// # Errors
/// [`ProbeError`]. After [`ProbeError::Write`] the folder holds a readable recording of what came before.
pub fn record(
    plan: &Plan,
    folder: &Path,
    stop: &AtomicBool,
    rows: &mut dyn RowSource,
    status: &mut dyn FnMut(Status),
) -> Result<Manifest, ProbeError> {
    stream(plan, stop, &mut Disk::new(folder, rows, status))
}

/// Runs the probes and hands what they find to `sink`; ends by time, by count, or when `stop` is set.
///
/// # Errors
/// [`ProbeError`]; an error from the sink is [`ProbeError::Recording`] if `begin` fails, and [`ProbeError::Write`] afterwards.
pub fn stream(plan: &Plan, stop: &AtomicBool, sink: &mut dyn Sink) -> Result<Manifest, ProbeError> {
    let cpus = Cpus::from_this_machine()?;
    cpus.check(&plan.cpus)?;
    let spare: Vec<Cpu> = cpus.allowed.iter().copied().filter(|cpu| !plan.cpus.contains(cpu)).collect();
    guard_realtime(plan, &spare)?;
    let (kind, fallback) = ClockKind::choose();
    let probes =
        plan.cpus.iter().map(|&cpu| Probe::new(cpu, plan.cpus.len())).collect::<Result<Vec<_>, _>>()?;
    let mut manifest = first_manifest(plan.method, &plan.cpus, &plan.command);
    manifest.quantum_ns = matches!(plan.method, Method::Fwq | Method::Ftq).then_some(plan.quantum);
    let levels = (plan.method == Method::Memory).then(|| Levels::new(&plan.cpus, stop)).transpose()?;
    manifest.memory = levels.as_ref().map_or_else(Vec::new, Levels::facts);
    manifest.warnings.extend(fallback.map(|because| Warning::CoarseClock { because }));
    if probes.iter().any(|probe| !probe.ring.locked()) {
        manifest.warnings.push(Warning::BuffersNotLocked);
    }
    let _home =
        AffinityGuard::move_to(if spare.is_empty() { &plan.cpus[..1] } else { &spare }, cpus.allowed)?;
    let run = Run {
        plan,
        kind,
        rate: Scale::estimate(kind, CALIBRATION),
        gate: Gate::default(),
        deadline_ticks: AtomicU64::new(u64::MAX),
        levels,
        halt: AtomicBool::new(false),
    };
    let is_virtual = manifest.warnings.contains(&Warning::VirtualMachine);
    let shared_cpu = spare.is_empty().then_some(plan.cpus[0]);
    std::thread::scope(|scope| {
        let (threads, refused) = spawn(scope, &run, &probes);
        run.gate.wait_for(&probes, &run.halt);
        let counters: Vec<Counters> = plan.cpus.iter().map(|&cpu| Counters::start(cpu, is_virtual)).collect();
        let outcome = feed(&run, &probes, shared_cpu, &mut manifest, sink, stop);
        let seen = join(threads)?;
        manifest.cpus.iter_mut().zip(counters).for_each(|(facts, counters)| counters.end(facts));
        refused.map_or(Ok(()), Err)?;
        let (stream, written) = outcome?;
        complete(&mut manifest, &run, &stream, &seen, stop.load(Ordering::SeqCst));
        sink.end(&mut manifest, written).map_err(|source| ProbeError::Write {
            elapsed: stream.status().elapsed,
            kept: stream.written(),
            source,
        })?;
        Ok(manifest)
    })
}

type Thread<'scope> = ScopedJoinHandle<'scope, Result<Seen, ProbeError>>;

/// Starts a thread per probe; if one fails to start, the run is cancelled.
fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: &'scope Run,
    probes: &'scope [Probe],
) -> (Vec<Thread<'scope>>, Option<ProbeError>) {
    let mut threads = Vec::with_capacity(probes.len());
    for probe in probes {
        match std::thread::Builder::new().name(PROBE_THREAD.into()).spawn_scoped(scope, || probe.run(run)) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                run.halt.store(true, Ordering::SeqCst);
                return (threads, Some(ProbeError::Spawn { cpu: probe.cpu, source }));
            }
        }
    }
    (threads, None)
}

fn join(threads: Vec<Thread>) -> Result<Vec<Seen>, ProbeError> {
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}

/// Sets the zero, prepares the sink, releases the probes and streams what they find until they are done. A stream that
/// has ended comes with the result of writing its rows.
fn feed<'a>(
    run: &'a Run,
    probes: &'a [Probe],
    shared_cpu: Option<Cpu>,
    manifest: &mut Manifest,
    sink: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<(Stream<'a>, Result<(), Error>), ProbeError> {
    sink.discard();
    let zero = Anchor::take(run.kind);
    manifest.zero_monotonic_ns = Some(zero.monotonic_ns);
    manifest.zero_unix_ns = Some(realtime_ns());
    let mut stream = Stream::new(run, probes, zero, shared_cpu);
    // A probe that could not be prepared has cancelled the run; its thread returns the error.
    if run.halt.load(Ordering::SeqCst) {
        return Ok((stream, Ok(())));
    }
    sink.begin(manifest).inspect_err(|_| run.halt.store(true, Ordering::SeqCst))?;
    // Only now, because creating a folder can take long on a busy disk, and must not count as time of the run.
    if let Some(length) = run.plan.duration {
        let deadline = run.kind.now().saturating_add(run.rate.ticks(length));
        run.deadline_ticks.store(deadline, Ordering::SeqCst);
    }
    run.gate.open();
    let written = stream.run(sink, stop);
    if written.is_err() {
        stream.wait_for_probes();
    }
    Ok((stream, written))
}

/// Adds to the manifest what is known only at the end of the run.
fn complete(manifest: &mut Manifest, run: &Run, stream: &Stream, seen: &[Seen], interrupted: bool) {
    let scale = stream.scale();
    let end_rate = Scale::estimate(run.kind, CALIBRATION).ticks_per_second();
    let drift_ppm = (end_rate / run.rate.ticks_per_second() - 1.0) * 1e6;
    let granularity = seen.iter().map(|s| s.calibration.granularity).max().unwrap_or(1);
    manifest.state = if interrupted { State::Interrupted } else { State::Complete };
    manifest.clock = Some(ClockFacts {
        name: run.kind.name().into(),
        ticks_per_second: scale.ticks_per_second(),
        granularity_ns: scale.length_f64(f64::from(granularity)),
        drift_ppm,
    });
    manifest.threshold_ns = threshold_ns(run, seen, scale);
    for (index, seen) in seen.iter().enumerate() {
        let facts = &mut manifest.cpus[index];
        let closed = stream.end_on_its_cpu(index, seen.moved);
        if closed.is_some() {
            manifest.warnings.push(Warning::CpuClosed { cpu: facts.cpu.0 });
        }
        let last = closed.map_or(seen.observed.last, |ticks| ticks.max(seen.observed.first));
        let span = stream.span(index, seen.observed.first, last);
        (facts.start_ns, facts.end_ns) = (span.start, span.end);
        facts.lost = stream.lost(index);
        if run.plan.method == Method::Detour {
            facts.resolution_ns = Some(scale.length_f64(f64::from(seen.calibration.resolution_ticks())));
            facts.probe_loop = Some(seen.loop_facts(scale));
        }
    }
    manifest.warnings.extend((stream.stops() > 0).then(|| Warning::Stopped { times: stream.stops() }));
    manifest.warnings.extend(warnings(manifest, run, drift_ppm));
}

/// The largest threshold of all CPUs, as a time above the loop's own turn.
fn threshold_ns(run: &Run, seen: &[Seen], scale: Scale) -> Option<f64> {
    if run.plan.method != Method::Detour {
        return None;
    }
    Some(match run.plan.threshold {
        Threshold::Absolute(length) => length.as_nanos() as f64,
        Threshold::TimesMinimum(factor) => {
            let least = |s: &Seen| s.calibration.min.max(s.calibration.granularity);
            scale.length_f64(f64::from(seen.iter().map(least).max().unwrap_or(0)) * factor)
        }
    })
}

fn warnings(manifest: &Manifest, run: &Run, drift_ppm: f64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let granularity_ns = manifest.clock.as_ref().map_or(0.0, |clock| clock.granularity_ns);
    let resolution_ns = manifest.cpus.iter().filter_map(|cpu| cpu.resolution_ns).fold(0.0, f64::max);
    if matches!(run.plan.threshold, Threshold::TimesMinimum(_)) && granularity_ns > 2.0 {
        warnings.push(Warning::ThresholdOfCoarseClock { granularity_ns });
    }
    if let Some(threshold_ns) = manifest.threshold_ns.filter(|&threshold_ns| threshold_ns < resolution_ns) {
        warnings.push(Warning::ThresholdInsideLoop { threshold_ns, resolution_ns });
    }
    if drift_ppm.abs() > DRIFT_WORTH_SAYING {
        warnings.push(Warning::ClockDrift { drift_ppm });
    }
    if manifest.lost() > 0 {
        warnings.push(Warning::RowsLost { rows: manifest.lost() });
    }
    let throttled = run.plan.realtime.and(realtime::throttled_share()).filter(|&share| share > 0.0);
    warnings.extend(throttled.map(|share| Warning::RealtimeThrottled { percent: 100.0 * share }));
    warnings.extend(slowed(manifest));
    warnings
}

/// That the processor slowed CPUs, and which of them the most.
fn slowed(manifest: &Manifest) -> Option<Warning> {
    let slowed = |facts: &CpuFacts| Some((facts.throttling.filter(|one| one.has_slowed())?, facts.cpu));
    let slowed: Vec<(Throttling, Cpu)> = manifest.cpus.iter().filter_map(slowed).collect();
    let (most, cpu) = slowed.iter().max_by_key(|(one, _)| (one.total_ns, one.times))?;
    let total_ns = most.total_ns.as_nanos();
    Some(Warning::Throttled { cpus: slowed.len() as u64, cpu: cpu.0, times: most.times, total_ns })
}

/// The manifest as far as it is known before a recording of these CPUs begins.
pub fn first_manifest(method: Method, cpus: &[Cpu], command: &[String]) -> Manifest {
    let mut manifest = Manifest::new(method, State::Recording);
    manifest.host = machine::host();
    manifest.kernel = machine::kernel();
    manifest.processor = machine::processor();
    manifest.command = command.to_vec();
    let facts = |&cpu: &Cpu| {
        let place = machine::place(cpu);
        let facts = CpuFacts::from_span(cpu, Span::default());
        CpuFacts { core: place.core, package: place.package, numa_node: place.numa_node, ..facts }
    };
    manifest.cpus = cpus.iter().map(facts).collect();
    if machine::virtualised() {
        manifest.warnings.push(Warning::VirtualMachine);
    }
    manifest
}

/// Refuses a real-time run without a deadline, or without a CPU for the rest of the system.
fn guard_realtime(plan: &Plan, spare: &[Cpu]) -> Result<(), ProbeError> {
    if plan.realtime.is_none() {
        return Ok(());
    }
    let Some(length) = plan.duration else {
        return Err(ProbeError::Unguarded("real-time probes need an end: give --duration"));
    };
    if spare.is_empty() {
        return Err(ProbeError::Unguarded(
            "real-time probes must leave one CPU to the system: leave one out of --cpus",
        ));
    }
    realtime::limit_cpu_time(Duration::from(length + HARD_LIMIT)).map_err(ProbeError::Realtime)
}

/// Keeps the writer off the probed CPUs, and restores its affinity when the run is over.
struct AffinityGuard(Vec<Cpu>);

impl AffinityGuard {
    fn move_to(cpus: &[Cpu], back: Vec<Cpu>) -> Result<Self, ProbeError> {
        machine::pin(cpus).map_err(|source| ProbeError::Pin { cpu: cpus[0], source })?;
        Ok(Self(back))
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        let _ = machine::pin(&self.0);
    }
}
