//! `quell._internal`: what the Python package cannot do by itself. It is thin: options come as arguments and are parsed as the command parses
//! them, documents are returned as the text that `--json` prints, tables as Arrow. The public interface is `python/quell`.

mod call;
mod error;
mod page;
mod recording;
mod table;
mod verbs;

use pyo3::prelude::*;

/// The contents of `quell._internal`.
#[pymodule]
fn _internal(module: &Bound<'_, PyModule>) -> PyResult<()> {
    quell_recording::silence_decoders();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_class::<recording::Recording>()?;
    module.add_function(wrap_pyfunction!(downsample, module)?)?;
    module.add_function(wrap_pyfunction!(page::page, module)?)?;
    for function in verbs::functions(module)? {
        module.add_function(function)?;
    }
    Ok(())
}

/// The indices of the detours that a plot draws.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands its objects over")]
fn downsample(durations_ns: Vec<u64>, most: usize) -> Vec<usize> {
    quell_analysis::downsample(&durations_ns, most)
}
