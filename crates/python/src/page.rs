//! The command's HTML page, for notebooks.
#![expect(clippy::needless_pass_by_value, reason = "Python hands its objects over")]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quell_analysis::whatif::AttributedNoise;
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
    page = py.detach(|| with_recordings(page, &recordings)).map_err(error::file_error)?;
    py.detach(|| page.html()).map_err(|wrong| PyValueError::new_err(wrong.to_string()))
}

/// The page with the detours of one recording, each with the source that took most of it, or with the densities of several.
fn with_recordings(
    page: Page,
    recordings: &[(String, Py<Recording>)],
) -> Result<Page, quell_recording::Error> {
    match recordings {
        [] => Ok(page),
        [(_, one)] => {
            let whole = one.get().whole()?;
            let sources = AttributedNoise::from_recording(&whole, Vec::new()).main_sources();
            Ok(page.with_detours(&whole.traces, Some(&sources)))
        }
        all => {
            let mut named: Vec<(String, Vec<Trace>)> = Vec::new();
            for (name, one) in all {
                named.push((name.clone(), one.get().whole()?.into_owned().traces));
            }
            Ok(page.with_densities(&named))
        }
    }
}
