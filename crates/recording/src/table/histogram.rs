//! The columns of histograms.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::{Row, column, cpus, schema, times_of, u32s_of, u64s};
use crate::histogram::Bucket;
use crate::{Cpu, Nanos};

impl Row for Bucket {
    const TABLE: &'static str = "histograms";

    fn schema() -> SchemaRef {
        schema(&[
            ("cpu", DataType::UInt32),
            ("thread", DataType::UInt32),
            ("kind", DataType::Utf8),
            ("from_ns", DataType::UInt64),
            ("to_ns", DataType::UInt64),
            ("count", DataType::UInt64),
        ])
    }

    fn to_batch(rows: &[(Cpu, Self)]) -> Result<RecordBatch, ArrowError> {
        let columns = vec![
            cpus(rows),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|(_, b)| b.thread))) as _,
            Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, b)| b.kind.name()))) as _,
            u64s(rows, |(_, b)| b.from.as_nanos()),
            u64s(rows, |(_, b)| b.to.as_nanos()),
            u64s(rows, |(_, b)| b.count),
        ];
        RecordBatch::try_new(Self::schema(), columns)
    }

    fn from_batch(batch: &RecordBatch) -> Result<Vec<(Cpu, Self)>, String> {
        let (cpu, thread) = (u32s_of(batch, "cpu")?, u32s_of(batch, "thread")?);
        let (from, to) = (times_of(batch, "from_ns")?, times_of(batch, "to_ns")?);
        let count = times_of(batch, "count")?;
        let kind = column(batch, "kind")?
            .as_string_opt::<i32>()
            .filter(|values| values.null_count() == 0)
            .ok_or("the column `kind` is not of text, or has gaps")?;
        let row = |i: usize| {
            let bucket = Self {
                thread: thread.value(i),
                kind: kind.value(i).parse()?,
                from: Nanos::from_nanos(from.value(i)),
                to: Nanos::from_nanos(to.value(i)),
                count: count.value(i),
            };
            Ok((Cpu(cpu.value(i)), bucket))
        };
        (0..batch.num_rows()).map(row).collect()
    }
}
