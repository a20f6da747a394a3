//! Tables of results: flat named columns in a Parquet file that pandas, Polars and DuckDB read directly.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use fs_err as fs;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::Error;
use crate::read::contain;
use crate::write::parquet_properties;

/// The type of a column's values. Any of its cells may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers; times in nanoseconds.
    U64,
    /// Numbers.
    F64,
    /// Yes or no.
    Bool,
    /// Text.
    Text,
}

/// One value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// No value, in a column of any kind.
    #[default]
    Empty,
    /// For [`Kind::U64`].
    U64(u64),
    /// For [`Kind::F64`].
    F64(f64),
    /// For [`Kind::Bool`].
    Bool(bool),
    /// For [`Kind::Text`].
    Text(String),
}

/// A table: columns, and rows with one cell per column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Name and kind of each column.
    pub columns: Vec<(String, Kind)>,
    /// A cell for each column; a cell of another kind counts as empty.
    pub rows: Vec<Vec<Cell>>,
}

impl Results {
    /// The table as a Parquet file. Equal tables give equal bytes.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn to_parquet(&self) -> Result<Vec<u8>, Error> {
        let schema = self.schema();
        let columns = self.columns.iter().enumerate().map(|(index, column)| self.array(index, column.1));
        let refuse = |e: &dyn std::fmt::Display| Error::Io(std::io::Error::other(e.to_string()));
        let batch =
            RecordBatch::try_new(SchemaRef::clone(&schema), columns.collect()).map_err(|e| refuse(&e))?;
        let mut bytes = Vec::new();
        let properties = parquet_properties(&schema);
        let mut writer =
            ArrowWriter::try_new(&mut bytes, schema, Some(properties)).map_err(|e| refuse(&e))?;
        writer.write(&batch).map_err(|e| refuse(&e))?;
        writer.close().map_err(|e| refuse(&e))?;
        Ok(bytes)
    }

    /// Reads a table that [`Self::to_parquet`] made, completely.
    ///
    /// # Errors
    /// [`Error::Io`] if the file does not exist, [`Error::Malformed`] if it is cut off or has other columns.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let file = fs::File::open(path)?.into_parts().0;
        contain(|| decode(file)).and_then(|table| table).map_err(|reason| Error::malformed(path, reason))
    }

    /// The index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(known, _)| known == name)
    }

    fn schema(&self) -> SchemaRef {
        let field = |(name, kind): &(String, Kind)| Field::new(name, data_type(*kind), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    fn array(&self, column: usize, kind: Kind) -> ArrayRef {
        let cells = || self.rows.iter().map(|row| row.get(column).unwrap_or(&Cell::Empty));
        match kind {
            Kind::U64 => Arc::new(UInt64Array::from_iter(cells().map(|cell| match cell {
                Cell::U64(n) => Some(*n),
                _ => None,
            }))),
            Kind::F64 => Arc::new(Float64Array::from_iter(cells().map(|cell| match cell {
                Cell::F64(n) => Some(*n),
                _ => None,
            }))),
            Kind::Bool => Arc::new(BooleanArray::from_iter(cells().map(|cell| match cell {
                Cell::Bool(yes) => Some(*yes),
                _ => None,
            }))),
            Kind::Text => Arc::new(StringArray::from_iter(cells().map(|cell| match cell {
                Cell::Text(text) => Some(text.as_str()),
                _ => None,
            }))),
        }
    }
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::U64 => DataType::UInt64,
        Kind::F64 => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Text => DataType::Utf8,
    }
}

fn decode(file: std::fs::File) -> Result<Results, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| text(&e))?;
    let kinds = [Kind::U64, Kind::F64, Kind::Bool, Kind::Text];
    let column = |field: &Arc<Field>| {
        let kind = kinds.into_iter().find(|kind| data_type(*kind) == *field.data_type());
        let kind = kind.ok_or_else(|| format!("the column `{}` is of no kind of results", field.name()))?;
        Ok((field.name().clone(), kind))
    };
    let columns = batches.schema().fields().iter().map(column).collect::<Result<Vec<_>, String>>()?;
    let mut rows = Vec::new();
    for batch in batches.build().map_err(|e| text(&e))? {
        let batch = batch.map_err(|e| text(&e))?;
        let cell = |row: usize| {
            let of = |(array, (_, kind)): (&ArrayRef, &(String, Kind))| cell(array, *kind, row);
            batch.columns().iter().zip(&columns).map(of).collect()
        };
        rows.extend((0..batch.num_rows()).map(cell));
    }
    Ok(Results { columns, rows })
}

fn cell(array: &ArrayRef, kind: Kind, row: usize) -> Cell {
    if array.is_null(row) {
        return Cell::Empty;
    }
    match kind {
        Kind::U64 => Cell::U64(array.as_primitive::<UInt64Type>().value(row)),
        Kind::F64 => Cell::F64(array.as_primitive::<Float64Type>().value(row)),
        Kind::Bool => Cell::Bool(array.as_boolean().value(row)),
        Kind::Text => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn table() -> Results {
        let columns = [("n", Kind::U64), ("x", Kind::F64), ("yes", Kind::Bool), ("name", Kind::Text)];
        let row = |n: u64| {
            vec![Cell::U64(n), Cell::F64(n as f64 / 3.0), Cell::Bool(n > 1), Cell::Text(format!("{n}\u{1b}"))]
        };
        let columns = columns.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
        Results { columns, rows: vec![row(1), row(u64::MAX), vec![Cell::Empty; 4]] }
    }

    #[test]
    fn tables_come_back_and_equal_ones_are_equal_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        fs::write(&path, table().to_parquet().unwrap()).unwrap();
        assert_eq!(Results::read(&path).unwrap(), table());
        assert_eq!(table().to_parquet().unwrap(), table().to_parquet().unwrap());
        assert_eq!(table().column("yes"), Some(2));
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_no_table() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let bytes = table().to_parquet().unwrap();
        for length in (0..bytes.len()).step_by(13).chain([bytes.len() - 1]) {
            fs::write(&path, &bytes[..length]).unwrap();
            assert!(Results::read(&path).is_err(), "the first {length} bytes");
        }
        for place in (0..bytes.len()).step_by(13) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x55;
            fs::write(&path, &damaged).unwrap();
            // It may still be a valid table; the reader must not crash.
            let _ = Results::read(&path);
        }
    }
}
