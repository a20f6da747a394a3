//! `quell simulate`: a schedule or a pattern under LogGOPS and noise.

mod culprits;
pub mod document;
mod noise;
mod noise_trace;
pub mod program;
mod stuck;
mod sweep;
mod timeline;

use std::collections::BTreeMap;

use anyhow::Context as _;
use quell_analysis::culprits::CulpritFacts;
use quell_analysis::predict::NetFacts;
use quell_sim::goal::{self, Format, Schedule};
use quell_sim::loggops::{self, Culprits, Net, Noise, Outcome as Played, Program, Rules, Run, Stuck};
use quell_sim::pattern::Params;

use self::document::{SCHEMA, Simulation, StuckFacts};
use self::program::{Playable, Source};
use super::Outcome;
use crate::args::Simulate;
use crate::plan::net::{self, NetText};
use crate::printer::Printer;
use crate::progress::Step;
use crate::sweep::Asked;
use crate::terminal_simulate;

/// Plays the program and says when its ranks are done.
pub fn run(args: &Simulate, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.sweep {
        let asked = Asked { file, args: &args.sweeping, threads: args.threads, json: args.json };
        return crate::sweep::run(sweep::Runs::new(), asked, printer);
    }
    args.sweeping.refuse()?;
    if args.net.net == Some(NetText::Help) {
        printer.result(&net::help())?;
        return Ok(Outcome::Done);
    }
    timeline::refuse(args)?;
    match program::of(args, printer)? {
        Playable::Schedule(schedule, source) => {
            let about =
                About { name: source.path.display().to_string(), parameters: None, source: Some(&source) };
            refuse_errors(&schedule, &about, args, printer)?;
            play(&schedule, &about, args, printer)
        }
        Playable::Pattern(named) => {
            let about = About { name: named.name, parameters: Some(named.parameters), source: None };
            play(&named.steps, &about, args, printer)
        }
    }
}

/// The network, and its preset's name. All messages of a pattern count as of its size; those of a schedule have many.
fn network(args: &Simulate) -> (Net, Option<String>) {
    let bytes = || args.parameters.bytes.map_or_else(|| Params::default().bytes, |size| size.0);
    net::of(&args.net, args.pattern.is_some().then(bytes))
}

/// What is played, in words.
struct About<'a> {
    name: String,
    parameters: Option<BTreeMap<String, String>>,
    source: Option<&'a Source>,
}

/// Stops before a run that cannot end. LogGOPSim looks at nothing before it runs.
fn refuse_errors(
    schedule: &Schedule,
    about: &About<'_>,
    args: &Simulate,
    printer: Printer,
) -> anyhow::Result<()> {
    let Some(source) = about.source.filter(|_| noise::rules(args) == Rules::Physical) else { return Ok(()) };
    let Some(errors) = program::errors(schedule, source)? else { return Ok(()) };
    if args.json {
        let simulation = Simulation { warnings: vec![errors.clone()], ..begin(schedule, about, args) };
        printer.json(&simulation)?;
    }
    Err(anyhow::anyhow!(errors))
}

fn play<P: Program>(
    program: &P,
    about: &About<'_>,
    args: &Simulate,
    printer: Printer,
) -> anyhow::Result<Outcome> {
    let given = noise::of(args, program.ranks())?;
    let mut simulation = begin(program, about, args);
    simulation.noise = given.facts;
    simulation.warnings = given.warnings;
    let (outcome, culprits) = run_with(program, &given.noise, args, args.culprits, ("simulate", printer))?;
    simulation.finish(&outcome, args.all_times);
    let draw = || timeline::draw(program, &given.noise, args, (&about.name, outcome.last().0), printer);
    if let Some(stuck) = &outcome.stuck {
        let facts = explain(stuck, about.source)?;
        let error = anyhow::anyhow!(stuck::message(&facts));
        simulation.stuck = Some(facts);
        if args.json {
            printer.json(&simulation)?;
        }
        draw().unwrap_or_else(|failed| printer.warn(&format!("{failed:#}")));
        return Err(error);
    }
    if let Some(culprits) = culprits {
        let clocks = culprits::clocks(args, program.ranks())?;
        let per_rank = simulation.finish_times_ns.is_some();
        simulation.culprits = Some(CulpritFacts::new(&culprits, &outcome, &clocks, per_rank));
    }
    if args.baseline {
        simulation.compare(&run_with(program, &Noise::None, args, false, ("baseline", printer))?.0);
    }
    match args.json {
        true => printer.json(&simulation)?,
        false => printer.result(&terminal_simulate::simulation(&simulation, &outcome))?,
    }
    draw()?;
    Ok(Outcome::Done)
}

/// The document before the run.
fn begin<P: Program>(program: &P, about: &About<'_>, args: &Simulate) -> Simulation {
    let (net, preset) = network(args);
    Simulation {
        schema: SCHEMA.to_owned(),
        program: about.name.clone(),
        parameters: about.parameters.clone(),
        rules: noise::rules(args).into(),
        net: NetFacts::of(&net, preset.as_deref()),
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
    args: &Simulate,
    culprits: bool,
    (what, printer): (&'static str, Printer),
) -> anyhow::Result<(Played, Option<Culprits>)> {
    // LogGOPSim's events: one for each operation, and one for each message.
    let events = program.totals().map(|(operations, sends)| operations.saturating_add(sends));
    let step = Step::long(printer, what, events);
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    let run = Run {
        net: network(args).0,
        rules: noise::rules(args),
        noise,
        threads: args.threads.map_or_else(all, usize::from),
        progress: &|done| step.reach(done),
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
