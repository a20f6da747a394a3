//! The tables of the kernel recorder: `intervals` and `threads`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::{Row, column, cpus, times_of, u32s_of, u64s};
use crate::interval::{Interval, Taken, Thread};
use crate::source::{Source, SourceKind};
use crate::{Cpu, Nanos};

fn u32s<R>(rows: &[R], value: impl Fn(&R) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from(rows.iter().map(value).collect::<Vec<_>>()))
}

/// Bytes of a usual name.
const NAME_BYTES: usize = 16;

fn names<R>(rows: &[R], value: impl Fn(&R) -> Option<&Arc<str>>) -> ArrayRef {
    let mut names = StringBuilder::with_capacity(rows.len(), rows.len() * NAME_BYTES);
    rows.iter().for_each(|row| names.append_option(value(row)));
    Arc::new(names.finish())
}

fn strings_of<'a>(batch: &'a RecordBatch, name: &str, gaps: bool) -> Result<&'a StringArray, String> {
    column(batch, name)?
        .as_string_opt::<i32>()
        .filter(|values| gaps || values.null_count() == 0)
        .ok_or_else(|| format!("the column `{name}` is not of text, or has gaps"))
}

/// Keeps one copy of each name, however many rows have it.
#[derive(Default)]
struct Interned(HashMap<String, Arc<str>>);

impl Interned {
    fn get(&mut self, values: &StringArray, row: usize) -> Option<Arc<str>> {
        values.is_valid(row).then(|| {
            let text = values.value(row);
            if let Some(name) = self.0.get(text) {
                return Arc::clone(name);
            }
            let name: Arc<str> = text.into();
            self.0.insert(text.to_owned(), Arc::clone(&name));
            name
        })
    }
}

impl Row for Interval {
    const TABLE: &'static str = "intervals";

    fn schema() -> SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
            let required = |name: &str, kind: DataType| Field::new(name, kind, false);
            let optional = |name: &str| Field::new(name, DataType::Utf8, true);
            Arc::new(Schema::new(vec![
                required("cpu", DataType::UInt32),
                required("start_ns", DataType::UInt64),
                required("duration_ns", DataType::UInt64),
                required("net_ns", DataType::UInt64),
                required("source", DataType::Utf8),
                required("pid", DataType::UInt32),
                required("victim", DataType::UInt32),
                optional("detail"),
                optional("cause"),
            ]))
        });
        Arc::clone(&SCHEMA)
    }

    fn to_batch(rows: &[(Cpu, Self)]) -> Result<RecordBatch, ArrowError> {
        let mut source = StringBuilder::with_capacity(rows.len(), rows.len() * NAME_BYTES);
        for (_, row) in rows {
            row.source.write_to(&mut source).map_err(|e| ArrowError::ExternalError(Box::new(e)))?;
            source.append_value("");
        }
        RecordBatch::try_new(
            Self::schema(),
            vec![
                cpus(rows),
                u64s(rows, |(_, i)| i.start.as_nanos()),
                u64s(rows, |(_, i)| i.duration.as_nanos()),
                u64s(rows, |(_, i)| i.net.as_nanos()),
                Arc::new(source.finish()),
                u32s(rows, |(_, i)| i.pid),
                u32s(rows, |(_, i)| i.victim),
                names(rows, |(_, i)| i.detail.as_ref()),
                names(rows, |(_, i)| i.cause.as_ref()),
            ],
        )
    }

    fn from_batch(batch: &RecordBatch) -> Result<Vec<(Cpu, Self)>, String> {
        let (cpu, start) = (u32s_of(batch, "cpu")?, times_of(batch, "start_ns")?);
        let (duration, net) = (times_of(batch, "duration_ns")?, times_of(batch, "net_ns")?);
        let (pid, victim) = (u32s_of(batch, "pid")?, u32s_of(batch, "victim")?);
        let source = strings_of(batch, "source", false)?;
        let (detail, cause) = (strings_of(batch, "detail", true)?, strings_of(batch, "cause", true)?);
        let mut interned = Interned::default();
        let mut sources: HashMap<&str, Source> = HashMap::new();
        let row = |i: usize| {
            let text = source.value(i);
            let known = match sources.get(text) {
                Some(known) => known.clone(),
                None => sources.entry(text).or_insert(text.parse()?).clone(),
            };
            let interval = Self {
                start: Nanos::from_nanos(start.value(i)),
                duration: Nanos::from_nanos(duration.value(i)),
                net: Nanos::from_nanos(net.value(i)),
                source: known,
                pid: pid.value(i),
                victim: victim.value(i),
                detail: interned.get(detail, i),
                cause: interned.get(cause, i),
            };
            Ok((Cpu(cpu.value(i)), interval))
        };
        (0..batch.num_rows()).map(row).collect()
    }
}

/// The columns of one kind of source in `threads`.
fn taken_columns(kind: SourceKind) -> (String, String) {
    (format!("{}_ns", kind.name()), format!("{}_count", kind.name()))
}

/// Time and count of the waits that a thread asked for.
const OWN_WAITS: [&str; 4] = ["yielded_ns", "yields", "moved_ns", "moves"];

impl Row for Thread {
    const TABLE: &'static str = "threads";

    fn schema() -> SchemaRef {
        let required = |name: &str, kind: DataType| Field::new(name, kind, false);
        let mut fields = vec![
            required("cpu", DataType::UInt32),
            required("tid", DataType::UInt32),
            required("pid", DataType::UInt32),
            required("comm", DataType::Utf8),
        ];
        let times = ["start_ns", "end_ns", "on_cpu_ns", "run_delay_ns"];
        fields.extend(times.map(|name| required(name, DataType::UInt64)));
        for (time, count) in SourceKind::ALL.map(taken_columns) {
            fields.extend([required(&time, DataType::UInt64), required(&count, DataType::UInt64)]);
        }
        fields.extend(OWN_WAITS.map(|name| required(name, DataType::UInt64)));
        Arc::new(Schema::new(fields))
    }

    fn to_batch(rows: &[(Cpu, Self)]) -> Result<RecordBatch, ArrowError> {
        let mut columns = vec![
            cpus(rows),
            u32s(rows, |(_, t)| t.tid),
            u32s(rows, |(_, t)| t.pid),
            names(rows, |(_, t)| Some(&t.comm)),
            u64s(rows, |(_, t)| t.start.as_nanos()),
            u64s(rows, |(_, t)| t.end.as_nanos()),
            u64s(rows, |(_, t)| t.on_cpu.as_nanos()),
            u64s(rows, |(_, t)| t.run_delay.as_nanos()),
        ];
        for kind in 0..SourceKind::ALL.len() {
            columns.push(u64s(rows, |(_, t)| t.taken[kind].time.as_nanos()));
            columns.push(u64s(rows, |(_, t)| t.taken[kind].count));
        }
        columns.push(u64s(rows, |(_, t)| t.yielded.time.as_nanos()));
        columns.push(u64s(rows, |(_, t)| t.yielded.count));
        columns.push(u64s(rows, |(_, t)| t.moved.time.as_nanos()));
        columns.push(u64s(rows, |(_, t)| t.moved.count));
        RecordBatch::try_new(Self::schema(), columns)
    }

    fn from_batch(batch: &RecordBatch) -> Result<Vec<(Cpu, Self)>, String> {
        let (cpu, tid, pid) = (u32s_of(batch, "cpu")?, u32s_of(batch, "tid")?, u32s_of(batch, "pid")?);
        let comm = strings_of(batch, "comm", false)?;
        let (start, end) = (times_of(batch, "start_ns")?, times_of(batch, "end_ns")?);
        let (on_cpu, run_delay) = (times_of(batch, "on_cpu_ns")?, times_of(batch, "run_delay_ns")?);
        let mut taken = Vec::new();
        for (time, count) in SourceKind::ALL.map(taken_columns) {
            taken.push((times_of(batch, &time)?, times_of(batch, &count)?));
        }
        // Recordings of earlier versions lack these columns.
        let own_wait = |name| batch.column_by_name(name).map(|_| times_of(batch, name)).transpose();
        let own = [
            own_wait(OWN_WAITS[0])?,
            own_wait(OWN_WAITS[1])?,
            own_wait(OWN_WAITS[2])?,
            own_wait(OWN_WAITS[3])?,
        ];
        let nanos = |values: &arrow_array::UInt64Array, i: usize| Nanos::from_nanos(values.value(i));
        let row = |i: usize| {
            let own_at = |column: usize| own[column].map_or(0, |values| values.value(i));
            let own = |column| Taken { time: Nanos::from_nanos(own_at(column)), count: own_at(column + 1) };
            let by_kind = |kind: usize| {
                let (time, count) = taken[kind];
                Taken { time: nanos(time, i), count: count.value(i) }
            };
            let thread = Self {
                tid: tid.value(i),
                pid: pid.value(i),
                comm: comm.value(i).into(),
                start: nanos(start, i),
                end: nanos(end, i),
                on_cpu: nanos(on_cpu, i),
                run_delay: nanos(run_delay, i),
                taken: std::array::from_fn(by_kind),
                yielded: own(0),
                moved: own(2),
            };
            (Cpu(cpu.value(i)), thread)
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }
}
