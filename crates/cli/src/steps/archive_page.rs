//! `quell track --html`, and `quell report` of an MPI run: the page.

use std::path::{Path, PathBuf};

use quell_analysis::track::Tracked;

use crate::html::{self, Page};
use crate::printer::Printer;

/// Writes the page of an archive.
pub fn write(archive: &Path, tracked: &Tracked, output: &Path, printer: Printer) -> anyhow::Result<()> {
    let title = name(archive);
    html::write(output, &Page { track: Some(tracked), ..Page::new(&title) })?;
    printer.say(&format!("wrote {}", output.display()));
    Ok(())
}

/// Whether this is an MPI run's archive, or the folder of one.
pub fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "otf2") || path.join("traces.otf2").is_file()
}

/// Where the page of an archive goes if nobody says it: beside its folder.
pub fn beside(archive: &Path) -> PathBuf {
    folder(archive).with_extension("html")
}

/// What an archive is called: as its folder, for the anchor has the same name in all.
pub fn name(archive: &Path) -> String {
    let folder = folder(archive);
    folder.file_name().map_or_else(|| "MPI run".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn folder(archive: &Path) -> PathBuf {
    // A name like `.` says nothing; the place that it stands for does.
    let whole = fs_err::canonicalize(archive).unwrap_or_else(|_| archive.to_owned());
    match whole.parent() {
        Some(folder) if whole.is_file() => folder.to_owned(),
        _ => whole,
    }
}
