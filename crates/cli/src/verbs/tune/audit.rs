//! `quell tune audit`: which mitigations of the catalogue are applied here.

use std::path::Path;

use quell_analysis::mitigation_coverage::Sources;
use quell_page::{Page, Part};
use quell_recording::Recording;
use quell_request::tune::audit::document;

use super::options;
use crate::args::TuneAudit;
use crate::html;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::render;
use crate::steps::audit::{audited, catalogue, root, unknown};

/// Audits, orders and prints the mitigations.
pub fn run(args: &TuneAudit, printer: Printer) -> anyhow::Result<Outcome> {
    let root = root(args.machine.sysroot.as_deref())?;
    let catalogue = catalogue(&args.machine, &root)?;
    let (mut ids, mut recordings) = (Vec::new(), Vec::new());
    for what in &args.what {
        match catalogue.get(what) {
            Some(_) => ids.push(what.clone()),
            None if Path::new(what).exists() || what.contains(['/', '.']) => {
                recordings.push(Recording::open(Path::new(what))?);
            }
            None => return Err(unknown(&catalogue, what)),
        }
    }
    let only = (!ids.is_empty()).then_some(ids.as_slice());
    let audit = audited(&root, &catalogue, &options(&args.options), only)?;
    let sources = Sources::from_recordings(&recordings);
    if !recordings.is_empty() && sources.is_empty() {
        printer
            .warn("the recording names no sources, so it cannot order the list: record with `--sources on`");
    }
    let unprivileged = !rustix::process::geteuid().is_root();
    let document = document(&audit, &sources, &recordings, unprivileged);
    if let Some(path) = &args.html {
        html::write(path, &Page::new("Mitigations").with(Part::Audit, &document)?)?;
        printer.status(&format!("wrote {}", path.display()));
    }
    if args.json {
        printer.json(&document)?;
    } else if only.is_some() {
        printer.result(&render::tune::in_full(&document))?;
    } else if args.html.is_none() {
        printer.result(&render::tune::table(&document))?;
    }
    Ok(Outcome::Done)
}
