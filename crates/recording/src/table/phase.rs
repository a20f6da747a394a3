//! The columns of phases: those of a quantum, so that a reader of quanta can read them too, and the rank's.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::{Row, cpus, schema, times_of, u32s_of, u64s};
use crate::phase::Phase;
use crate::{Cpu, Nanos, Quantum};

impl Row for Phase {
    const TABLE: &'static str = Quantum::TABLE;

    fn schema() -> SchemaRef {
        schema(&[
            ("cpu", DataType::UInt32),
            ("start_ns", DataType::UInt64),
            ("duration_ns", DataType::UInt64),
            ("work", DataType::UInt64),
            ("rank", DataType::UInt32),
            ("phase", DataType::UInt64),
            ("wait_ns", DataType::UInt64),
            ("total_ns", DataType::UInt64),
        ])
    }

    fn to_batch(rows: &[(Cpu, Self)]) -> Result<RecordBatch, ArrowError> {
        let rank = arrow_array::UInt32Array::from_iter_values(rows.iter().map(|(_, p)| p.rank));
        let columns = vec![
            cpus(rows),
            u64s(rows, |(_, p)| p.start.as_nanos()),
            u64s(rows, |(_, p)| p.compute.as_nanos()),
            u64s(rows, |(_, p)| p.work),
            std::sync::Arc::new(rank) as _,
            u64s(rows, |(_, p)| p.index),
            u64s(rows, |(_, p)| p.wait.as_nanos()),
            u64s(rows, |(_, p)| p.total().as_nanos()),
        ];
        RecordBatch::try_new(Self::schema(), columns)
    }

    /// Ignores `total_ns`, which is for other readers: it is the sum of two columns that are read.
    fn from_batch(batch: &RecordBatch) -> Result<Vec<(Cpu, Self)>, String> {
        let (cpu, rank) = (u32s_of(batch, "cpu")?, u32s_of(batch, "rank")?);
        let (start, compute) = (times_of(batch, "start_ns")?, times_of(batch, "duration_ns")?);
        let (work, index) = (times_of(batch, "work")?, times_of(batch, "phase")?);
        let wait = times_of(batch, "wait_ns")?;
        let row = |i: usize| {
            let phase = Self {
                rank: rank.value(i),
                index: index.value(i),
                start: Nanos::from_nanos(start.value(i)),
                work: work.value(i),
                compute: Nanos::from_nanos(compute.value(i)),
                wait: Nanos::from_nanos(wait.value(i)),
            };
            (Cpu(cpu.value(i)), phase)
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }
}
