//! A recording, or another tool's file read as one.

use std::borrow::Cow;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quell_recording::formats::{self, Imported};
use quell_recording::{Batches, Manifest, Recording as Whole, TableKind};

use crate::error;
use crate::table::Table;

/// The facts about a recording, and its tables, which are read on demand.
#[pyclass(frozen, module = "quell._internal")]
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    manifest: Manifest,
    /// The complete contents of another tool's file.
    imported: Option<Imported>,
}

impl Recording {
    /// All of it.
    pub fn whole(&self) -> Result<Cow<'_, Whole>, quell_recording::Error> {
        match &self.imported {
            Some(imported) => Ok(Cow::Borrowed(&imported.recording)),
            None => Ok(Cow::Owned(Whole::open(&self.path)?)),
        }
    }
}

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let open = || {
            if path.join("manifest.json").exists() || !path.exists() {
                // The tables are opened too, so that damage is detected at once; rows are read again as columns.
                return Ok((Whole::open(&path)?.manifest, None));
            }
            let imported = formats::import_all(&path)?;
            Ok((imported.recording.manifest.clone(), Some(imported)))
        };
        let (manifest, imported) = py.detach(open).map_err(error::file_error)?;
        Ok(Self { path, manifest, imported })
    }

    /// Its path.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Everything except rows, as JSON.
    #[getter]
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(&self.manifest).map_err(|error| error::to_python(&error.into()))
    }

    /// One of its tables.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let kind = match name {
            "detours" => TableKind::Detours,
            "intervals" => TableKind::Intervals,
            "quanta" => TableKind::Quanta,
            "phases" => TableKind::Phases,
            "threads" => TableKind::Threads,
            "histograms" => TableKind::Histograms,
            _ => return Err(PyValueError::new_err(format!("a recording has no table `{name}`"))),
        };
        let read = || match &self.imported {
            Some(imported) => Batches::from_imported(imported, kind),
            None => Batches::read(&self.path, kind),
        };
        Ok(py.detach(read).map_err(error::file_error)?.into())
    }
}
