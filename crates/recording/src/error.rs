//! Why a recording or another tool's file cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong, where, why, and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder is missing or holds no manifest.
    #[error(
        "{path} is not a quell recording: {reason} (make one with `quell record`, or `quell convert` another tool's file)"
    )]
    NotARecording {
        /// The path that was given.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The recording was written by a later quell.
    #[error(
        "{path} has recording format {found}, newer than the {supported} that this quell reads: update quell"
    )]
    Newer {
        /// The recording.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest version that this quell reads.
        supported: u32,
    },
    /// The content of a file is invalid.
    #[error("{path}: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line or row if it is known.
        reason: String,
    },
    /// There is already a recording at the path of the new one.
    #[error("{path} exists already: choose another name, or remove it first")]
    Exists {
        /// The path that was given.
        path: PathBuf,
    },
    /// The folder in which something new was to be made is missing.
    #[error("there is no folder {folder}: create it first, or choose another place for {path}")]
    NoFolder {
        /// The missing folder.
        folder: PathBuf,
        /// The path that was given.
        path: PathBuf,
    },
    /// The operating system refused; the text names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    pub(crate) fn malformed(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Malformed { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(crate) fn not_a_recording(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::NotARecording { path: path.to_owned(), reason: reason.to_string() }
    }
}
