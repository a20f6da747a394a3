//! Writes the files of an export.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use quell_tune::export::Export;

use crate::printer::Printer;

/// Writes all files or none; existing files are not replaced.
pub fn write(export: &Export, folder: &Path, printer: Printer) -> anyhow::Result<()> {
    for file in &export.files {
        let path = folder.join(&file.name);
        if path.symlink_metadata().is_ok() {
            anyhow::bail!("{} exists already: choose another folder, or remove it", path.display());
        }
    }
    for file in &export.files {
        let path = folder.join(&file.name);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let mut out = options
            .write(true)
            .create_new(true)
            .mode(file.mode)
            .open(&path)
            .map_err(|e| anyhow::anyhow!("{} cannot be written: {e}", path.display()))?;
        out.write_all(file.text.as_bytes())?;
        printer.status(&format!("wrote {}", path.display()));
    }
    Ok(())
}
