//! The command's HTML page, for notebooks.
#![expect(clippy::needless_pass_by_value, reason = "Python hands its objects over")]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quell_page::{Page, Part};
use quell_recording::Trace;
use serde_json::Value;

use crate::error;
use crate::recording::Recording;

/// A page with the sections `only`. `documents` are JSON texts, each under the name of its part of the page or `track`. For one recording it
/// draws the detours of each CPU; for several, all detours of each, by their names.
#[pyfunction]
#[pyo3(signature = (title, documents, recordings, only))]
pub fn page(
    py: Python<'_>,
    title: &str,
    documents: Vec<(String, String)>,
    recordings: Vec<(String, Py<Recording>)>,
    only: Vec<String>,
) -> PyResult<String> {
    let mut page = Page::new(title).only(&only);
    for (name, text) in documents {
        page = match (name.as_str(), Part::by_name(&name)) {
            ("track", _) => serde_json::from_str(&text).and_then(|run| page.with_run(&run)),
            (_, Some(part)) => serde_json::from_str::<Value>(&text).and_then(|value| page.with(part, &value)),
            _ => return Err(PyValueError::new_err(format!("a page has no part `{name}`"))),
        }
        .map_err(|wrong| {
            PyValueError::new_err(format!("the document for `{name}` cannot be drawn: {wrong}"))
        })?;
    }
    let read = |(name, recording): &(String, Py<Recording>)| Ok((name.clone(), recording.get().traces()?));
    let traces: Vec<(String, Vec<Trace>)> =
        py.detach(|| recordings.iter().map(read).collect::<Result<_, _>>()).map_err(error::file_error)?;
    page = match traces.as_slice() {
        [] => page,
        [(_, traces)] => page.with_detours(traces, None),
        all => page.with_densities(all),
    };
    py.detach(|| page.html()).map_err(|wrong| PyValueError::new_err(wrong.to_string()))
}
