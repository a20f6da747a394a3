//! Tables that are passed on without a copy: through Arrow's `PyCapsule` interface, which pyarrow, pandas, Polars and DuckDB accept.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};
use quell_recording::Batches;

/// A table in memory. Every consumer shares it.
#[pyclass(frozen, module = "quell._internal")]
#[derive(Debug)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl From<Batches> for Table {
    fn from(table: Batches) -> Self {
        Self { schema: table.schema, batches: table.batches }
    }
}

#[pymethods]
impl Table {
    /// A table of columns: name, kind (`uint`, `int`, `float`, `bool`, `text`), values. None is an empty cell.
    #[staticmethod]
    fn from_columns(columns: Vec<(String, String, Bound<'_, PyList>)>) -> PyResult<Self> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (name, kind, values) in columns {
            let array = array(&kind, &values)?;
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        // A table without columns has no rows.
        let options = RecordBatchOptions::new().with_row_count(arrays.is_empty().then_some(0));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            .map_err(|error| refused(&error))?;
        Ok(Self { schema, batches: vec![batch] })
    }

    /// The rows as a capsule with an `ArrowArrayStream`. Types are not converted: a requested schema is ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface permits ignoring it.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// The columns as a capsule with an `ArrowSchema`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| refused(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The type of each column by Arrow's name, in order.
    #[getter]
    fn column_types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// A column for Python's `array`: its type code and its bytes. None for a column with empty cells, or of a kind other than numbers.
    fn numbers<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<(&'static str, Bound<'py, PyBytes>)>> {
        let columns = self.columns(name)?;
        if columns.iter().any(|column| column.null_count() > 0) {
            return Ok(None);
        }
        let kind = self.schema.field_with_name(name).map_err(|error| refused(&error))?.data_type().clone();
        let (code, bytes) = match kind {
            DataType::UInt64 => {
                ("Q", bytes(&columns, |c| c.as_primitive::<UInt64Type>().values().inner().as_slice()))
            }
            DataType::UInt32 => {
                ("I", bytes(&columns, |c| c.as_primitive::<UInt32Type>().values().inner().as_slice()))
            }
            DataType::Float64 => {
                ("d", bytes(&columns, |c| c.as_primitive::<Float64Type>().values().inner().as_slice()))
            }
            _ => return Ok(None),
        };
        Ok(Some((code, PyBytes::new(py, &bytes))))
    }

    /// A column as a list.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for column in self.columns(name)? {
            append(&list, column)?;
        }
        Ok(list)
    }
}

impl Table {
    fn columns(&self, name: &str) -> PyResult<Vec<&ArrayRef>> {
        if self.schema.index_of(name).is_err() {
            let names = self.column_names().join(", ");
            return Err(PyKeyError::new_err(format!("there is no column `{name}`: these are {names}")));
        }
        Ok(self.batches.iter().filter_map(|batch| batch.column_by_name(name)).collect())
    }
}

fn refused(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn bytes<'a>(columns: &[&'a ArrayRef], of: impl Fn(&'a ArrayRef) -> &'a [u8]) -> Vec<u8> {
    columns.iter().flat_map(|column| of(column).iter().copied()).collect()
}

fn append(list: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()> {
    macro_rules! each {
        ($array:expr) => {
            for value in $array {
                list.append(value)?;
            }
        };
    }
    match column.data_type() {
        DataType::UInt64 => each!(column.as_primitive::<UInt64Type>()),
        DataType::UInt32 => each!(column.as_primitive::<UInt32Type>()),
        DataType::Int64 => each!(column.as_primitive::<arrow_array::types::Int64Type>()),
        DataType::Float64 => each!(column.as_primitive::<Float64Type>()),
        DataType::Boolean => each!(column.as_boolean()),
        DataType::Utf8 => each!(column.as_string::<i32>()),
        other => {
            return Err(PyValueError::new_err(format!("a column of {other} is only read through Arrow")));
        }
    }
    Ok(())
}

fn array(kind: &str, values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    Ok(match kind {
        "uint" => Arc::new(UInt64Array::from(values.extract::<Vec<Option<u64>>>()?)),
        "int" => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
        "float" => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
        "bool" => Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)),
        "text" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
        _ => return Err(PyValueError::new_err(format!("`{kind}` is not a kind of column"))),
    })
}
