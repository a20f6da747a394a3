//! The results of a benchmark's runs, computed after the runs, or later from their folder.

use std::path::Path;

use anyhow::Context as _;
use quell_analysis::Warning;
use quell_analysis::bench::allreduce::{self, Allreduce};
use quell_analysis::bench::bsp::{self, Bsp};
use quell_analysis::bench::fwq::{self, Fwq, RankSide};
use quell_analysis::bench::halo::{self, Halo, Rounds};
use quell_analysis::bench::job::{HostRun, Job, RunFacts, crowded};
use quell_analysis::bench::loggp;
use quell_analysis::predict::Prediction;

use super::collect;
use super::run::{LOGGP, PREDICTION, Run};
use crate::printer::Printer;
use crate::render;

/// The result of all runs of one command.
#[derive(Debug)]
pub enum Document {
    Bsp(Vec<Bsp>),
    Allreduce(Allreduce),
    Halo(Halo),
    Fwq(Vec<Fwq>),
    Loggp(loggp::Document),
}

/// The document of all runs of one command. Runs that finished no phase are left out, unless all of them are such.
pub fn build(runs: &[Run], seed: u64) -> anyhow::Result<Document> {
    if let Some(run) = runs.first().filter(|run| run.facts.bench == LOGGP) {
        return Ok(Document::Loggp(build_loggp(run)?));
    }
    let whole: Vec<(&Run, Job)> = runs.iter().filter_map(|run| Some((run, run.job().ok()?))).collect();
    let Some((first, _)) = whole.first() else {
        return Err(runs
            .iter()
            .find_map(|run| run.job().err())
            .unwrap_or_else(|| anyhow::anyhow!("nothing ran")));
    };
    Ok(match first.facts.bench.as_str() {
        "allreduce" => {
            let each = |(run, job): &(&Run, Job)| {
                let mut document = allreduce::analyse(job, &run.facts, &run.hosts);
                document.warnings.extend(unknown_sources(&run.hosts));
                document
            };
            Document::Allreduce(allreduce::together(whole.iter().map(each).collect()))
        }
        "halo" => Document::Halo(build_halo(&whole)),
        "fwq" => Document::Fwq(whole.iter().map(|(run, _)| build_fwq(run)).collect()),
        _ => Document::Bsp(
            whole
                .iter()
                .map(|(run, job)| build_bsp(&run.folder, &run.facts, job, &run.hosts, seed))
                .collect::<anyhow::Result<_>>()?,
        ),
    })
}

/// The runs with the most ranks per node are those on full nodes.
fn build_halo(runs: &[(&Run, Job)]) -> Halo {
    let mut layouts: std::collections::BTreeMap<std::cmp::Reverse<u32>, Rounds> = Default::default();
    let mut warnings = Vec::new();
    for (run, job) in runs {
        layouts.entry(std::cmp::Reverse(run.facts.ranks)).or_default().add(job, &run.facts, &run.hosts);
        warnings.extend(crowded(&run.hosts));
        warnings.extend(unknown_sources(&run.hosts));
    }
    // Warnings of one kind are next to each other.
    warnings.sort_by_cached_key(ToString::to_string);
    warnings.dedup();
    let dims = runs.first().map_or(0, |(run, _)| run.facts.dims);
    halo::together(dims, layouts.into_values().filter_map(Rounds::row).collect(), warnings)
}

/// The document of a run, with the prediction from its folder.
fn build_bsp(
    folder: &Path,
    facts: &RunFacts,
    job: &Job,
    hosts: &[HostRun],
    seed: u64,
) -> anyhow::Result<Bsp> {
    let mut document = bsp::analyse(job, facts, hosts, seed);
    let path = folder.join(PREDICTION);
    if path.exists() {
        let text = fs_err::read_to_string(&path)?;
        let predictions: Vec<Prediction> = serde_json::from_str(&text)
            .with_context(|| format!("{} is not the prediction of a run", path.display()))?;
        bsp::compare(&mut document, &predictions);
    }
    document.warnings.extend(unknown_sources(hosts));
    Ok(document)
}

/// The network parameters, from the files of the ranks.
pub fn build_loggp(run: &Run) -> anyhow::Result<loggp::Document> {
    loggp::analyse(&collect::rank_files(&run.folder.join("ranks"))?.0).map_err(anyhow::Error::msg)
}

fn build_fwq(run: &Run) -> Fwq {
    let sides: Vec<RankSide<'_>> =
        run.hosts.iter().flat_map(|host| RankSide::from_recording(&host.recording, &host.phases)).collect();
    let mut document = fwq::analyse(&sides, Some(run.facts.quantum_ns));
    document.warnings.extend(crowded(&run.hosts));
    document.warnings.extend(unknown_sources(&run.hosts));
    document
}

/// Why culprits are not known, for hosts where they are not.
fn unknown_sources(hosts: &[HostRun]) -> Vec<Warning> {
    let unknown = |host: &HostRun| {
        let sources = host.recording.manifest.sources.as_ref();
        match sources.map(|sources| &sources.unknown_because) {
            None => Some(Warning::KernelNotWatched),
            Some(Some(why)) => Some(Warning::CulpritsUnknown { host: host.name(), because: why.clone() }),
            Some(None) => None,
        }
    };
    let mut warnings: Vec<Warning> = hosts.iter().filter_map(unknown).collect();
    warnings.dedup();
    warnings
}

/// Writes the document next to the runs, and prints it.
pub fn show(document: &Document, keep: Option<&Path>, json: bool, printer: Printer) -> anyhow::Result<()> {
    let (value, text) = match document {
        Document::Bsp(runs) => (one_or_list(runs)?, joined(runs.iter().map(render::bench::bsp))),
        Document::Allreduce(all) => (serde_json::to_value(all)?, render::bench::allreduce(all)),
        Document::Halo(halo) => (serde_json::to_value(halo)?, render::bench::halo(halo)),
        Document::Loggp(found) => (serde_json::to_value(found)?, render::loggp::bench_loggp(found)),
        Document::Fwq(runs) => (one_or_list(runs)?, joined(runs.iter().map(render::fwq::fwq))),
    };
    if let Some(folder) = keep {
        let json = serde_json::to_string_pretty(&value)? + "\n";
        quell_recording::atomic_write(&folder.join("bench.json"), json.as_bytes())?;
        quell_recording::atomic_write(&folder.join("bench.txt"), text.as_bytes())?;
    }
    if json { printer.json(&value) } else { Ok(printer.result(&text)?) }
}

/// A single document is printed as itself, several as a list.
fn one_or_list(documents: &[impl serde::Serialize]) -> anyhow::Result<serde_json::Value> {
    Ok(match documents {
        [one] => serde_json::to_value(one)?,
        all => serde_json::to_value(all)?,
    })
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}
