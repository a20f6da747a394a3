//! Why an archive cannot be read or written.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::ffi;

/// What went wrong, where, why, and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no archive.
    #[error("{path} is no OTF2 archive: {reason} (give the folder that holds traces.otf2, or that file)")]
    NotAnArchive {
        /// The path that was given.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// There is one, but what it says of itself cannot be read.
    #[error("{path}: {reason} (see what `otf2-print -G` says of it, or write it again)")]
    Malformed {
        /// The anchor file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It cannot be written.
    #[error("{path} cannot be written: {reason}")]
    Unwritten {
        /// The archive's folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The operating system refused; the text names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    pub(crate) fn not_an_archive(path: &Path, reason: impl Into<String>) -> Self {
        Self::NotAnArchive { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn malformed(path: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn unwritten(path: &Path, reason: impl Into<String>) -> Self {
        Self::Unwritten { path: path.to_owned(), reason: reason.into() }
    }
}

/// What the library last complained of in this thread.
pub(crate) fn complaint() -> String {
    // SAFETY: the text is the thread's own, ends with a zero, and lasts until the next call; it is copied here.
    let text = unsafe { CStr::from_ptr(ffi::quell_otf2_problem()) }.to_string_lossy().into_owned();
    if text.is_empty() { "the OTF2 library does not say why".into() } else { text }
}
