//! The tables of a recording as Arrow batches; the only place that knows their columns.

mod histogram;
mod kernel;
mod phase;

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::{Cpu, Detour, Nanos, Quantum};

/// A kind of row that has a table of its own.
pub(crate) trait Row: Clone {
    /// The table's file name without extension.
    const TABLE: &'static str;
    /// Its columns; all are required.
    fn schema() -> SchemaRef;
    /// Converts rows to a batch of that schema.
    fn to_batch(rows: &[(Cpu, Self)]) -> Result<RecordBatch, ArrowError>;
    /// Converts a batch to rows; the error names the column.
    fn from_batch(batch: &RecordBatch) -> Result<Vec<(Cpu, Self)>, String>;
}

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<Field> =
        columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), false)).collect();
    Arc::new(Schema::new(fields))
}

pub(super) fn u64s<R>(rows: &[R], value: impl Fn(&R) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from(rows.iter().map(value).collect::<Vec<_>>()))
}

pub(super) fn cpus<R>(rows: &[(Cpu, R)]) -> ArrayRef {
    Arc::new(UInt32Array::from(rows.iter().map(|(cpu, _)| cpu.0).collect::<Vec<_>>()))
}

impl Row for Detour {
    const TABLE: &'static str = "detours";

    fn schema() -> SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
            schema(&[
                ("cpu", DataType::UInt32),
                ("start_ns", DataType::UInt64),
                ("duration_ns", DataType::UInt64),
                ("own", DataType::Boolean),
            ])
        });
        Arc::clone(&SCHEMA)
    }

    fn to_batch(rows: &[(Cpu, Self)]) -> Result<RecordBatch, ArrowError> {
        let own = BooleanArray::from(rows.iter().map(|(_, d)| d.own).collect::<Vec<_>>());
        let start = u64s(rows, |(_, d)| d.start.as_nanos());
        let duration = u64s(rows, |(_, d)| d.duration.as_nanos());
        RecordBatch::try_new(Self::schema(), vec![cpus(rows), start, duration, Arc::new(own)])
    }

    fn from_batch(batch: &RecordBatch) -> Result<Vec<(Cpu, Self)>, String> {
        let (cpu, start, duration) =
            (u32s_of(batch, "cpu")?, times_of(batch, "start_ns")?, times_of(batch, "duration_ns")?);
        let own = column(batch, "own")?
            .as_boolean_opt()
            .filter(|own| own.null_count() == 0)
            .ok_or("the column `own` is not boolean, or has gaps")?;
        let row = |i: usize| {
            let (start, duration) = (Nanos::from_nanos(start.value(i)), Nanos::from_nanos(duration.value(i)));
            (Cpu(cpu.value(i)), Detour { start, duration, own: own.value(i) })
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }
}

impl Row for Quantum {
    const TABLE: &'static str = "quanta";

    fn schema() -> SchemaRef {
        schema(&[
            ("cpu", DataType::UInt32),
            ("start_ns", DataType::UInt64),
            ("duration_ns", DataType::UInt64),
            ("work", DataType::UInt64),
        ])
    }

    fn to_batch(rows: &[(Cpu, Self)]) -> Result<RecordBatch, ArrowError> {
        let start = u64s(rows, |(_, q)| q.start.as_nanos());
        let duration = u64s(rows, |(_, q)| q.duration.as_nanos());
        let work = u64s(rows, |(_, q)| q.work);
        RecordBatch::try_new(Self::schema(), vec![cpus(rows), start, duration, work])
    }

    fn from_batch(batch: &RecordBatch) -> Result<Vec<(Cpu, Self)>, String> {
        let (cpu, start, duration) =
            (u32s_of(batch, "cpu")?, times_of(batch, "start_ns")?, times_of(batch, "duration_ns")?);
        let work = times_of(batch, "work")?;
        let row = |i: usize| {
            let (start, duration) = (Nanos::from_nanos(start.value(i)), Nanos::from_nanos(duration.value(i)));
            (Cpu(cpu.value(i)), Quantum { start, duration, work: work.value(i) })
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }
}

pub(super) fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, String> {
    batch.column_by_name(name).ok_or_else(|| format!("the column `{name}` is missing"))
}

pub(super) fn u32s_of<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a UInt32Array, String> {
    column(batch, name)?
        .as_primitive_opt::<UInt32Type>()
        .filter(|values| values.null_count() == 0)
        .ok_or_else(|| format!("the column `{name}` is not of 32-bit unsigned integers, or has gaps"))
}

pub(super) fn times_of<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a UInt64Array, String> {
    column(batch, name)?
        .as_primitive_opt::<UInt64Type>()
        .filter(|values| values.null_count() == 0)
        .ok_or_else(|| format!("the column `{name}` is not of 64-bit unsigned integers, or has gaps"))
}
