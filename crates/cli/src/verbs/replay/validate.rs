//! `--validate`: replays noise under quell's own probe, and compares what the probe sees with the scheduled noise.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use quell_analysis::Warning;
use quell_analysis::validation::{self, Injected, Sides, Validation};
use quell_node::injector::passing::Variable;
use quell_node::injector::process::Disturbers;
use quell_node::injector::reports::{self, ProcessReport};
use quell_node::injector::{job, schedule};
use quell_node::machine::Cpus;
use quell_page::{Page, Part};
use quell_recording::{Cpu, Nanos, Recording, Trace};
use quell_replay::report::Field;
use quell_replay::schedule::{Context, MOST_EVENTS, Sync};

use super::prepare::{self, Prepared};
use super::setting::{self, DisturbedCpus, Folder};
use crate::signals::Signals;
use quell_analysis::predict::SyncName;

use crate::args::{ContextName, Replay};
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::{html, render};
use quell_request::Usage;

/// The machine's own noise is recorded for the duration divided by this number.
const BEFORE: u64 = 2;

/// The default length of the recording.
const USUAL: Nanos = Nanos::from_secs(10);
/// The number of detours below which a distribution is doubtful.
const FEW: u64 = 100;
/// The percentage of own noise above which the probe's view of other noise is distorted.
const BUSY_PERCENT: f64 = 10.0;

/// Records without and with the noise, and compares; the limit is exceeded if much less was injected than scheduled.
pub fn run(args: &Replay, printer: Printer) -> anyhow::Result<Outcome> {
    let duration = args.duration.unwrap_or(USUAL);
    quell_request::positive(duration, "--duration")?;
    let context = match args.context {
        Some(ContextName::Boundary) => {
            return Err(Usage(
                "a probe makes no MPI calls, so --context boundary cannot be validated with one; the report of a run shows the noise injected at each call".into(),
            )
            .into());
        }
        Some(ContextName::Process) => Context::Process,
        Some(ContextName::Timer) | None if cfg!(target_feature = "crt-static") => {
            return Err(Usage(
                "this quell is linked statically, so nothing can be loaded into its probe: validate --context process, or take a quell that is linked dynamically".into(),
            )
            .into());
        }
        Some(ContextName::Timer) | None => Context::Timer,
    };
    if args.baseline.is_some() || args.share.is_some() || args.job.sync != SyncName::None {
        return Err(Usage(
            "--baseline, --share and --sync are for a command: leave them out with --validate".into(),
        )
        .into());
    }
    let folder = if args.dry_run { None } else { Some(Folder::from_args(args)?) };
    let place = Place::from_args(args, context)?;
    let cost = |period_ns| setting::cost(args, context, place.disturbed.as_ref(), period_ns);
    let mut prepared = prepare::prepare(args, context, &cost, printer)?;
    let Some(folder) = folder else { return Ok(Outcome::Done) };
    let due = due(&prepared, duration);
    let cpu = &prepared.compiled.groups[0][0];
    if due == 0
        && let Some(apart) = cpu.period_ns.checked_div(cpu.detours.len() as u64)
    {
        let apart = Nanos::from_nanos(apart);
        return Err(Usage(format!(
            "a detour is due every {apart}, and so less than one in the {duration} of the recording: give a longer --duration"
        ))
        .into());
    }
    prepared.order.events = (2 * due + 4096).min(MOST_EVENTS);
    let signals = Signals::catch()?;
    let half = Nanos::from_nanos(duration.as_nanos() / BEFORE);
    printer.status(&format!("recording CPU {} for {half} without injected noise", place.cpu));
    let run = |variables: &[Variable], words: &[String]| {
        let printed = folder.path.join("stderr");
        let how = job::RunOptions { variables, input: job::Input::None, output: job::Output::File(&printed) };
        let ended = job::run(words, &how, &signals.pass)?;
        anyhow::ensure!(!signals.stopped(), "interrupted");
        let printed = fs_err::read_to_string(&printed).unwrap_or_default();
        anyhow::ensure!(
            ended.status.success(),
            "the probe ended with exit code {}: {}",
            ended.code(),
            one_line(&printed)
        );
        Ok(())
    };
    let before = record(&place, half, &folder.path.join("before.quell"), &mut |words| {
        run(&[], words)?;
        Ok(Vec::new())
    })?;
    printer.status(&format!("recording it for {duration} under the noise"));
    let under = record(&place, duration, &folder.path.join("emulated.quell"), &mut |words| {
        under_noise(&mut prepared, &place, &folder.path, &mut |variables| run(variables, words))
    })?;
    let mut document = compare(args, &prepared, &before, &under)?;
    let missing = is_missing(document.injected, due);
    document.warnings.extend(doubts(&document, due, missing, under.lost));
    if args.output.is_some() {
        let page = folder.path.join("validate.html");
        let title = format!("{} and its emulation", prepared.plan.noise[0].name);
        document.comparison.warnings.extend(document.warnings.iter().cloned());
        html::write(&page, &Page::new(&title).with(Part::Compare, &document.comparison)?)?;
        printer.status(&format!("wrote {}", page.display()));
    }
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&render::validate::validation(&document))?;
    }
    Ok(if missing || under.lost > 0 { Outcome::LimitExceeded } else { Outcome::Done })
}

/// The number of detours that are scheduled while the probe runs.
fn due(prepared: &Prepared, duration: Nanos) -> u64 {
    let cpu = &prepared.compiled.groups[0][0];
    (cpu.detours.len() as f64 * duration.as_nanos() as f64 / cpu.period_ns as f64) as u64
}

/// Whether much less was injected than was due. Where the recording begins in the noise is random, so a few say nothing.
fn is_missing(injected: u64, due: u64) -> bool {
    due > 0 && injected as f64 <= 0.9 * due as f64 - 3.0 * (due as f64).sqrt()
}

/// Warnings that make the comparison doubtful.
fn doubts(document: &Validation, due: u64, missing: bool, lost: u64) -> Vec<Warning> {
    let mut doubts = Vec::new();
    if missing {
        doubts.push(Warning::InjectedFewer { due, injected: document.injected });
    }
    if lost > 0 {
        doubts.push(Warning::InjectedUnlogged { detours: lost });
    }
    if document.seen < FEW {
        doubts.push(Warning::FewDetours { detours: document.seen });
    }
    if document.own.overhead_percent > BUSY_PERCENT {
        doubts.push(Warning::OwnNoise { percent: document.own.overhead_percent });
    }
    doubts
}

/// The CPU to record, and the CPUs to disturb.
struct Place {
    cpu: Cpu,
    disturbed: Option<DisturbedCpus>,
}

impl Place {
    fn from_args(args: &Replay, context: Context) -> anyhow::Result<Self> {
        if context == Context::Process {
            let disturbed = setting::disturbed(args)?;
            return Ok(Self { cpu: disturbed.cpus[0], disturbed: Some(disturbed) });
        }
        let machine = Cpus::from_this_machine()?;
        let wanted = args.cpus.as_ref().map(|list| list.0.as_slice());
        machine.check(wanted.unwrap_or_default()).map_err(|error| Usage(error.to_string()))?;
        // The first CPU usually has the most interrupts.
        let cpu = wanted.and_then(|cpus| cpus.first()).or(machine.allowed.last());
        Ok(Self { cpu: *cpu.context("this process may use no CPU")?, disturbed: None })
    }
}

/// A recording, and what was injected into it.
struct Recorded {
    trace: Trace,
    injected: Vec<Injected>,
    /// Number of injected detours for which the log had no room.
    lost: u64,
}

/// Runs a command, and returns the reports of the injectors.
type Runner<'a> = dyn FnMut(&[String]) -> anyhow::Result<Vec<ProcessReport>> + 'a;

/// Runs `quell record` with the probe alone.
fn record(place: &Place, duration: Nanos, output: &Path, run: &mut Runner<'_>) -> anyhow::Result<Recorded> {
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let (cpu, path) = (place.cpu.to_string(), output.to_string_lossy().into_owned());
    let duration = format!("{}ns", duration.as_nanos());
    let words =
        [&own, "record", "-q", "-o", &path, "--cpus", &cpu, "--duration", &duration, "--sources", "off"];
    let reports = run(&words.map(str::to_owned))?;
    let recording = Recording::open(output)?;
    let trace = recording.traces.first().cloned().context("the probe saw no CPU")?;
    let zero = recording.manifest.zero_monotonic_ns.unwrap_or(0);
    let mut injected: Vec<Injected> = reports
        .iter()
        .flat_map(ProcessReport::events)
        .filter(|event| event.start_ns >= zero)
        .map(|event| Injected {
            start_ns: event.start_ns - zero,
            end_ns: event.start_ns - zero + event.took_ns,
        })
        .collect();
    injected.sort_by_key(|event| event.start_ns);
    let lost = reports.iter().map(|report| report.get(Field::EventsLost)).sum();
    Ok(Recorded { trace, injected, lost })
}

fn under_noise(
    prepared: &mut Prepared,
    place: &Place,
    folder: &Path,
    run: &mut dyn FnMut(&[Variable]) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<ProcessReport>> {
    // All threads of the probe's program start at the same place, so that the report of any thread holds for the one that probes.
    prepared.order.sync = Sync::Start;
    prepared.order.epoch_ns = quell_node::clock::realtime_ns();
    let schedule_words = prepared.words(false)?;
    if let Some(disturbed) = &place.disturbed {
        let disturbers = Disturbers::start(&Arc::new(schedule_words), &disturbed.cpus, disturbed.alone)?;
        run(&[])?;
        // What was burned on the other CPUs is not what the probe saw.
        let reports = disturbers.end();
        let probed = disturbed.cpus.iter().position(|cpu| *cpu == place.cpu).map(|rank| rank as u64);
        return Ok(reports.into_iter().filter(|report| report.rank() == probed).collect());
    }
    let reports = folder.join("reports");
    fs_err::create_dir_all(&reports)?;
    let loading =
        setting::loading(prepared.context, folder, &reports)?.context("this context loads nothing")?;
    schedule::write(&setting::schedule_in(folder), &schedule_words)?;
    run(&loading.passed(&[]).variables)?;
    Ok(reports::read(&reports)?)
}

fn compare(
    args: &Replay,
    prepared: &Prepared,
    before: &Recorded,
    under: &Recorded,
) -> anyhow::Result<Validation> {
    // The replayed CPU is the first of the first node.
    let original = &prepared.traces[..1];
    let parted = validation::split_injected(&under.trace, &under.injected);
    let plan = &prepared.plan;
    let name = plan.noise[0].name.as_str();
    let sides = Sides {
        name,
        original,
        parted: &parted,
        before: &before.trace,
        scale: plan.scale,
        seed: args.job.seed,
    };
    let found = validation::validate(&sides)?;
    Ok(Validation {
        context: plan.context.clone(),
        overhead_ns: plan.overhead_ns,
        detours_percent: plan.detours_percent,
        warnings: prepared.warnings.iter().cloned().chain(found.warnings.clone()).collect(),
        ..found
    })
}

#[cfg(test)]
mod tests {
    use super::is_missing;

    #[test]
    fn a_few_detours_are_no_measure() {
        assert!(!is_missing(0, 0) && !is_missing(0, 11) && is_missing(0, 12));
        assert!(!is_missing(1, 11) && !is_missing(90, 100) && is_missing(59, 100));
        assert!(is_missing(890, 1_100) && !is_missing(892, 1_100));
    }
}
