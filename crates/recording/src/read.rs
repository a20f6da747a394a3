//! Reads a recording: complete, still growing, or torn.

mod last_flush;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::histogram::check_buckets;
use crate::manifest::State;
use crate::parquet_file::ParquetFile;
use crate::table::Row;
use crate::{
    Bucket, Cpu, CpuFacts, Detour, Error, Histogram, Interval, Intervals, Manifest, Quanta, Quantum, Span,
    Thread, Trace, whole_file,
};

/// A recording of one node, completely in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The path from which it was read.
    pub path: PathBuf,
    /// All that is not a row. If the recording did not end, the spans and the numbers of lost rows are those of the last
    /// flush.
    pub manifest: Manifest,
    /// One trace per recorded CPU, in the manifest's order; for the detour method.
    pub traces: Vec<Trace>,
    /// One series per recorded CPU, in the manifest's order; for FWQ, FTQ and loads from memory.
    pub quanta: Vec<Quanta>,
    /// The kernel's intervals on each recorded CPU, in the manifest's order; empty if sources are not known.
    pub intervals: Vec<Intervals>,
    /// The threads of a recorded command, by their start.
    pub threads: Vec<Thread>,
    /// The counts of another tool on each CPU, in the manifest's order; for the method `histogram`.
    pub histograms: Vec<Histogram>,
}

impl Recording {
    /// Reads the recording in `folder`. One that was cut off is read up to its last complete flush.
    ///
    /// # Errors
    /// [`Error::NotARecording`], [`Error::Newer`], [`Error::Malformed`] with the file and the reason, or
    /// [`Error::Io`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut manifest = Manifest::read(folder)?;
        let (detours, detours_torn) = read_table::<Detour>(folder)?;
        let (quanta, quanta_torn) = read_table::<Quantum>(folder)?;
        let (intervals, intervals_torn) = read_table::<Interval>(folder)?;
        let (threads, threads_torn) = read_table::<Thread>(folder)?;
        let (buckets, buckets_torn) = read_table::<Bucket>(folder)?;
        if matches!(manifest.state, State::Recording | State::Failed) {
            last_flush::complete(folder, &mut manifest, &detours, &quanta, &intervals)?;
        } else if detours_torn || quanta_torn || intervals_torn || threads_torn || buckets_torn {
            let reason = "a table is cut off, though the manifest calls the recording complete";
            return Err(Error::malformed(folder, reason));
        }
        let malformed = |reason| Error::malformed(folder, reason);
        check_rows(&manifest, &detours, &quanta, &intervals, &buckets).map_err(malformed)?;
        let traces = traces(&manifest, detours).map_err(malformed)?;
        let quanta = series(&manifest, quanta).map_err(malformed)?;
        let intervals = kernel_side(&manifest, intervals).map_err(malformed)?;
        let histograms = histograms(&manifest, buckets).map_err(malformed)?;
        let mut threads: Vec<Thread> = threads.into_iter().map(|(_, thread)| thread).collect();
        threads.sort_by_key(|thread| (thread.start, thread.tid));
        Ok(Self { path: folder.to_owned(), manifest, traces, quanta, intervals, threads, histograms })
    }

    /// A recording of detours alone, from a file at `path` in another format.
    pub(crate) fn from_traces(path: &Path, manifest: Manifest, traces: Vec<Trace>) -> Self {
        let path = path.to_owned();
        let (quanta, intervals, threads, histograms) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { path, manifest, traces, quanta, intervals, threads, histograms }
    }

    /// The recording's display name: its folder without `.quell`.
    pub fn name(&self) -> String {
        self.path.file_stem().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}

/// Checks that the rows in the manifest's counts exist: a table that was not copied must not look like no noise.
fn check_rows(
    manifest: &Manifest,
    detours: &[(Cpu, Detour)],
    quanta: &[(Cpu, Quantum)],
    intervals: &[(Cpu, Interval)],
    buckets: &[(Cpu, Bucket)],
) -> Result<(), String> {
    if matches!(manifest.state, State::Recording | State::Failed) {
        return Ok(());
    }
    let rows = detours.iter().map(|row| row.0).chain(quanta.iter().map(|row| row.0));
    let probed = counts(rows.chain(buckets.iter().map(|row| row.0)));
    let seen = counts(intervals.iter().map(|row| row.0));
    for facts in &manifest.cpus {
        for (what, counted, found) in [("rows", facts.rows, &probed), ("intervals", facts.intervals, &seen)] {
            let found = found.get(&facts.cpu).copied().unwrap_or(0);
            if let Some(counted) = counted.filter(|&counted| counted != found) {
                return Err(format!(
                    "the manifest counts {counted} {what} of CPU {} and the tables hold {found}: a table is missing or was \
                     cut off",
                    facts.cpu
                ));
            }
        }
    }
    Ok(())
}

fn counts(cpus: impl Iterator<Item = Cpu>) -> BTreeMap<Cpu, u64> {
    let mut counts: BTreeMap<Cpu, u64> = BTreeMap::new();
    for cpu in cpus {
        *counts.entry(cpu).or_default() += 1;
    }
    counts
}

/// Receives a batch and the path of its file; may reject it.
type Take<'a> = &'a mut dyn FnMut(&Path, RecordBatch) -> Result<(), Error>;

/// All rows of a table, and whether it ends in the middle of a batch. A missing table has no rows.
pub(crate) fn read_table<R: Row>(folder: &Path) -> Result<(Vec<(Cpu, R)>, bool), Error> {
    let mut rows = Vec::new();
    let torn = read_batches(folder, R::TABLE, &mut |path, batch| {
        rows.extend(R::from_batch(&batch).map_err(|reason| Error::malformed(path, reason))?);
        Ok(())
    })?;
    Ok((rows, torn))
}

/// Passes the batches of a table in order, and returns whether it ends in the middle of one.
pub(crate) fn read_batches(folder: &Path, table: &str, take: Take<'_>) -> Result<bool, Error> {
    let path = folder.join(table).with_extension("parquet");
    if path.exists() {
        whole_file::require_regular(&path)?;
        return read_parquet(&path, take).map(|()| false);
    }
    let path = folder.join(table).with_extension("arrow");
    if !path.exists() {
        return Ok(false);
    }
    whole_file::require_regular(&path)?;
    read_stream(&path, take)
}

/// Rows of a batch: few enough to discard, many enough to compute with.
const BATCH: usize = 1 << 16;

fn read_parquet(path: &Path, take: Take<'_>) -> Result<(), Error> {
    let file = ParquetFile::open(path)?;
    let failure = file.failures();
    let damaged = |e: &dyn std::fmt::Display| {
        failure().map_or_else(|| Error::malformed(path, format!("not a whole Parquet table: {e}")), Error::Io)
    };
    let reader = contain(|| {
        ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.with_batch_size(BATCH).build())
    })
    .and_then(|result| result.map_err(|e| e.to_string()))
    .map_err(|e| damaged(&e))?;
    let mut batches = reader.into_iter();
    while let Some(batch) = contain(|| batches.next()).map_err(|e| damaged(&e))? {
        take(path, batch.map_err(|e| damaged(&e))?)?;
    }
    Ok(())
}

fn read_stream(path: &Path, take: Take<'_>) -> Result<bool, Error> {
    let bytes = whole_file::read(path, u64::MAX)?;
    let whole = &bytes[..whole_messages(&bytes)];
    let torn = whole.len() < bytes.len();
    // A stream whose schema is cut off is from a writer that was killed before its first flush.
    let Ok(Ok(mut batches)) = contain(|| StreamReader::try_new(whole, None)) else {
        return Ok(true);
    };
    loop {
        match contain(|| batches.next()) {
            Ok(None) => return Ok(torn || !batches.is_finished()),
            Ok(Some(Ok(batch))) => take(path, batch)?,
            // Complete batches before the damage are valid; nothing after it can be trusted.
            Ok(Some(Err(_))) | Err(_) => return Ok(true),
        }
    }
}

/// Number of bytes of an Arrow stream that are complete messages. The decoder trusts the lengths that a stream states, so a
/// damaged one could make it allocate any amount of memory; here each length is compared with the size of the file.
fn whole_messages(bytes: &[u8]) -> usize {
    let mut whole = 0;
    loop {
        let rest = &bytes[whole..];
        let word = |at: usize| Some(i32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let length = || {
            let metadata = usize::try_from(word(4).filter(|_| word(0) == Some(-1))?).ok()?;
            if metadata == 0 {
                return Some(8); // The end-of-stream mark.
            }
            let message = arrow_ipc::root_as_message(rest.get(8..metadata.checked_add(8)?)?).ok()?;
            let body = usize::try_from(message.bodyLength()).ok()?;
            metadata.checked_add(8)?.checked_add(body).filter(|&length| length <= rest.len())
        };
        match length() {
            Some(length) => whole += length,
            None => return whole,
        }
    }
}

/// Runs a decoder of another crate on bytes that may be hostile: a panic becomes an error of the file.
pub(crate) fn contain<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)).map_err(|panic| {
        let why = if is_lack_of_memory(&*panic) {
            "not enough memory to unpack it"
        } else {
            "its content is damaged"
        };
        why.to_owned()
    })
}

/// Whether a panic is that of the binding of zstd where the library got no memory.
pub fn is_lack_of_memory(panic: &dyn std::any::Any) -> bool {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .is_some_and(|text| text.starts_with("zstd returned null pointer"))
}

/// Decoders of Arrow and Parquet panic on some damaged files. Readers here turn that into an error. The panic's own
/// message would only confuse, so it is not printed to stderr.
pub fn silence_decoders() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let foreign =
            |file: &str| ["/arrow-", "/parquet-", "/zstd-safe-"].iter().any(|name| file.contains(name));
        if !panic.location().is_some_and(|location| foreign(location.file())) {
            default(panic);
        }
    }));
}

fn traces(manifest: &Manifest, rows: Vec<(Cpu, Detour)>) -> Result<Vec<Trace>, String> {
    let mut of_cpu = by_cpu(&manifest.cpus, rows)?;
    let mut traces = Vec::new();
    for facts in &manifest.cpus {
        let mut detours = of_cpu.remove(&facts.cpu).unwrap_or_default();
        detours.sort_by_key(|d| d.start);
        check_detours(facts.cpu, facts.span(), &detours)?;
        traces.push(Trace { cpu: facts.cpu, span: facts.span(), detours });
    }
    Ok(traces)
}

/// Checks what every user of a trace relies on.
pub(crate) fn check_detours(cpu: Cpu, span: Span, detours: &[Detour]) -> Result<(), String> {
    let mut free = span.start;
    for detour in detours {
        let Some(end) = detour.start.checked_add(detour.duration) else {
            return Err(format!(
                "a detour on CPU {cpu} at {} ns ends beyond all time",
                detour.start.as_nanos()
            ));
        };
        if detour.start < free {
            return Err(format!(
                "the detour on CPU {cpu} at {} ns starts before the one before it ends, or before the span",
                detour.start.as_nanos()
            ));
        }
        if end > span.end {
            return Err(format!(
                "the detour on CPU {cpu} at {} ns ends after the CPU's span",
                detour.start.as_nanos()
            ));
        }
        free = end;
    }
    Ok(())
}

fn series(manifest: &Manifest, rows: Vec<(Cpu, Quantum)>) -> Result<Vec<Quanta>, String> {
    let mut of_cpu = by_cpu(&manifest.cpus, rows)?;
    let take = |facts: &CpuFacts| {
        let mut quanta = of_cpu.remove(&facts.cpu).unwrap_or_default();
        quanta.sort_by_key(|q| q.start);
        Quanta { cpu: facts.cpu, quanta }
    };
    Ok(manifest.cpus.iter().map(take).collect())
}

fn kernel_side(manifest: &Manifest, rows: Vec<(Cpu, Interval)>) -> Result<Vec<Intervals>, String> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut of_cpu = by_cpu(&manifest.cpus, rows)?;
    let mut sides = Vec::new();
    for facts in &manifest.cpus {
        let mut intervals = of_cpu.remove(&facts.cpu).unwrap_or_default();
        intervals.sort_by_key(|interval| interval.start);
        let bad = |i: &Interval| i.start.checked_add(i.duration).is_none() || i.net > i.duration;
        if let Some(interval) = intervals.iter().find(|interval| bad(interval)) {
            return Err(format!(
                "an interval on CPU {} at {} ns ends beyond all time, or takes more than its own length",
                facts.cpu,
                interval.start.as_nanos()
            ));
        }
        sides.push(Intervals { cpu: facts.cpu, intervals });
    }
    Ok(sides)
}

fn histograms(manifest: &Manifest, rows: Vec<(Cpu, Bucket)>) -> Result<Vec<Histogram>, String> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut of_cpu = by_cpu(&manifest.cpus, rows)?;
    let take = |facts: &CpuFacts| {
        let mut buckets = of_cpu.remove(&facts.cpu).unwrap_or_default();
        buckets.sort_unstable();
        check_buckets(facts.cpu, &buckets)?;
        Ok(Histogram { cpu: facts.cpu, buckets })
    };
    manifest.cpus.iter().map(take).collect()
}

fn by_cpu<R>(known: &[CpuFacts], rows: Vec<(Cpu, R)>) -> Result<BTreeMap<Cpu, Vec<R>>, String> {
    let mut of_cpu: BTreeMap<Cpu, Vec<R>> = known.iter().map(|facts| (facts.cpu, Vec::new())).collect();
    for (cpu, row) in rows {
        of_cpu
            .get_mut(&cpu)
            .ok_or_else(|| format!("a row is of CPU {cpu}, which the manifest does not list"))?
            .push(row);
    }
    Ok(of_cpu)
}
