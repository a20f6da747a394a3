//! `simulate`: a schedule or a pattern under LogGOPS and noise.

pub mod args;
pub mod culprits;
pub mod document;
pub mod noise;
mod noise_trace;
pub mod program;
pub mod stuck;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::Context as _;
use quell_sim::goal::{self, Format, Schedule};
use quell_sim::loggops::{self, Culprits, NamedNetwork, Noise, Outcome, Program, Rules, Run, Stuck};

pub use self::args::SimulateArgs;
use self::document::{SCHEMA, Simulation, StuckFacts};
use self::program::{Playable, Source};
use crate::pattern::Named;
use crate::{Usage, network};
use quell_analysis::Progress;
use quell_analysis::whatif::culprits::CulpritFacts;

/// The network, and the name of its preset. Without another, a schedule is played on the network it was traced on, except by LogGOPSim's
/// rules.
///
/// # Errors
/// [`Usage`] for a file that holds no network.
pub fn network(args: &SimulateArgs) -> Result<NamedNetwork, Usage> {
    match &args.schedule {
        Some(schedule) if noise::rules(args) != Rules::Compatible => {
            network::for_schedule(&args.net, schedule)
        }
        _ if args.compat => network::from_args(&args.net, network::LOGGOPSIM),
        _ => network::from_args(&args.net, network::DEFAULT),
    }
}

/// The name and the parameters of the program, for the document.
#[derive(Debug)]
pub struct About<'a> {
    /// The name of the file or the pattern.
    pub name: String,
    parameters: Option<BTreeMap<String, String>>,
    schedule: Option<(&'a Schedule, &'a Source)>,
}

impl<'a> About<'a> {
    /// Describes a schedule.
    pub fn schedule(schedule: &'a Schedule, source: &'a Source) -> Self {
        Self { name: source.path.display().to_string(), parameters: None, schedule: Some((schedule, source)) }
    }

    /// Describes a pattern.
    pub fn pattern(named: &Named) -> Self {
        Self { name: named.name.clone(), parameters: Some(named.parameters.clone()), schedule: None }
    }
}

/// The result of a simulation.
#[derive(Debug)]
pub struct Played {
    /// The document; if the program does not finish, it lists what remained.
    pub simulation: Simulation,
    /// The outcome and the noise; `None` if a check before the run found that the program cannot finish.
    pub run: Option<(Outcome, Noise)>,
    /// Why the program does not finish.
    pub failure: Option<String>,
}

/// Simulates the requested program. `warn` receives a message for each oddity of its file.
///
/// # Errors
/// As for [`play`].
pub fn simulate(
    args: &SimulateArgs,
    warn: &mut dyn FnMut(&str),
    progress: Progress<'_>,
) -> anyhow::Result<Played> {
    network::refuse_help(&args.net)?;
    match program::from_args(args, warn)? {
        Playable::Schedule(schedule, source) => {
            play(&schedule, &About::schedule(&schedule, &source), args, progress)
        }
        Playable::Pattern(named) => play(&named.steps, &About::pattern(&named), args, progress),
    }
}

/// Simulates a program. `progress` receives the number of finished events and the total, which is 0 if it is not known.
///
/// # Errors
/// If the noise cannot be loaded or is unsuitable, and if `progress` stops the run. A program that does not finish is no error here.
pub fn play<P: Program>(
    program: &P,
    about: &About<'_>,
    args: &SimulateArgs,
    progress: Progress<'_>,
) -> anyhow::Result<Played> {
    let net = network(args)?;
    let mut simulation = begin(program, about, args, net.clone());
    // LogGOPSim does not check a schedule before it runs it.
    let looked_at = about.schedule.filter(|_| noise::rules(args) != Rules::Compatible);
    let errors = looked_at.map(|(schedule, source)| program::errors(schedule, source)).transpose()?;
    if let Some(errors) = errors.flatten() {
        let failure = Some(errors.to_string());
        simulation.warnings = vec![errors];
        return Ok(Played { simulation, run: None, failure });
    }
    let given = noise::from_args(args, program.ranks())?;
    simulation.noise = given.facts;
    simulation.warnings = given.warnings;
    let part = Part { net: &net, all: events(program, args), before: 0, progress };
    let (outcome, culprits) = run_with(program, &given.noise, args, args.culprits, &part)?;
    simulation.finish(&outcome, args.all_times);
    if let Some(stuck) = &outcome.stuck {
        let facts = explain(stuck, about.schedule.map(|(_, source)| source))?;
        let failure = Some(stuck::message(&facts));
        simulation.stuck = Some(facts);
        return Ok(Played { simulation, run: Some((outcome, given.noise)), failure });
    }
    if let Some(culprits) = culprits {
        let clocks = culprits::clocks(args, program.ranks())?;
        let per_rank = simulation.finish_times_ns.is_some();
        simulation.culprits = Some(CulpritFacts::new(&culprits, &outcome, &clocks, per_rank));
    }
    if args.baseline {
        let part = Part { before: part.all / 2, ..part };
        simulation.compare(&run_with(program, &Noise::None, args, false, &part)?.0);
    }
    Ok(Played { simulation, run: Some((outcome, given.noise)), failure: None })
}

/// The number of LogGOPSim's events of all runs, one per operation and one per message; 0 if it is not known.
fn events<P: Program>(program: &P, args: &SimulateArgs) -> u64 {
    let events = program.totals().map(|(operations, sends)| operations.saturating_add(sends));
    events.unwrap_or(0).saturating_mul(if args.baseline { 2 } else { 1 })
}

/// One run's share of the total progress.
#[derive(Clone, Copy)]
struct Part<'a> {
    net: &'a NamedNetwork,
    all: u64,
    before: u64,
    progress: Progress<'a>,
}

impl Part<'_> {
    fn reach(&self, done: u64) -> ControlFlow<()> {
        let done = self.before.saturating_add(done);
        (self.progress)(if self.all > 0 { done.min(self.all) } else { done }, self.all)
    }
}

/// The document before the run, with empty results.
fn begin<P: Program>(program: &P, about: &About<'_>, args: &SimulateArgs, net: NamedNetwork) -> Simulation {
    Simulation {
        schema: SCHEMA.to_owned(),
        program: about.name.clone(),
        parameters: about.parameters.clone(),
        rules: noise::rules(args).into(),
        progress: (!args.compat).then(|| noise::rules(args).into()),
        net,
        seed: args.seed,
        ranks: program.ranks(),
        events: 0,
        finished: false,
        max_ns: None,
        max_rank: None,
        finish_times_ns: None,
        finish_quantiles_ns: None,
        noise: None,
        baseline: None,
        culprits: None,
        stuck: None,
        warnings: Vec::new(),
    }
}

fn run_with<P: Program>(
    program: &P,
    noise: &Noise,
    args: &SimulateArgs,
    culprits: bool,
    part: &Part<'_>,
) -> anyhow::Result<(Outcome, Option<Culprits>)> {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    let run = Run {
        net: part.net.network,
        ranges: &part.net.ranges,
        levels: &part.net.levels,
        rules: noise::rules(args),
        noise,
        threads: args.threads.map_or_else(all, usize::from),
        progress: &|done| part.reach(done),
    };
    if culprits {
        let (outcome, culprits) = loggops::run_for_culprits(program, &run)?;
        return Ok((outcome, Some(culprits)));
    }
    Ok((loggops::run(program, &run)?, None))
}

/// What remained of a program that did not finish, with its positions in the GOAL text, if there is one.
fn explain(stuck: &Stuck, source: Option<&Source>) -> anyhow::Result<StuckFacts> {
    let places = match source {
        Some(Source { path, format: Format::Text }) => {
            let (_, input) = program::open(path)?;
            goal::locate(input, &stuck::operations(stuck)).with_context(|| path.display().to_string())?
        }
        _ => Vec::new(),
    };
    Ok(stuck::facts(stuck, &places))
}
