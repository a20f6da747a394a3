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
use quell_sim::loggops::{self, Culprits, Net, Noise, Outcome, Program, Rules, Run, Stuck};
use quell_sim::pattern::Params;

pub use self::args::SimulateArgs;
use self::document::{SCHEMA, Simulation, StuckFacts};
use self::program::{Playable, Source};
use crate::pattern::Named;
use crate::{Usage, network};
use quell_analysis::Progress;
use quell_analysis::predict::NetFacts;
use quell_analysis::whatif::culprits::CulpritFacts;

/// The network, and its preset's name. All messages of a pattern count as of its size; those of a schedule have many.
///
/// # Errors
/// [`Usage`] for a file that holds no network.
pub fn network(args: &SimulateArgs) -> Result<(Net, Option<String>), Usage> {
    let bytes = || args.parameters.bytes.map_or_else(|| Params::default().bytes, |size| size.0);
    network::of(&args.net, args.pattern.is_some().then(bytes))
}

/// What is played, in words.
#[derive(Debug)]
pub struct About<'a> {
    /// The file or the pattern.
    pub name: String,
    parameters: Option<BTreeMap<String, String>>,
    schedule: Option<(&'a Schedule, &'a Source)>,
}

impl<'a> About<'a> {
    /// A schedule.
    pub fn schedule(schedule: &'a Schedule, source: &'a Source) -> Self {
        Self { name: source.path.display().to_string(), parameters: None, schedule: Some((schedule, source)) }
    }

    /// A pattern.
    pub fn pattern(named: &Named) -> Self {
        Self { name: named.name.clone(), parameters: Some(named.parameters.clone()), schedule: None }
    }
}

/// A program that was played.
#[derive(Debug)]
pub struct Played {
    /// The document; of a program that does not end, with what was left over.
    pub simulation: Simulation,
    /// How it went, and under which noise; `None` where a look was enough to see that it does not end.
    pub run: Option<(Outcome, Noise)>,
    /// Why it does not end.
    pub failure: Option<String>,
}

/// Plays what was requested. `warn` is told what is odd about its file.
///
/// # Errors
/// As [`play`].
pub fn simulate(
    args: &SimulateArgs,
    warn: &mut dyn FnMut(&str),
    progress: Progress<'_>,
) -> anyhow::Result<Played> {
    network::refuse_help(&args.net)?;
    match program::of(args, warn)? {
        Playable::Schedule(schedule, source) => {
            play(&schedule, &About::schedule(&schedule, &source), args, progress)
        }
        Playable::Pattern(named) => play(&named.steps, &About::pattern(&named), args, progress),
    }
}

/// Plays a program. `progress` is told how many of how many events are done; of 0 where that is not known.
///
/// # Errors
/// For noise that cannot be had or does not fit, and where `progress` stops it. A program that does not end is no error here.
pub fn play<P: Program>(
    program: &P,
    about: &About<'_>,
    args: &SimulateArgs,
    progress: Progress<'_>,
) -> anyhow::Result<Played> {
    let (net, preset) = network(args)?;
    let mut simulation = begin(program, about, args, NetFacts::of(&net, preset.as_deref()));
    // LogGOPSim looks at nothing before it runs.
    let looked_at = about.schedule.filter(|_| noise::rules(args) == Rules::Physical);
    let errors = looked_at.map(|(schedule, source)| program::errors(schedule, source)).transpose()?;
    if let Some(errors) = errors.flatten() {
        let failure = Some(errors.to_string());
        simulation.warnings = vec![errors];
        return Ok(Played { simulation, run: None, failure });
    }
    let given = noise::of(args, program.ranks())?;
    simulation.noise = given.facts;
    simulation.warnings = given.warnings;
    let part = Part { net, all: events(program, args), before: 0, progress };
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

/// LogGOPSim's events, one for each operation and one for each message, of all runs; 0 if nobody knows.
fn events<P: Program>(program: &P, args: &SimulateArgs) -> u64 {
    let events = program.totals().map(|(operations, sends)| operations.saturating_add(sends));
    events.unwrap_or(0).saturating_mul(if args.baseline { 2 } else { 1 })
}

/// A run's place in the whole.
#[derive(Clone, Copy)]
struct Part<'a> {
    net: Net,
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

/// The document before the run.
fn begin<P: Program>(program: &P, about: &About<'_>, args: &SimulateArgs, net: NetFacts) -> Simulation {
    Simulation {
        schema: SCHEMA.to_owned(),
        program: about.name.clone(),
        parameters: about.parameters.clone(),
        rules: noise::rules(args).into(),
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
        net: part.net,
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

/// What was left over, with its places in the text where there is one.
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
