//! The tables of a recording, sound as Arrow streams and Parquet files, and hostile in what they hold: columns that are absent or of another
//! type, gaps, times that go back or overflow; and then some bytes changed.
#![no_main]

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use quell_recording::Recording;

const TABLES: [(&str, &[&str]); 4] = [
    ("detours", &["cpu", "start_ns", "duration_ns", "own?"]),
    ("quanta", &["cpu", "start_ns", "duration_ns", "work"]),
    (
        "intervals",
        &["cpu", "start_ns", "duration_ns", "net_ns", "source$", "pid", "victim", "detail$", "cause$"],
    ),
    ("phases", &["cpu", "start_ns", "duration_ns", "work", "rank", "phase", "wait_ns", "total_ns"]),
];
const METHODS: [&str; 4] = ["detour", "ftq", "kernel", "phases"];
const TIMES: [u64; 8] = [0, 1, 500, 1_000, 999_999, 1_000_000, u64::MAX / 2, u64::MAX];
const WORDS: [&str; 8] =
    ["tick", "task:a", "irq:nvme0q1", "softirq:sched", "", "task:", "\u{1b}[2J", "unattributed"];

fn column(u: &mut Unstructured<'_>, name: &str, rows: usize) -> Result<ArrayRef> {
    let gaps = u.ratio(1, 32)?;
    let gap = |u: &mut Unstructured<'_>| -> Result<bool> { Ok(gaps && u.ratio(1, 4)?) };
    macro_rules! filled {
        ($array:ty, $value:expr) => {{
            let mut values = Vec::with_capacity(rows);
            for _ in 0..rows {
                values.push(if gap(u)? { None } else { Some($value(u)?) });
            }
            Arc::new(<$array>::from(values)) as ArrayRef
        }};
    }
    let time = |u: &mut Unstructured<'_>| -> Result<u64> {
        if u.ratio(3, 4)? { u.int_in_range(0..=2_000_000) } else { u.choose(&TIMES).copied() }
    };
    let text = |u: &mut Unstructured<'_>| u.choose(&WORDS).copied();
    let kind = match name {
        _ if u.ratio(1, 32)? => u.int_in_range(0..=4)?,
        "cpu" | "pid" | "victim" | "rank" => 0,
        _ if name.ends_with('?') => 2,
        _ if name.ends_with('$') => 3,
        _ => 1,
    };
    Ok(match kind {
        0 => filled!(UInt32Array, |u: &mut Unstructured<'_>| u.int_in_range(0..=2_u32)),
        1 => filled!(UInt64Array, time),
        2 => filled!(BooleanArray, |u: &mut Unstructured<'_>| u.arbitrary::<bool>()),
        3 => filled!(StringArray, text),
        _ => filled!(Int64Array, |u: &mut Unstructured<'_>| u.arbitrary::<i64>()),
    })
}

fn batch(u: &mut Unstructured<'_>, columns: &[&str]) -> Result<Option<RecordBatch>> {
    let rows = u.int_in_range(0..=24)?;
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for name in columns {
        if u.ratio(1, 64)? {
            continue;
        }
        let array = column(u, name, rows)?;
        let data_type: DataType = array.data_type().clone();
        let optional = array.null_count() > 0 || matches!(*name, "detail$" | "cause$");
        fields.push(Field::new(name.trim_end_matches(['?', '$']), data_type, optional));
        arrays.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).ok())
}

fn parquet(u: &mut Unstructured<'_>, batch: &RecordBatch) -> Result<Vec<u8>> {
    let version = if u.arbitrary()? { WriterVersion::PARQUET_1_0 } else { WriterVersion::PARQUET_2_0 };
    let compression =
        if u.arbitrary()? { Compression::UNCOMPRESSED } else { Compression::ZSTD(Default::default()) };
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(compression)
        .set_dictionary_enabled(u.arbitrary()?)
        .set_statistics_enabled(if u.arbitrary()? {
            EnabledStatistics::Page
        } else {
            EnabledStatistics::None
        })
        .set_data_page_row_count_limit(u.int_in_range(1..=32)?)
        .set_max_row_group_row_count(Some(u.int_in_range(1..=32)?))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).expect("a schema");
    writer.write(batch).expect("memory has room");
    Ok(writer.into_inner().expect("memory has room"))
}

fn arrow(batch: &RecordBatch, ends: bool) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a schema");
    writer.write(batch).expect("memory has room");
    if ends {
        writer.finish().expect("memory has room");
    }
    writer.into_inner().expect("memory has room")
}

/// The name and the bytes of a table, and the method of its recording.
fn made(u: &mut Unstructured<'_>) -> Result<Option<(String, Vec<u8>, &'static str)>> {
    let which = u.int_in_range(0..=3)?;
    let (name, columns) = TABLES[which];
    let method = METHODS[if u.ratio(1, 16)? { u.int_in_range(0..=3)? } else { which }];
    let Some(batch) = batch(u, columns)? else { return Ok(None) };
    let is_parquet: bool = u.arbitrary()?;
    let mut bytes = if is_parquet { parquet(u, &batch)? } else { arrow(&batch, u.arbitrary()?) };
    for _ in 0..*u.choose(&[0, 0, 1, 1, 2, 4])? {
        let place = u.choose_index(bytes.len())?;
        bytes[place] = u.arbitrary()?;
    }
    let ending = if is_parquet { "parquet" } else { "arrow" };
    Ok(Some((format!("{name}.{ending}"), bytes, method)))
}

fn manifest(method: &str) -> String {
    let cpus = [0, 1].map(|cpu| {
        format!(
            r#"{{"cpu":{cpu},"core":null,"package":null,"numa_node":null,"start_ns":0,"end_ns":1000000,
"resolution_ns":null,"probe_loop":null,"lost":0}}"#
        )
    });
    format!(
        r#"{{"format":"quell.recording","version":1,"quell":"0","state":"complete","note":null,"host":null,"kernel":null,
"processor":null,"command":[],"zero_unix_ns":null,"zero_monotonic_ns":null,"method":"{method}","clock":null,
"threshold_ns":null,"quantum_ns":null,"cpus":[{}],"warnings":[]}}"#,
        cpus.join(",")
    )
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(Some((name, bytes, method))) = made(&mut Unstructured::new(bytes)) else { return };
    // The decoders' panics on damaged tables are contained by the reader; only what escapes it is a finding.
    std::panic::set_hook(Box::new(|_| ()));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("manifest.json"), manifest(method)).expect("room");
    std::fs::write(folder.path().join(name), bytes).expect("room");
    if let Ok(recording) = Recording::open(folder.path()) {
        let _ = quell_analysis::overview::overview(&recording);
    }
    let _ = quell_recording::read_phases(folder.path());
});
