//! `quell bench show`: shows a run again, from its folder. A run whose quell was killed is collected first.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use quell_analysis::bench::job::RunFacts;

use super::run::{LOGGP, Run};
use super::{collect, document, job, write_facts};
use crate::args::BenchShow;
use crate::outcome::Outcome;
use crate::printer::Printer;

/// Shows one run, or all runs of one command.
pub fn run(args: &BenchShow, printer: Printer) -> anyhow::Result<Outcome> {
    let mut found = Vec::new();
    for folder in runs(&args.folder)? {
        let mut facts = facts(&folder)?;
        anyhow::ensure!(
            !job::goes_on(&folder),
            "the run in {} is still in progress: wait for its end",
            folder.display()
        );
        let hosts = if facts.state == "running" && facts.bench != LOGGP {
            facts.state = "failed".into();
            facts.errors.push("quell ended before the run did".into());
            let (files, torn) = collect::rank_files(&folder.join("ranks"))?;
            facts.errors.extend(torn);
            let hosts = collect::hosts(&folder, &files, facts.scale)?;
            write_facts(&folder, &facts)?;
            hosts
        } else {
            collect::open(&folder)?
        };
        found.push(Run { folder, facts, hosts });
    }
    document::show(&document::build(&found, 1)?, None, args.json, printer)?;
    Ok(Outcome::Done)
}

/// The folders of the single runs.
fn runs(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if folder.join("run.json").exists() {
        return Ok(vec![folder.to_owned()]);
    }
    let mut runs = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.join("run.json").exists() {
            runs.push(path);
        }
    }
    runs.sort();
    anyhow::ensure!(
        !runs.is_empty(),
        "{} holds no run: name the folder that a `quell bench` made",
        folder.display()
    );
    Ok(runs)
}

fn facts(folder: &Path) -> anyhow::Result<RunFacts> {
    let path = folder.join("run.json");
    let text = fs_err::read_to_string(&path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a run description", path.display()))
}
