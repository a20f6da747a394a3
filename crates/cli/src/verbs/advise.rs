//! `quell advise`: what each source costs at scale, and which mitigation to try.

mod fleet;
mod sweep;

use std::path::{Path, PathBuf};

use quell_analysis::advise::{Advice, LeaveChoice, Leaving};
use quell_analysis::fleet::FleetJob;
use quell_analysis::predict::Options;
use quell_analysis::whatif::{Application, AttributedNoise, Job};
use quell_page::{Page, Part};
use quell_request::predict;
use quell_request::show::{are_of_one_node, recordings_in};
use quell_request::simulate::program;

use crate::args::Advise;
use crate::html;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::render;
use crate::steps::advise::{build, options_for};
use crate::steps::remedies::Remedies;
use crate::steps::{audit, export_files};
use crate::sweep::Request;
use quell_request::job::Defaults;
use quell_request::noise;
use quell_request::pattern::OpText;
use quell_request::{Usage, network, threads};
use quell_sim::SyncMode;
use quell_tune::export::bindings;
use quell_tune::facts::{Facts, Parts};

/// Advises on the nodes of one machine, or on a folder of many nodes.
pub fn run(args: &Advise, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.sweep {
        let request = Request { file, args: &args.sweeping, threads: args.threads, json: args.json };
        return crate::sweep::run(sweep::CostsOfSources::new(), request, printer);
    }
    args.sweeping.refuse()?;
    if args.net.net == Some(network::NetText::Help) {
        printer.result(&network::help())?;
        return Ok(Outcome::Done);
    }
    threads::share(args.threads);
    let default = Leaving::default();
    let counts = args.leave.as_ref().map_or(default.counts, |list| list.0.clone());
    let leave = Leaving { counts, ranks_per_node: args.ranks_per_node };
    let mut recordings = args.recordings.clone();
    if let [folder] = args.recordings.as_slice() {
        let paths = recordings_in(folder)?;
        let of_one_job = args.leave.is_some() || args.ranks_per_node.is_some() || args.binding.is_some();
        if !paths.is_empty() && !of_one_job && !are_of_one_node(&paths) {
            return advise_fleet(args, folder, &paths, printer);
        }
        if !paths.is_empty() {
            recordings = paths;
        }
    }
    let nodes = nodes(args, &recordings)?;
    let hosts: Vec<_> = nodes.iter().map(|node| Some(node.origin.as_ref()?.host.clone())).collect();
    let remedies = Remedies::look(&args.machine, args.cpus.as_ref(), &hosts)?;
    let document = match &args.goal {
        None => {
            let options = options(args)?;
            build(&nodes, &Job::Phases(options), &remedies, (args.sources as usize, leave), printer)?
        }
        Some(path) => {
            let (schedule, format) = program::read(path, args.threads, &mut |text| printer.warn(text))?;
            let source = program::Source { path: path.clone(), format };
            if let Some(errors) = program::errors(&schedule, &source)? {
                anyhow::bail!("{}: {errors}", path.display());
            }
            let net = network::from_args(&args.net, network::DEFAULT)?;
            let application =
                Application { schedule: &schedule, net: &net, seed: args.job.seed, runs: args.runs };
            build(&nodes, &Job::Schedule(application), &remedies, (args.sources as usize, leave), printer)?
        }
    };
    if let Some(path) = &args.html {
        let title = document.nodes.first().map_or("advice", |node| node.name.as_str());
        html::write(path, &Page::new(title).with(Part::Advice, &document)?)?;
        printer.status(&format!("wrote {}", path.display()));
    }
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&render::advise::text(&document))?;
    }
    if let Some(folder) = &args.binding {
        bind(&document, args, folder, printer)?;
    }
    Ok(Outcome::Done)
}

/// Writes the binding of the best number of CPUs that are left to the system.
fn bind(advice: &Advice, args: &Advise, folder: &Path, printer: Printer) -> anyhow::Result<()> {
    let Some(leave) = &advice.leave else {
        anyhow::bail!(
            "--binding: there is nothing to choose from: these nodes have one CPU or differ in size, no number of ranks fills them, or --leave names no number from 1 to one less than their CPUs"
        );
    };
    let best = leave.choices.iter().find(|choice| choice.left == leave.best);
    // What is recommended may leave CPUs itself, and is one answer with the binding.
    let recommended = advice.best.as_ref().and_then(|best| best.on_cpus.as_ref());
    let cpus = match (recommended, best) {
        (Some(cpus), _) | (None, Some(LeaveChoice { on_cpus: Some(cpus), .. })) => cpus,
        (None, Some(_)) => anyhow::bail!("--binding: the CPUs of the nodes have different numbers"),
        (None, None) => {
            anyhow::bail!("--binding: leaving no CPU to the system is best here, so ranks need no binding")
        }
    };
    let root = audit::root(args.machine.sysroot.as_deref())?;
    let facts = Facts::look(&root).map_err(anyhow::Error::msg)?;
    let cpus = quell_recording::parse_cpu_list(cpus).map_err(Usage)?;
    let parts = Parts::choose(&facts, Some(&cpus)).map_err(Usage)?;
    let ranks = leave.ranks_per_node.min(cpus.len() as u64);
    let export = bindings(&facts, &parts, u32::try_from(ranks).ok());
    export_files::write(&export, folder, printer)
}

/// A folder of many nodes: which are outliers, and what the nodes cost together.
fn advise_fleet(
    args: &Advise,
    folder: &Path,
    paths: &[PathBuf],
    printer: Printer,
) -> anyhow::Result<Outcome> {
    let plain = args.messages.op == OpText::Max && args.job.sync_mode()? == SyncMode::None;
    if !plain || args.goal.is_some() {
        let text = "a folder of many nodes is evaluated only for phases that wait for the slowest of unsynchronised ranks: leave --op, --sync \
                    and --goal out, or name one recording";
        return Err(Usage(text.into()).into());
    }
    let Options { quantum, seed, .. } = args.job.options(&Defaults::for_advice())?;
    let ranks = args.job.ranks.as_ref().map(|list| list.0.clone()).unwrap_or_default();
    let job = FleetJob { ranks, quantum, seed };
    fleet::run(folder, paths, job, fleet::Output { html: args.html.as_deref(), json: args.json }, printer)
}

fn options(args: &Advise) -> anyhow::Result<Options> {
    let messages = args.messages.messages(&args.net)?;
    let job = args.job.options(&Defaults::for_advice())?;
    Ok(Options {
        quantum: job.quantum,
        sync: job.sync,
        phases: job.phases,
        seed: job.seed,
        messages,
        ..options_for(job.ranks)
    })
}

fn nodes(args: &Advise, recordings: &[PathBuf]) -> anyhow::Result<Vec<AttributedNoise>> {
    let scale = predict::scale(&args.job.options(&Defaults::for_advice())?);
    let all = recordings.iter().chain(&args.noise);
    all.map(|path| noise::attributed(path, scale)).collect()
}
