//! Errors with the command's own texts.

use pyo3::PyErr;
use quell_request::Usage;

/// The package's exception classes.
mod classes {
    pyo3::import_exception!(quell.errors, QuellError);
    pyo3::import_exception!(quell.errors, UsageError);
}

/// The error with the text that the command prints after `error: `.
pub fn to_python(error: &anyhow::Error) -> PyErr {
    let words = format!("{error:#}");
    if error.is::<Usage>() {
        classes::UsageError::new_err(words)
    } else {
        classes::QuellError::new_err(words)
    }
}

/// An error in a file.
pub fn file_error(error: quell_recording::Error) -> PyErr {
    to_python(&error.into())
}
