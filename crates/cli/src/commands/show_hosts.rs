//! `quell show DIR`: the recordings of many hosts side by side.

use std::path::{Path, PathBuf};

use quell_analysis::fleet::{FEWEST_NODES, NodeSummary, fleet};
use quell_analysis::hosts::{OneHost, hosts, one_host, one_of_many};
use quell_recording::Recording;

use super::Outcome;
use super::advise_fleet::read_all;
use crate::args::{By, Show};
use crate::plan::Usage;
use crate::printer::Printer;
use crate::terminal_hosts;

/// Of more recordings than this, sources are told by all of their time: to join each with its detours would take minutes.
const MANY: usize = 64;

/// The recordings in a folder that is none itself; empty where it holds none.
pub fn recordings_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.is_dir() || folder.join("manifest.json").exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "quell") && path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Prints a row per host, or a row per source over all of them.
pub fn run(args: &Show, paths: &[PathBuf], printer: Printer) -> anyhow::Result<Outcome> {
    if matches!(args.by, By::Task | By::Class) {
        let text = "over many hosts there is `--by cpu`, a row per host, and `--by source`; for tasks and classes name one recording";
        return Err(Usage(text.into()).into());
    }
    let host = if paths.len() > MANY { one_of_many } else { one_host };
    let sum_up = |recording: &Recording| (host(recording), NodeSummary::of(recording, None, 0));
    let (read, unread) = read_all(paths, printer, sum_up);
    let (known, nodes): (Vec<OneHost>, Vec<NodeSummary>) = read.into_iter().unzip();
    anyhow::ensure!(
        !known.is_empty(),
        "none of the {} recordings in {} can be read",
        paths.len(),
        args.recording.display()
    );
    let folder = args.recording.display().to_string();
    let mut document = hosts(folder.clone(), known, unread);
    document.fleet = (nodes.len() >= FEWEST_NODES).then(|| fleet(folder, nodes, Vec::new(), None));
    if args.json {
        document.sources = document.sources.filter(|_| args.by == By::Source);
        printer.json(&document)?;
    } else {
        printer.result(&match args.by {
            By::Source => terminal_hosts::by_source(&document),
            _ => terminal_hosts::by_host(&document, args.all),
        })?;
    }
    Ok(Outcome::Done)
}
