//! The archive, from what ranks logged.

use std::path::PathBuf;

use super::folder::Folder;

/// What came of the logs.
#[derive(Debug, Default)]
pub struct Made {
    /// The archive; `None` where no MPI call was seen.
    pub archive: Option<PathBuf>,
    /// Ranks in it.
    pub ranks: usize,
    /// Events in it.
    pub events: u64,
    /// What it lacks, and why.
    pub missing: Vec<String>,
    /// Whether the logs are worth a look of their own.
    pub damaged: bool,
}

/// Makes the archive.
pub fn make(folder: &Folder) -> anyhow::Result<Made> {
    let entries = folder.logs.read_dir()?.flatten();
    let ranks = entries.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "log")).count();
    Ok(Made { ranks, ..Made::default() })
}
