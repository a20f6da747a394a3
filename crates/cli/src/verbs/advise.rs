//! `quell advise`: which source costs how much at scale, and which mitigation to try.

mod candidates;
mod sweep;

use std::path::{Path, PathBuf};

use quell_analysis::advise::{Advice, Question, advise};
use quell_analysis::fleet::FleetJob;
use quell_analysis::predict::Options;
use quell_analysis::whatif::{Application, Job, Sourced};
use quell_request::predict;
use quell_request::show::recordings_in;
use quell_request::simulate::program;

pub use candidates::Remedies;

use super::tune::attempt::RANK_PHASES;
use super::{Outcome, advise_fleet};
use crate::args::Advise;
use crate::html::{self, Page};
use crate::plan::pattern::OpText;
use crate::plan::{Usage, network};
use crate::printer::Printer;
use crate::progress::Step;
use crate::sweep::Asked;
use crate::terminal_advise;
use quell_request::job::Defaults;
use quell_request::noise;
use quell_sim::SyncMode;

/// Predictions with messages are made some sixty times, each with a part of what one by itself may cost.
const THRIFT: u64 = 10;
/// Resampled runs behind each interval, unless traces are huge …
const REPLICATES: u64 = 40;
/// … and at least; fewer make no interval worth the name.
const FEWEST_REPLICATES: u64 = 6;
/// What all resampled runs of one prediction may rebuild, in parts of detours; advice makes some sixty predictions.
const EFFORT: u64 = 8_000_000;

/// Advises on one machine's nodes, or on a folder of many.
pub fn run(args: &Advise, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.sweep {
        let asked = Asked { file, args: &args.sweeping, threads: args.threads, json: args.json };
        return crate::sweep::run(sweep::CostsOfSources::new(), asked, printer);
    }
    args.sweeping.refuse()?;
    if args.net.net == Some(network::NetText::Help) {
        printer.result(&network::help())?;
        return Ok(Outcome::Done);
    }
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    if let [folder] = args.recordings.as_slice() {
        let paths = recordings_in(folder)?;
        if !paths.is_empty() {
            return of_many(args, folder, &paths, printer);
        }
    }
    let (nodes, hosts): (Vec<Sourced>, Vec<_>) = nodes(args)?.into_iter().unzip();
    let remedies = Remedies::look(&args.machine, args.cpus.as_ref(), &hosts)?;
    let document = match &args.goal {
        None => {
            let options = options(args)?;
            of(&nodes, &Job::Phases(options), &remedies, args.sources as usize, printer)?
        }
        Some(path) => {
            let (schedule, format) = program::read(path, &mut |text| printer.warn(text))?;
            let source = program::Source { path: path.clone(), format };
            if let Some(errors) = program::errors(&schedule, &source)? {
                anyhow::bail!("{}: {errors}", path.display());
            }
            let (net, _) = network::of(&args.net, None)?;
            let application = Application { schedule: &schedule, net, seed: args.job.seed, runs: args.runs };
            of(&nodes, &Job::Schedule(application), &remedies, args.sources as usize, printer)?
        }
    };
    if let Some(path) = &args.html {
        let title = document.nodes.first().map_or("advice", |node| node.name.as_str());
        html::write(path, &Page { advice: Some(&document), ..Page::new(title) })?;
        printer.say(&format!("wrote {}", path.display()));
    }
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&terminal_advise::text(&document))?;
    }
    Ok(Outcome::Done)
}

/// Advises with a progress bar.
pub fn of(
    nodes: &[Sourced],
    job: &Job<'_>,
    remedies: &Remedies,
    most_sources: usize,
    printer: Printer,
) -> anyhow::Result<Advice> {
    let step = Step::long(printer, "advise", Some(100));
    let parts: u64 = nodes.iter().map(Sourced::parts).sum();
    let job = match job {
        Job::Phases(options) => {
            let affordable = (EFFORT / parts.max(1)).clamp(FEWEST_REPLICATES, REPLICATES);
            Job::Phases(Options { replicates: options.replicates.min(affordable), ..options.clone() })
        }
        Job::Schedule(application) => Job::Schedule(*application),
    };
    let (candidates, compute) = (&remedies.candidates[..], &remedies.compute[..]);
    let question = Question { nodes, job: &job, candidates, compute, most_sources };
    let mut advice = advise(&question, &|done, all| step.set(done, all)).map_err(predict::explained)?;
    advice.warnings.extend(remedies.warnings.iter().cloned());
    Ok(advice)
}

/// A folder of many nodes: which are unlike the rest, and what they cost together.
fn of_many(args: &Advise, folder: &Path, paths: &[PathBuf], printer: Printer) -> anyhow::Result<Outcome> {
    let plain = args.op == OpText::Max && args.job.sync_mode()? == SyncMode::None;
    if !plain || args.goal.is_some() || args.html.is_some() {
        let text = "a folder of many nodes is held against phases that wait for the slowest of unsynchronised ranks: leave --op, --sync, \
                    --goal and --html out, or name one recording";
        return Err(Usage(text.into()).into());
    }
    let Options { quantum, seed, .. } = args.job.options(&Defaults::of_advice())?;
    let ranks = args.job.ranks.as_ref().map(|list| list.0.clone()).unwrap_or_default();
    let job = FleetJob { ranks, quantum, seed };
    advise_fleet::run(folder, paths, job, args.json, printer)
}

fn options(args: &Advise) -> anyhow::Result<Options> {
    let network = predict::message_op(&args.op, args.bytes, &args.net)?;
    let job = args.job.options(&Defaults::of_advice())?;
    Ok(Options {
        quantum: job.quantum,
        sync: job.sync,
        phases: job.phases,
        seed: job.seed,
        network,
        ..of_advice(job.ranks)
    })
}

/// Options with as many resampled runs as advice has time for.
pub fn of_advice(ranks: Vec<u64>) -> Options {
    Options { replicates: REPLICATES, rank_phases: RANK_PHASES, thrift: THRIFT, ..Options::new(ranks) }
}

fn nodes(args: &Advise) -> anyhow::Result<Vec<(Sourced, Option<String>)>> {
    let scale = predict::scale(&args.job.options(&Defaults::of_advice())?);
    let all = args.recordings.iter().chain(&args.noise);
    all.map(|path| noise::sourced(path, scale)).collect()
}
