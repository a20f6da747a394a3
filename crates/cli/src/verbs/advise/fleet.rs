//! What the nodes of a folder cost together, and which of them are outliers.

use std::path::{Path, PathBuf};

use quell_analysis::fleet::{FleetJob, NodeSummary, fleet};
use quell_page::{Page, Part};
use quell_recording::Recording;
use quell_request::show::read_all;

use crate::html;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::render;
use crate::steps::archive_page;

/// What to write.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// A page, too.
    pub html: Option<&'a Path>,
    /// A JSON document instead of the text.
    pub json: bool,
}

/// Reads the recordings, at most one per thread at a time, and prints the summary of all.
pub fn run(
    folder: &Path,
    paths: &[PathBuf],
    job: FleetJob,
    output: Output<'_>,
    printer: Printer,
) -> anyhow::Result<Outcome> {
    let (quantum, seed) = (job.quantum, job.seed);
    let sum_up = |recording: &Recording| NodeSummary::from_recording(recording, Some(quantum), seed);
    let (nodes, unread) = {
        let step = Step::long(printer, "read", Some(1));
        read_all(paths, &mut |text| printer.warn(text), &|done, all| step.go_on(done, all), sum_up)?
    };
    anyhow::ensure!(
        !nodes.is_empty(),
        "none of the {} recordings in {} can be read",
        paths.len(),
        folder.display()
    );
    let found = fleet(folder.display().to_string(), nodes, unread, Some(job));
    if let Some(path) = output.html {
        html::write(path, &Page::new(&archive_page::name(folder)).with(Part::Fleet, &found)?)?;
        printer.status(&format!("wrote {}", path.display()));
    }
    if output.json {
        printer.json(&found)?;
    } else {
        printer.result(&render::fleet::advise(&found))?;
    }
    Ok(Outcome::Done)
}
