//! Converts and checks the arguments: lists of CPUs and ranks, thresholds, names of files that do not exist yet.

pub mod place;

use std::path::PathBuf;
use std::time::SystemTime;

use quell_node::machine::{self, Cpus};
use quell_node::probe::{Plan, Threshold};
use quell_recording::{Method, Nanos};
use quell_request::{Usage, positive};

use crate::args::{MethodName, Record, ServeMetrics, SourcesMode, Study, Watch, Watching};

/// Shorter quanta would arrive faster than they can be written; longer ones would delay the end of a run.
const SHORTEST_QUANTUM: Nanos = Nanos::from_nanos(10_000);
const LONGEST_QUANTUM: Nanos = Nanos::from_secs(1);
const USUAL_QUANTUM: Nanos = Nanos::from_nanos(1_000_000);
const USUAL_THRESHOLD: Threshold = Threshold::Absolute(Nanos::from_nanos(150));

/// The recorder's plan for `record`.
pub fn for_record(args: &Record) -> anyhow::Result<Plan> {
    if args.cost && args.watching.sources == SourcesMode::Off {
        let text = "--cost measures the kernel recorder: leave --sources out";
        return Err(Usage(text.into()).into());
    }
    if args.effect.is_some_and(|pairs| pairs > 0) {
        let by_detours = matches!(args.method, None | Some(MethodName::Detour));
        if args.watching.sources == SourcesMode::Off || !by_detours {
            let text = "--effect compares detours with and without the kernel recorder: leave --sources and --method out";
            return Err(Usage(text.into()).into());
        }
    }
    if !args.command.is_empty() {
        return for_command(args);
    }
    let method = match args.method {
        None | Some(MethodName::Detour) => Method::Detour,
        Some(MethodName::Fwq) => Method::Fwq,
        Some(MethodName::Ftq) => Method::Ftq,
        Some(MethodName::Memory) => Method::Memory,
        Some(MethodName::Kernel) => Method::Kernel,
    };
    check_of_method(args, method)?;
    let duration = args.duration.or((args.count.is_none()).then_some(Nanos::from_secs(10)));
    let plan = plan(&args.watching, method, args.quantum.unwrap_or(USUAL_QUANTUM), duration)?;
    match args.count {
        Some(0) => Err(Usage("--count 0 records nothing: give at least 1".into()).into()),
        count => Ok(Plan { count, ..plan }),
    }
}

/// Refuses options that say how another method measures.
fn check_of_method(args: &Record, method: Method) -> Result<(), Usage> {
    if args.watching.threshold.is_some() && method != Method::Detour {
        let text = format!(
            "only --method detour has a threshold, and this records by `{method}`: leave --threshold out"
        );
        return Err(Usage(text));
    }
    if args.quantum.is_some() && !matches!(method, Method::Fwq | Method::Ftq) {
        let text = format!(
            "only --method fwq and ftq have a quantum, and this records by `{method}`: leave --quantum out"
        );
        return Err(Usage(text));
    }
    Ok(())
}

/// The plan for a command, whose threads may run on any CPU.
fn for_command(args: &Record) -> anyhow::Result<Plan> {
    if !matches!(args.method, None | Some(MethodName::Kernel)) {
        let text = "a probe would take the CPUs from the command: leave --method out, or use --method kernel";
        return Err(Usage(text.into()).into());
    }
    if args.watching.sources == SourcesMode::Off {
        let text = "only the kernel recorder sees the noise of a command: leave --sources out";
        return Err(Usage(text.into()).into());
    }
    check_of_method(args, Method::Kernel)?;
    let plan = plan(&args.watching, Method::Kernel, USUAL_QUANTUM, None)?;
    Ok(Plan { cpus: Cpus::from_this_machine()?.online, ..plan })
}

/// The recorder's plan for `study`.
pub fn for_study(args: &Study) -> anyhow::Result<Plan> {
    plan(&args.watching, Method::Detour, args.job.quantum, Some(args.duration))
}

/// Shorter intervals would cost more than they show; longer ones are not live.
const SHORTEST_INTERVAL: Nanos = Nanos::from_nanos(100_000_000);
const LONGEST_INTERVAL: Nanos = Nanos::from_secs(3_600);

/// The plan of the probes for `serve-metrics`; without probes, its method is `kernel`.
pub fn for_metrics(args: &ServeMetrics) -> anyhow::Result<Plan> {
    check_interval(args.interval)?;
    let watching =
        Watching { cpus: args.cpus.clone(), threshold: None, realtime: None, sources: SourcesMode::Auto };
    plan(&watching, if args.probe { Method::Detour } else { Method::Kernel }, Nanos::from_secs(1), None)
}

fn check_interval(interval: Nanos) -> Result<(), Usage> {
    match (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
        true => Ok(()),
        false => Err(Usage(format!(
            "--interval {interval} is out of range: give {SHORTEST_INTERVAL} to {LONGEST_INTERVAL}"
        ))),
    }
}

/// The plan of the probes for `watch`; without probes, its method is `kernel`.
pub fn for_watch(args: &Watch) -> anyhow::Result<Plan> {
    check_interval(args.interval)?;
    if args.passive && args.watching.sources == SourcesMode::Off {
        let text = "without a probe, only the kernel recorder measures: leave --sources or --passive out";
        return Err(Usage(text.into()).into());
    }
    if args.passive && args.watching.threshold.is_some() {
        return Err(Usage("--threshold is for the probe: leave --threshold or --passive out".into()).into());
    }
    let method = if args.passive { Method::Kernel } else { Method::Detour };
    plan(&args.watching, method, Nanos::from_secs(1), args.duration)
}

fn plan(
    watching: &Watching,
    method: Method,
    quantum: Nanos,
    duration: Option<Nanos>,
) -> anyhow::Result<Plan> {
    let machine = Cpus::from_this_machine()?;
    let cpus = watching.cpus.clone().map_or(machine.allowed.clone(), |list| list.0);
    machine.check(&cpus).map_err(|e| Usage(e.to_string()))?;
    positive(duration.unwrap_or(Nanos::MAX), "--duration")?;
    positive(quantum, "--quantum")?;
    if matches!(method, Method::Fwq | Method::Ftq) && !(SHORTEST_QUANTUM..=LONGEST_QUANTUM).contains(&quantum)
    {
        return Err(Usage(format!(
            "--quantum {quantum} is out of range: give {SHORTEST_QUANTUM} to {LONGEST_QUANTUM}, because a \
             probe records each quantum, and checks for the end only between two"
        ))
        .into());
    }
    if watching.realtime.is_some() && cpus.len() >= machine.allowed.len() {
        return Err(Usage(
            "real-time probes must leave one CPU to the system: leave one out of --cpus".into(),
        )
        .into());
    }
    if watching.realtime.is_some() && duration.is_none() {
        return Err(Usage("real-time probes need an end: give --duration".into()).into());
    }
    Ok(Plan {
        cpus,
        method,
        threshold: watching.threshold.map_or(USUAL_THRESHOLD, |given| given.0),
        quantum,
        duration,
        count: None,
        realtime: watching.realtime,
        command: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
    })
}

/// A name for results of this host and this moment, as `node17-20261121T093337Z`.
pub fn name_of_now() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(['-', ':'], "");
    let host = machine::host().unwrap_or_else(|| "node".into());
    let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    format!("{host}-{now}")
}

/// The default output of `record`.
pub fn recording_of_now() -> PathBuf {
    PathBuf::from(format!("{}.quell", name_of_now()))
}

/// A description of when a run ends.
pub fn until(plan: &Plan) -> String {
    match (plan.duration, plan.count) {
        (Some(time), Some(count)) => format!("for {time} or {count} rows"),
        (Some(time), None) => format!("for {time}"),
        (None, Some(count)) => format!("until {count} rows are found (Ctrl-C ends it earlier)"),
        (None, None) => "until Ctrl-C".into(),
    }
}
