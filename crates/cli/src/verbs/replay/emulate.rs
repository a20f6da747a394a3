//! `quell replay --emulate`: runs quell's own phases under the noise, for more ranks than this machine has CPUs.

mod noise;
mod scales;

use quell_analysis::Warning;
use quell_analysis::emulation::{self, Emulation, Machine, Measured, SCHEMA};
use quell_analysis::predict::{self, NodeNoise, NoiseSource, Options};
use quell_node::clock::ClockKind;
use quell_node::injector::phases::{Plan, SHORTEST_QUANTUM_NS};
use quell_node::machine::{self, Cpus};
use quell_sim::Job;

use crate::args::Replay;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::render;
use crate::render::table::time;
use noise::Noise;
use quell_request::Usage;
use quell_request::job::Defaults;
use quell_request::predict::scale;

/// Maximum number of attempts at a run that this machine's own noise disturbs.
const TRIES: u32 = 20;
/// Maximum length of a phase, in ns: Ctrl-C takes effect only between phases.
const LONGEST_QUANTUM_NS: f64 = 1e8;
/// The percentage of disturbed runs above which a warning is printed.
const MANY_DISTURBED: f64 = 1.0;

/// Emulates, and prints the result.
pub fn run(args: &Replay, printer: Printer) -> anyhow::Result<Outcome> {
    let mut options = options(args)?;
    let scale = scale(&options);
    let nodes: Vec<NodeNoise> =
        args.noise.iter().map(|path| quell_request::noise::open(path, scale)).collect::<Result<_, _>>()?;
    let noise = Noise::from_nodes(&nodes)?;
    let factor = noise.factor(args.scale, args.coverage);
    let plan = Plan {
        cpus: Cpus::from_this_machine()?.one_of_each_core_first(),
        quantum: options.quantum,
        scale: factor,
        tracks: noise.tracks()?,
        tries: TRIES,
    };
    check_scaled(&plan)?;
    let phases = options.phases;
    let jobs = jobs(&options)?;
    let mut emulation = document(args, &options, &nodes, &noise, &plan);
    if args.dry_run {
        return show(args, &emulation, printer);
    }
    let words = format!(
        "{} on {} CPUs, {} without this machine's own noise",
        expected(&jobs),
        plan.cpus.len(),
        time(emulation.expected_ns as f64)
    );
    let share = args.share.map(|share| share.0);
    let (measured, interrupted) = scales::run(&plan, &noise, &jobs, share, &words, printer)?;
    emulation.interrupted = interrupted;
    for (job, measured) in jobs.iter().zip(&measured) {
        options.ranks = vec![job.ranks];
        options.phases = measured.max_ns.len() as u64;
        if options.phases == 0 {
            continue;
        }
        let predicted = predict::predict(&nodes, &options, quell_analysis::NO_PROGRESS)?;
        // Chains that were cut short differ from those of a prediction with the same number of phases.
        let whole = args.share.is_none() && !interrupted;
        let slowdown = predicted.points.first().filter(|_| whole).map(|point| point.slowdown_percent);
        emulation.points.extend(emulation::point(job.ranks, plan.quantum.as_nanos(), measured, slowdown));
        take_warnings(&mut emulation.warnings, predicted.warnings);
    }
    emulation.warnings.extend(warnings(phases, &measured, interrupted));
    show(args, &emulation, printer)
}

fn show(args: &Replay, emulation: &Emulation, printer: Printer) -> anyhow::Result<Outcome> {
    if args.json {
        printer.json(emulation)?;
    } else {
        printer.result(&render::emulate::emulation(emulation))?;
    }
    Ok(Outcome::Done)
}

/// The prediction of the same phases, without confidence intervals.
fn options(args: &Replay) -> anyhow::Result<Options> {
    let refuse = |what: &str| Err(Usage(what.to_owned()).into());
    if args.overhead.is_some()
        || args.cpus.is_some()
        || args.baseline.is_some()
        || args.output.is_some()
        || !args.phase_at.is_empty()
    {
        return refuse(
            "--overhead, --cpus, --baseline, --phase-at and --output are for a command: leave them out with --emulate",
        );
    }
    Ok(Options { replicates: 0, ..args.job.options(&Defaults::for_emulation())? })
}

fn jobs(options: &Options) -> anyhow::Result<Vec<Job>> {
    let &Options { sync, phases, seed, .. } = options;
    let job = |&ranks| Job { ranks, phases, sync, seed };
    let jobs: Vec<Job> = options.ranks.iter().map(job).collect();
    for job in &jobs {
        job.check().map_err(|error| Usage(error.to_string()))?;
    }
    Ok(jobs)
}

/// The scaled work must be long enough to be divided into slices, and short enough for Ctrl-C.
fn check_scaled(plan: &Plan<'_>) -> Result<(), Usage> {
    let scaled = plan.scaled_quantum_ns();
    if scaled > LONGEST_QUANTUM_NS {
        return Err(Usage(format!(
            "at scale {} the quantum, and so a phase, takes {}: give a --scale of {:.6} or less",
            plan.scale,
            time(scaled),
            LONGEST_QUANTUM_NS / plan.quantum.as_nanos() as f64
        )));
    }
    if scaled >= SHORTEST_QUANTUM_NS as f64 {
        return Ok(());
    }
    Err(Usage(format!(
        "at scale {} the quantum is {}, too short to tell work from noise: give a --scale of {:.3} or more",
        plan.scale,
        time(scaled),
        SHORTEST_QUANTUM_NS as f64 / plan.quantum.as_nanos() as f64
    )))
}

fn document(
    args: &Replay,
    options: &Options,
    nodes: &[NodeNoise],
    noise: &Noise,
    plan: &Plan<'_>,
) -> Emulation {
    let runs: f64 = options.ranks.iter().map(|&ranks| ranks as f64 * options.phases as f64).sum();
    Emulation {
        schema: SCHEMA.to_owned(),
        quantum_ns: options.quantum.as_nanos(),
        sync: options.sync.into(),
        skew_ns: options.sync.skew().as_nanos(),
        drift_ppm: options.sync.drift_ppm(),
        phases: options.phases,
        seed: options.seed,
        scale: plan.scale,
        share: args.share.map(|share| share.0),
        noise: nodes.iter().map(NoiseSource::from_node).collect(),
        coverage_percent: noise.coverage_percent(plan.scale),
        machine: Machine {
            host: machine::host(),
            processor: machine::processor(),
            cpus: plan.cpus.iter().map(|cpu| cpu.0).collect(),
            clock: ClockKind::choose().0.name().to_owned(),
            limit_ns: plan.limit_ns().round() as u64,
            tries: plan.tries,
        },
        expected_ns: (runs * plan.scaled_quantum_ns() / plan.cpus.len().max(1) as f64) as u64,
        interrupted: false,
        points: Vec::new(),
        warnings: Vec::new(),
    }
}

fn expected(jobs: &[Job]) -> String {
    let scales = match jobs.len() {
        1 => "1 scale".to_owned(),
        more => format!("{more} scales"),
    };
    let runs: u64 = jobs.iter().map(|job| job.ranks.saturating_mul(job.phases)).fold(0, u64::saturating_add);
    format!("{scales}, {runs} phases of single ranks")
}

/// Adds the warnings of another prediction, each once.
fn take_warnings(all: &mut Vec<Warning>, new: Vec<Warning>) {
    for warning in new {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
}

fn warnings(phases: u64, measured: &[Measured], interrupted: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let runs: u64 = measured.iter().map(|one| one.own.runs).sum();
    let disturbed: u64 = measured.iter().map(|one| one.own.disturbed).sum();
    let percent = 100.0 * disturbed as f64 / runs.max(1) as f64;
    if percent > MANY_DISTURBED {
        warnings.push(Warning::RunsDisturbed { percent, tries: TRIES });
    }
    if interrupted {
        warnings.push(Warning::StoppedEarly);
    } else if measured.iter().any(|one| (one.max_ns.len() as u64) < phases) {
        warnings.push(Warning::PhasesUnrun);
    }
    warnings
}
