//! `--validate`: noise is replayed under quell's own probe, and what that saw is compared with what was to be replayed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use quell_analysis::validation::{self, Injected, Sides, Validation};
use quell_node::injector::process::Disturbers;
use quell_node::injector::reports::{self, ProcessReport};
use quell_node::injector::{job, schedule};
use quell_node::machine::Cpus;
use quell_recording::{Cpu, Nanos, Recording, Trace};
use quell_replay::schedule::{Context, Sync};

use super::prepare::{self, Prepared};
use super::run::{Beside, Folder, beside, cost, loading};
use crate::args::{ContextName, Replay};
use crate::commands::Outcome;
use crate::commands::record::stopped_by_signals;
use crate::plan::{self, Usage};
use crate::printer::Printer;
use crate::{html, terminal_validate};

/// The machine's own noise is looked at for this share of the time.
const BEFORE: u64 = 2;

/// Records without and with the noise, and compares.
pub fn run(args: &Replay, printer: Printer) -> anyhow::Result<Outcome> {
    plan::positive(args.duration, "--duration")?;
    let context = match args.context {
        Some(ContextName::Boundary) => {
            return Err(Usage(
                "a probe makes no MPI calls, so --context boundary cannot be validated with one; its own report says what came in at each call".into(),
            )
            .into());
        }
        Some(ContextName::Process) => Context::Process,
        Some(ContextName::Timer) | None => Context::Timer,
    };
    let place = Place::of(args, context)?;
    let mut prepared = prepare::prepare(args, context, cost(args, context, place.beside.as_ref())?, printer)?;
    let folder = Folder::of(args)?;
    let stop = stopped_by_signals()?;
    let half = Nanos::from_nanos(args.duration.as_nanos() / BEFORE);
    printer.say(&format!("recording CPU {} for {half}, as it is", place.cpu));
    let before = record(&place, half, &folder.path.join("before.quell"), &mut |words| {
        Ok((job::run(words, &[], job::Output::Nowhere, &stop)?, Vec::new()))
    })?;
    printer.say(&format!("recording it for {} under the noise", args.duration));
    let under = record(&place, args.duration, &folder.path.join("emulated.quell"), &mut |words| {
        under_noise(&mut prepared, &place, &folder.path, words, &stop)
    })?;
    stop.store(true, Ordering::SeqCst);
    let document = compare(args, &prepared, &before, &under)?;
    if args.output.is_some() {
        let page = folder.path.join("validate.html");
        let title = format!("{} and its emulation", prepared.plan.noise[0].name);
        html::write(&page, &html::Page { compare: Some(&document.comparison), ..html::Page::new(&title) })?;
        printer.say(&format!("wrote {}", page.display()));
    }
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&terminal_validate::validation(&document))?;
    }
    Ok(Outcome::Done)
}

/// Where it is recorded.
struct Place {
    cpu: Cpu,
    beside: Option<Beside>,
}

impl Place {
    fn of(args: &Replay, context: Context) -> anyhow::Result<Self> {
        if context == Context::Process {
            let beside = beside(args)?;
            return Ok(Self { cpu: beside.cpus[0], beside: Some(beside) });
        }
        let machine = Cpus::of_this_machine()?;
        let wanted = args.cpus.as_ref().map(|list| list.0.as_slice());
        machine.check(wanted.unwrap_or_default()).map_err(|error| Usage(error.to_string()))?;
        // The first has most interrupts.
        let cpu = wanted.and_then(|cpus| cpus.first()).or(machine.allowed.last());
        Ok(Self { cpu: *cpu.context("this process may use no CPU")?, beside: None })
    }
}

/// A recording, and what was injected into it.
struct Recorded {
    trace: Trace,
    injected: Vec<Injected>,
}

/// Runs a command, and tells how it ended and what the injectors said.
type Runner<'a> = dyn FnMut(&[String]) -> anyhow::Result<(job::Ended, Vec<ProcessReport>)> + 'a;

/// Runs `quell record` with the probe alone.
fn record(place: &Place, duration: Nanos, output: &Path, run: &mut Runner<'_>) -> anyhow::Result<Recorded> {
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let (cpu, path) = (place.cpu.to_string(), output.to_string_lossy().into_owned());
    let duration = format!("{}ns", duration.as_nanos());
    let words =
        [&own, "record", "-q", "-o", &path, "--cpus", &cpu, "--duration", &duration, "--sources", "off"];
    let (ended, reports) = run(&words.map(str::to_owned))?;
    anyhow::ensure!(
        ended.status.success(),
        "the probe ended with exit code {}: try `{}` alone",
        ended.code(),
        words.join(" ")
    );
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
    Ok(Recorded { trace, injected })
}

fn under_noise(
    prepared: &mut Prepared,
    place: &Place,
    folder: &Path,
    words: &[String],
    stop: &AtomicBool,
) -> anyhow::Result<(job::Ended, Vec<ProcessReport>)> {
    // All threads of the probe's program at one place, so that what any of them tells is told of the one that watches.
    prepared.order.sync = Sync::Start;
    prepared.order.epoch_ns = quell_node::clock::realtime_ns();
    let schedule_words = prepared.words(false)?;
    if let Some(beside) = &place.beside {
        let disturbers = Disturbers::start(&Arc::new(schedule_words), &beside.cpus, beside.alone)?;
        let ended = job::run(words, &[], job::Output::Nowhere, stop)?;
        return Ok((ended, disturbers.end()));
    }
    let reports = folder.join("reports");
    fs_err::create_dir_all(&reports)?;
    let loading = loading(prepared.context, folder, &reports)?.context("this context loads nothing")?;
    schedule::write(&loading.schedule, &schedule_words)?;
    let ended = job::run(words, &loading.variables(), job::Output::Nowhere, stop)?;
    Ok((ended, reports::read(&reports)?))
}

fn compare(
    args: &Replay,
    prepared: &Prepared,
    before: &Recorded,
    under: &Recorded,
) -> anyhow::Result<Validation> {
    // The CPU that was replayed is the first of the first node.
    let original = &prepared.traces[..1];
    let parted = validation::part(&under.trace, &under.injected);
    let plan = &prepared.plan;
    let name = plan.noise[0].name.as_str();
    let sides =
        Sides { name, original, parted: &parted, before: &before.trace, scale: plan.scale, seed: args.seed };
    let found = validation::validate(&sides)?;
    Ok(Validation {
        context: plan.context.clone(),
        overhead_ns: plan.overhead_ns,
        detours_percent: plan.detours_percent,
        warnings: prepared.warnings.iter().cloned().chain(found.warnings.clone()).collect(),
        ..found
    })
}
