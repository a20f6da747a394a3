//! What the nodes of a folder cost together, and which of them are unlike the rest.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quell_analysis::fleet::{FleetJob, NodeSummary, fleet};
use quell_analysis::hosts::Unread;
use quell_recording::Recording;
use rayon::prelude::*;

use super::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::terminal_fleet;

/// Reads the recordings, at most one a thread at a time, and prints what they are together.
pub fn run(
    folder: &Path,
    paths: &[PathBuf],
    job: FleetJob,
    json: bool,
    printer: Printer,
) -> anyhow::Result<Outcome> {
    let (quantum, seed) = (job.quantum, job.seed);
    let sum_up = |recording: &Recording| NodeSummary::of(recording, Some(quantum), seed);
    let (nodes, unread) = read_all(paths, printer, sum_up);
    anyhow::ensure!(
        !nodes.is_empty(),
        "none of the {} recordings in {} can be read",
        paths.len(),
        folder.display()
    );
    let found = fleet(folder.display().to_string(), nodes, unread, Some(job));
    if json {
        printer.json(&found)?;
    } else {
        printer.result(&terminal_fleet::advise(&found))?;
    }
    Ok(Outcome::Done)
}

/// What is made of each recording, in the order of the paths, and what could not be read. The rows of one are gone before its thread
/// reads the next.
pub fn read_all<T: Send>(
    paths: &[PathBuf],
    printer: Printer,
    sum_up: impl Fn(&Recording) -> T + Sync,
) -> (Vec<T>, Vec<Unread>) {
    let step = Step::long(printer, "read", Some(paths.len() as u64));
    let done = AtomicU64::new(0);
    let one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let read = Recording::open(path).map(|recording| sum_up(&recording));
        step.reach(done.fetch_add(1, Ordering::Relaxed) + 1);
        read.map_err(|error| Unread { name, reason: error.to_string() })
    };
    let read: Vec<Result<T, Unread>> = paths.par_iter().map(one).collect();
    drop(step);
    let (mut known, mut unread) = (Vec::new(), Vec::new());
    for one in read {
        match one {
            Ok(one) => known.push(one),
            Err(one) => {
                printer.warn(&format!("{} is left out: {}", one.name, one.reason));
                unread.push(one);
            }
        }
    }
    (known, unread)
}
