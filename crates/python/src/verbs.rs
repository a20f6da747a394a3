//! The verbs: arguments in, the document's text out.
#![expect(clippy::needless_pass_by_value, reason = "Python hands its objects over")]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use quell_analysis::track::Reading;
use quell_analysis::{Progress, Warning};
use quell_otf2::Archive;
use quell_recording::mpi::{Damage, Definitions, Event, Run};
use quell_recording::warning::typed_or_sentences;
use quell_request::{Usage, compare, network, options, predict, show, simulate, track};
use serde::Serialize;

use crate::call::long;
use crate::error;

/// A document as `--json` prints it, the messages next to it, and why the verb failed in spite of it, if it did.
type Document = (String, Vec<String>, Option<String>);

/// The functions of this module.
pub fn functions<'py>(module: &Bound<'py, PyModule>) -> PyResult<[Bound<'py, PyCFunction>; 7]> {
    Ok([
        wrap_pyfunction!(py_predict, module)?,
        wrap_pyfunction!(py_simulate, module)?,
        wrap_pyfunction!(py_compare, module)?,
        wrap_pyfunction!(py_show, module)?,
        wrap_pyfunction!(py_track, module)?,
        wrap_pyfunction!(options_of, module)?,
        wrap_pyfunction!(sentences, module)?,
    ])
}

fn whole(document: &impl Serialize) -> anyhow::Result<Document> {
    Ok((serde_json::to_string_pretty(document)?, Vec::new(), None))
}

#[pyfunction(name = "predict", signature = (typed, progress = None))]
fn py_predict(py: Python<'_>, typed: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Document> {
    long(py, progress.as_ref(), move |progress| {
        let args: predict::PredictArgs = options::parse("predict", typed)?;
        whole(&predict::prediction(&args, progress)?)
    })
}

#[pyfunction(name = "simulate", signature = (typed, progress = None))]
fn py_simulate(py: Python<'_>, typed: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Document> {
    long(py, progress.as_ref(), move |progress| {
        let args: simulate::SimulateArgs = options::parse("simulate", typed)?;
        let mut printed = Vec::new();
        let played = simulate::simulate(&args, &mut |text| printed.push(text.to_owned()), progress)?;
        Ok((serde_json::to_string_pretty(&played.simulation)?, printed, played.failure))
    })
}

#[pyfunction(name = "compare", signature = (typed, progress = None))]
fn py_compare(py: Python<'_>, typed: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Document> {
    long(py, progress.as_ref(), move |_| {
        let args: compare::CompareArgs = options::parse("compare", typed)?;
        whole(&compare::comparison(&args)?)
    })
}

#[pyfunction(name = "show", signature = (typed, progress = None))]
fn py_show(py: Python<'_>, typed: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Document> {
    long(py, progress.as_ref(), move |progress| {
        let args: show::ShowArgs = options::parse("show", typed)?;
        let mut printed = Vec::new();
        let shown = show::shown(&args, &mut |text| printed.push(text.to_owned()), progress)?;
        Ok((show::json(shown, args.by)?, printed, None))
    })
}

#[pyfunction(name = "track", signature = (typed, progress = None))]
fn py_track(py: Python<'_>, typed: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Document> {
    long(py, progress.as_ref(), move |progress| {
        let args: track::TrackArgs = options::parse("track", typed)?;
        network::refuse_help(&args.net)?;
        let given = args.given()?;
        let open = || {
            let stoppable = |archive| Stoppable { archive, events: 0, progress };
            Archive::open(&args.archive).map(|archive| args.noise_of(stoppable(archive)))
        };
        let Reading { tracked, .. } = quell_analysis::track::track(open, &given, &mut ())?;
        let failure = track::failure(&tracked).map(str::to_owned);
        let printed = tracked.findings.warnings.iter().map(ToString::to_string).collect();
        Ok((serde_json::to_string_pretty(&tracked)?, printed, failure))
    })
}

/// An archive that ends early when its reader is asked to stop; the result is dropped then.
struct Stoppable<'a> {
    archive: Archive,
    events: u64,
    progress: Progress<'a>,
}

impl Run for Stoppable<'_> {
    fn definitions(&self) -> &Definitions {
        self.archive.definitions()
    }

    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        let before = events.len();
        let more = self.archive.read(location, events)?;
        self.events += (events.len() - before) as u64;
        Ok((self.progress)(self.events, 0).is_continue() && more)
    }
}

/// The sentences of a document's `warnings`, which come as the JSON of their list.
#[pyfunction]
fn sentences(warnings: &str) -> PyResult<Vec<String>> {
    let mut list = serde_json::Deserializer::from_str(warnings);
    let warnings: Vec<Warning> =
        typed_or_sentences(&mut list).map_err(|failed| PyValueError::new_err(failed.to_string()))?;
    Ok(warnings.iter().map(ToString::to_string).collect())
}

/// The options of a verb, as JSON.
#[pyfunction(name = "options")]
fn options_of(verb: &str) -> PyResult<String> {
    let options = match verb {
        "predict" => options::list::<predict::PredictArgs>(),
        "simulate" => options::list::<simulate::SimulateArgs>(),
        "compare" => options::list::<compare::CompareArgs>(),
        "show" => options::list::<show::ShowArgs>(),
        "track" => options::list::<track::TrackArgs>(),
        _ => return Err(PyValueError::new_err(format!("`{verb}` is not a verb of this module"))),
    };
    serde_json::to_string(&options).map_err(|failed| error::to_python(&Usage(failed.to_string()).into()))
}
