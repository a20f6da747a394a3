//! `quell show DIR`: the recordings of many hosts side by side.

use std::path::{Path, PathBuf};

use quell_analysis::hosts::{OneHost, Unread, hosts, one_host};
use quell_recording::Recording;
use rayon::prelude::*;

use super::Outcome;
use crate::args::{By, Show};
use crate::plan::Usage;
use crate::printer::Printer;
use crate::terminal_hosts;

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
    let read: Vec<Result<OneHost, Unread>> = paths.par_iter().map(|path| read(path)).collect();
    let (mut known, mut unread) = (Vec::new(), Vec::new());
    for one in read {
        match one {
            Ok(host) => known.push(host),
            Err(one) => {
                printer.warn(&format!("{} is left out: {}", one.name, one.reason));
                unread.push(one);
            }
        }
    }
    anyhow::ensure!(
        !known.is_empty(),
        "none of the {} recordings in {} can be read",
        paths.len(),
        args.recording.display()
    );
    let mut document = hosts(args.recording.display().to_string(), known, unread);
    if args.json {
        document.sources = document.sources.filter(|_| args.by == By::Source);
        printer.json(&document)?;
    } else {
        printer.result(&match args.by {
            By::Source => terminal_hosts::by_source(&document),
            _ => terminal_hosts::by_host(&document),
        })?;
    }
    Ok(Outcome::Done)
}

/// One after the other on each thread: the rows of a recording are gone before the next is read.
fn read(path: &Path) -> Result<OneHost, Unread> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Recording::open(path)
        .map(|recording| one_host(&recording))
        .map_err(|error| Unread { name, reason: error.to_string() })
}
