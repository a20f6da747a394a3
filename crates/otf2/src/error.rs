//! Errors of reading and writing archives.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::ffi;

/// What failed, where, why, and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no archive.
    #[error("{path} is no OTF2 archive: {reason} (give the folder that holds traces.otf2, or that file)")]
    NotAnArchive {
        /// The path that the caller passed.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The archive's anchor or definitions cannot be read.
    #[error("{path}: {reason} (see what `otf2-print -G` says of it, or write it again)")]
    Malformed {
        /// The anchor file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The archive cannot be written.
    #[error("{path} cannot be written: {reason}")]
    Unwritten {
        /// The archive's folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// An operation of the operating system failed; the text names the path.
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

/// The library's last error message in this thread.
pub(crate) fn complaint() -> String {
    // SAFETY: the text belongs to the thread, is NUL-terminated, and valid until the next call; it is copied here.
    let text = unsafe { CStr::from_ptr(ffi::quell_otf2_problem()) }.to_string_lossy().into_owned();
    if text.is_empty() { "the OTF2 library does not say why".into() } else { text }
}
