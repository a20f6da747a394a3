//! `simulate`: a schedule or a pattern under LogGOPS and noise.

pub mod culprits;
pub mod document;
pub mod noise;
mod noise_trace;
pub mod program;
pub mod stuck;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use quell_recording::Nanos;
use quell_sim::goal::{self, Format, Schedule};
use quell_sim::loggops::{self, Culprits, Net, Noise, Outcome, Program, Rules, Run, Stuck};
use quell_sim::pattern::Params;

use self::document::{SCHEMA, Simulation, StuckFacts};
use self::program::{Playable, Source};
use super::WhatIf;
use super::net::{self, NetArgs};
use super::pattern::{Named, PatternArgs};
use crate::Progress;
use crate::culprits::CulpritFacts;
use crate::predict::NetFacts;

/// What is to be simulated.
#[derive(Debug, Args)]
pub struct Asked {
    /// The schedule to play: GOAL as text, or LogGOPSim's binary form of it; its content tells which.
    #[arg(value_name = "F.goal|F.bin", conflicts_with = "pattern")]
    pub schedule: Option<PathBuf>,
    /// A named pattern in place of a schedule; `quell goal list` names them.
    #[arg(long, value_name = "NAME")]
    pub pattern: Option<String>,
    /// Play by LogGOPSim's rules, nanosecond for nanosecond, its noise too. Without it by rules that hold on machines.
    #[arg(long)]
    pub compat: bool,
    /// Noise: a recording, a netgauge or CSV file, or a model in TOML. Several make the nodes of one machine in turn.
    #[arg(long, value_name = "FILE")]
    pub noise: Vec<PathBuf>,
    /// Where in the noise each rank begins: a file with one number of ns a line, rank 0 first. The noise is then one CPU's.
    #[arg(long, value_name = "FILE", requires = "noise", conflicts_with_all = ["cosched", "skew"])]
    pub offsets: Option<PathBuf>,
    /// All nodes begin at one place in the noise, not each at its own.
    #[arg(long, requires = "noise")]
    pub cosched: bool,
    /// As --cosched, but each node later by up to this much.
    #[arg(long, value_name = "TIME", requires = "noise")]
    pub skew: Option<Nanos>,
    /// Run it without noise too, and say what the noise costs.
    #[arg(long, requires = "noise")]
    pub baseline: bool,
    /// Say which noise made the program late: the detours on its critical path, by source, and what was absorbed.
    #[arg(long, requires = "noise", conflicts_with = "compat")]
    pub culprits: bool,
    /// Seed of the places in the noise; equal seeds give equal results.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads to use; all cores if not given. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Times of every rank in the JSON document, above 4,096 ranks too.
    #[arg(long)]
    pub all_times: bool,
    /// The network.
    #[command(flatten)]
    pub net: NetArgs,
    /// The noise otherwise than it was recorded.
    #[command(flatten)]
    pub what_if: WhatIf,
    /// The pattern's parameters.
    #[command(flatten)]
    pub parameters: PatternArgs,
}

/// The network, and its preset's name. All messages of a pattern count as of its size; those of a schedule have many.
pub fn network(asked: &Asked) -> (Net, Option<String>) {
    let bytes = || asked.parameters.bytes.map_or_else(|| Params::default().bytes, |size| size.0);
    net::of(&asked.net, asked.pattern.is_some().then(bytes))
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

/// Plays what was asked for. `warn` is told what is odd about its file.
///
/// # Errors
/// As [`play`].
pub fn simulate(asked: &Asked, warn: &mut dyn FnMut(&str), progress: Progress<'_>) -> anyhow::Result<Played> {
    net::refuse_help(&asked.net)?;
    match program::of(asked, warn)? {
        Playable::Schedule(schedule, source) => {
            play(&schedule, &About::schedule(&schedule, &source), asked, progress)
        }
        Playable::Pattern(named) => play(&named.steps, &About::pattern(&named), asked, progress),
    }
}

/// Plays a program. `progress` is told how many of how many events are done; of 0 where that is not known.
///
/// # Errors
/// For noise that cannot be had or does not fit, and where `progress` stops it. A program that does not end is no error here.
pub fn play<P: Program>(
    program: &P,
    about: &About<'_>,
    asked: &Asked,
    progress: Progress<'_>,
) -> anyhow::Result<Played> {
    let mut simulation = begin(program, about, asked);
    // LogGOPSim looks at nothing before it runs.
    let looked_at = about.schedule.filter(|_| noise::rules(asked) == Rules::Physical);
    let errors = looked_at.map(|(schedule, source)| program::errors(schedule, source)).transpose()?;
    if let Some(errors) = errors.flatten() {
        simulation.warnings = vec![errors.clone()];
        return Ok(Played { simulation, run: None, failure: Some(errors) });
    }
    let given = noise::of(asked, program.ranks())?;
    simulation.noise = given.facts;
    simulation.warnings = given.warnings;
    let part = Part { all: events(program, asked), before: 0, progress };
    let (outcome, culprits) = run_with(program, &given.noise, asked, asked.culprits, &part)?;
    simulation.finish(&outcome, asked.all_times);
    if let Some(stuck) = &outcome.stuck {
        let facts = explain(stuck, about.schedule.map(|(_, source)| source))?;
        let failure = Some(stuck::message(&facts));
        simulation.stuck = Some(facts);
        return Ok(Played { simulation, run: Some((outcome, given.noise)), failure });
    }
    if let Some(culprits) = culprits {
        let clocks = culprits::clocks(asked, program.ranks())?;
        let per_rank = simulation.finish_times_ns.is_some();
        simulation.culprits = Some(CulpritFacts::new(&culprits, &outcome, &clocks, per_rank));
    }
    if asked.baseline {
        let part = Part { before: part.all / 2, ..part };
        simulation.compare(&run_with(program, &Noise::None, asked, false, &part)?.0);
    }
    Ok(Played { simulation, run: Some((outcome, given.noise)), failure: None })
}

/// LogGOPSim's events, one for each operation and one for each message, of all runs; 0 if nobody knows.
fn events<P: Program>(program: &P, asked: &Asked) -> u64 {
    let events = program.totals().map(|(operations, sends)| operations.saturating_add(sends));
    events.unwrap_or(0).saturating_mul(if asked.baseline { 2 } else { 1 })
}

/// A run's place in the whole.
struct Part<'a> {
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
fn begin<P: Program>(program: &P, about: &About<'_>, asked: &Asked) -> Simulation {
    let (net, preset) = network(asked);
    Simulation {
        schema: SCHEMA.to_owned(),
        program: about.name.clone(),
        parameters: about.parameters.clone(),
        rules: noise::rules(asked).into(),
        net: NetFacts::of(&net, preset.as_deref()),
        seed: asked.seed,
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
    asked: &Asked,
    culprits: bool,
    part: &Part<'_>,
) -> anyhow::Result<(Outcome, Option<Culprits>)> {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    let run = Run {
        net: network(asked).0,
        rules: noise::rules(asked),
        noise,
        threads: asked.threads.map_or_else(all, usize::from),
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
