//! The page of a traced run, for `quell track --html` and `quell report`.

use std::path::{Path, PathBuf};

use quell_analysis::track::Tracked;
use quell_page::Page;

use crate::html;
use crate::printer::Printer;

/// Writes the page of an archive.
pub fn write(archive: &Path, tracked: &Tracked, output: &Path, printer: Printer) -> anyhow::Result<()> {
    let title = name(archive);
    html::write(output, &Page::new(&title).with_run(tracked)?)?;
    printer.status(&format!("wrote {}", output.display()));
    Ok(())
}

/// Whether the path is an OTF2 archive, or its folder.
pub fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "otf2") || path.join("traces.otf2").is_file()
}

/// The default path of an archive's page: next to its folder.
pub fn default_path(archive: &Path) -> PathBuf {
    folder(archive).with_extension("html")
}

/// The name of an archive: that of its folder, because the anchor file has the same name in all archives.
pub fn name(archive: &Path) -> String {
    let folder = folder(archive);
    folder.file_name().map_or_else(|| "MPI run".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn folder(archive: &Path) -> PathBuf {
    // A relative path such as `.` holds no name; the canonical path does.
    let whole = fs_err::canonicalize(archive).unwrap_or_else(|_| archive.to_owned());
    match whole.parent() {
        Some(folder) if whole.is_file() => folder.to_owned(),
        _ => whole,
    }
}
