//! Writes a recording so that it can be read at any moment.
//!
//! While it is made, a table is an Arrow IPC stream that is appended to at every flush; `progress.jsonl` gets a line
//! with the time up to which each CPU was observed. At the end the stream becomes Parquet in a temporary file, synced
//! and renamed. Whatever happens in between, [`crate::Recording::open`] finds the rows of all complete flushes.

use std::collections::BTreeMap;
use std::io::{BufWriter, Seek as _};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use fs_err as fs;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use crate::manifest::State;
use crate::table::Row;
use crate::{AtomicFile, Bucket, Cpu, Detour, Error, Interval, Manifest, Nanos, Quantum, Thread};

/// The file that grows by one line per flush.
pub(crate) const PROGRESS: &str = "progress.jsonl";

/// One line of `progress.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Every CPU that was not closed before was observed up to this time, and all its rows up to here are in the tables.
    pub until_ns: Nanos,
    /// Number of rows lost so far per CPU, in the manifest's order.
    pub lost: Vec<u64>,
    /// Number of intervals lost so far, over all CPUs.
    #[serde(default)]
    pub intervals_lost: u64,
}

/// A recording that is being made.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    progress: fs::File,
    detours: Table<Detour>,
    quanta: Table<Quantum>,
    intervals: Table<Interval>,
    threads: Table<Thread>,
    histograms: Table<Bucket>,
    rows: BTreeMap<Cpu, u64>,
    interval_rows: BTreeMap<Cpu, u64>,
}

/// Creates a folder for results, unless it exists. A misspelt path makes no tree of folders.
///
/// # Errors
/// [`Error::NoFolder`] if the folder in which it would be is missing, [`Error::Io`] if it cannot be created.
pub fn create_folder(folder: &Path) -> Result<(), Error> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    check_folder_of(folder)?;
    match fs::create_dir(folder) {
        // Another process may have created it.
        Err(_) if folder.is_dir() => Ok(()),
        other => Ok(other?),
    }
}

/// Checks that the folder of a path exists.
///
/// # Errors
/// [`Error::NoFolder`] if it does not.
pub fn check_folder_of(path: &Path) -> Result<(), Error> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.exists() => {
            Err(Error::NoFolder { folder: parent.to_owned(), path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Checks that a path is free for a recording, before work that takes long.
///
/// # Errors
/// [`Error::Exists`] if the path exists, [`Error::NoFolder`] if that in which it would be is missing.
pub fn check_new(path: &Path) -> Result<(), Error> {
    if path.exists() {
        return Err(Error::Exists { path: path.to_owned() });
    }
    check_folder_of(path)
}

impl Writer {
    /// Creates the folder and its first manifest, whose state is `recording`.
    ///
    /// # Errors
    /// [`Error::Exists`] if the path exists, [`Error::NoFolder`] if that in which it would be is missing, [`Error::Malformed`] for CPUs that no
    /// recording can have, [`Error::Io`] if it cannot be created.
    pub fn create(folder: &Path, manifest: &Manifest) -> Result<Self, Error> {
        check_new(folder)?;
        // What could not be read must not be written.
        manifest.check().map_err(|reason| Error::malformed(folder, reason))?;
        // Of two concurrent writers, on one host or two, only one gets the folder.
        match fs::create_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists { path: folder.to_owned() });
            }
            other => other?,
        }
        write_first(folder, manifest)?;
        Ok(Self {
            folder: folder.to_owned(),
            progress: fs::File::create(folder.join(PROGRESS))?,
            detours: Table::new(folder),
            quanta: Table::new(folder),
            intervals: Table::new(folder),
            threads: Table::new(folder),
            histograms: Table::new(folder),
            rows: BTreeMap::new(),
            interval_rows: BTreeMap::new(),
        })
    }

    /// Writes the first manifest again, with facts that have become known since.
    ///
    /// # Errors
    /// As [`Self::detours`].
    pub fn describe(&self, manifest: &Manifest) -> Result<(), Error> {
        write_first(&self.folder, manifest)
    }

    /// The folder of the recording.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Appends detours. Rows of one CPU must be in order of their start.
    ///
    /// # Errors
    /// [`Error::Io`], for instance on a full disk; what earlier calls wrote stays readable.
    pub fn detours(&mut self, rows: &[(Cpu, Detour)]) -> Result<(), Error> {
        self.detours.append(rows)?;
        count(&mut self.rows, rows);
        Ok(())
    }

    /// Appends quanta; as [`Self::detours`].
    ///
    /// # Errors
    /// As [`Self::detours`].
    pub fn quanta(&mut self, rows: &[(Cpu, Quantum)]) -> Result<(), Error> {
        self.quanta.append(rows)?;
        count(&mut self.rows, rows);
        Ok(())
    }

    /// Appends intervals, in any order.
    ///
    /// # Errors
    /// As [`Self::detours`].
    pub fn intervals(&mut self, rows: &[(Cpu, Interval)]) -> Result<(), Error> {
        self.intervals.append(rows)?;
        count(&mut self.interval_rows, rows);
        Ok(())
    }

    /// The CPUs that have intervals.
    pub fn cpus_with_intervals(&self) -> impl Iterator<Item = Cpu> {
        self.interval_rows.keys().copied()
    }

    /// Number of intervals so far.
    pub fn interval_rows(&self) -> u64 {
        self.interval_rows.values().sum()
    }

    /// Appends threads, each with the CPU on which it ran last.
    ///
    /// # Errors
    /// As [`Self::detours`].
    pub fn threads(&mut self, rows: &[(Cpu, Thread)]) -> Result<(), Error> {
        self.threads.append(rows)
    }

    /// Appends buckets of histograms, in any order.
    ///
    /// # Errors
    /// As [`Self::detours`].
    pub fn histograms(&mut self, rows: &[(Cpu, Bucket)]) -> Result<(), Error> {
        self.histograms.append(rows)?;
        count(&mut self.rows, rows);
        Ok(())
    }

    /// Records the time up to which the rows are complete.
    ///
    /// # Errors
    /// As [`Self::detours`].
    pub fn progress(&mut self, progress: &Progress) -> Result<(), Error> {
        use std::io::Write as _;
        let mut line = serde_json::to_vec(progress).map_err(|e| Error::malformed(&self.folder, e))?;
        line.push(b'\n');
        Ok(self.progress.write_all(&line)?)
    }

    /// Converts the streams to Parquet and writes the last manifest. If that fails, the streams stay as after a
    /// crash, and the manifest states why if the disk has space for it.
    ///
    /// # Errors
    /// [`Error::Io`], for instance on a full disk.
    pub fn finish(self, manifest: &mut Manifest) -> Result<(), Error> {
        for facts in &mut manifest.cpus {
            facts.rows = Some(self.rows.get(&facts.cpu).copied().unwrap_or(0));
            facts.intervals = Some(self.interval_rows.get(&facts.cpu).copied().unwrap_or(0));
        }
        let tables = [
            self.detours.finish(),
            self.quanta.finish(),
            self.intervals.finish(),
            self.threads.finish(),
            self.histograms.finish(),
        ];
        let done = tables.into_iter().collect::<Result<(), _>>().and_then(|()| manifest.write(&self.folder));
        match done {
            Ok(()) => Ok(fs::remove_file(self.folder.join(PROGRESS))?),
            Err(error) => {
                mark_failed(&self.folder, manifest, &error);
                Err(error)
            }
        }
    }

    /// Ends a recording after an error: keeps the streams, without an incomplete batch at the end.
    pub fn abandon(self, manifest: &mut Manifest, error: &Error) {
        self.detours.close();
        self.quanta.close();
        self.intervals.close();
        self.threads.close();
        self.histograms.close();
        mark_failed(&self.folder, manifest, error);
    }
}

fn count<R>(counts: &mut BTreeMap<Cpu, u64>, rows: &[(Cpu, R)]) {
    for of_cpu in rows.chunk_by(|one, next| one.0 == next.0) {
        *counts.entry(of_cpu[0].0).or_default() += of_cpu.len() as u64;
    }
}

fn write_first(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let mut first = manifest.clone();
    first.state = State::Recording;
    first.write(folder)
}

fn mark_failed(folder: &Path, manifest: &mut Manifest, error: &Error) {
    manifest.state = State::Failed;
    manifest.note = Some(error.to_string());
    // Without space for a new manifest the old one stays, whose state shows that the recording did not end.
    let _ = manifest.write(folder);
}

/// Bytes that are written at a time: more than a batch of 1,024 rows has.
const BUFFERED: usize = 1 << 18;

/// One table while it grows. The stream is created with the first rows, so that a kind without rows has no file.
struct Table<R> {
    path: PathBuf,
    stream: Option<StreamWriter<BufWriter<fs::File>>>,
    whole_bytes: u64,
    rows: std::marker::PhantomData<R>,
}

impl<R> std::fmt::Debug for Table<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("path", &self.path)
            .field("whole_bytes", &self.whole_bytes)
            .finish_non_exhaustive()
    }
}

impl<R: Row> Table<R> {
    fn new(folder: &Path) -> Self {
        let path = folder.join(R::TABLE).with_extension("arrow");
        Self { path, stream: None, whole_bytes: 0, rows: std::marker::PhantomData }
    }

    fn append(&mut self, rows: &[(Cpu, R)]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let arrow = |e| arrow_error(&self.path, e);
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let file = fs::File::create(&self.path)?;
                let file = BufWriter::with_capacity(BUFFERED, file);
                none.insert(StreamWriter::try_new(file, &R::schema()).map_err(arrow)?)
            }
        };
        stream.write(&R::to_batch(rows).map_err(arrow)?).map_err(arrow)?;
        stream.flush().map_err(arrow)?;
        // An unknown position only means that a torn batch is not cut off later.
        self.whole_bytes = stream.get_mut().stream_position().unwrap_or(0);
        Ok(())
    }

    fn close(self) {
        // What is buffered is written when the stream goes, so the cut comes after it.
        drop(self.stream);
        if self.whole_bytes > 0
            && let Ok(file) = fs::OpenOptions::new().write(true).open(&self.path)
        {
            let _ = file.set_len(self.whole_bytes);
        }
    }

    /// Converts the stream to Parquet; on failure the stream is left as it is.
    fn finish(mut self) -> Result<(), Error> {
        let arrow = |e| arrow_error(&self.path, e);
        let Some(stream) = &mut self.stream else { return Ok(()) };
        stream.finish().map_err(arrow)?;
        let source = StreamReader::try_new_buffered(fs::File::open(&self.path)?, None).map_err(arrow)?;
        let target = self.path.with_extension("parquet");
        write_parquet(&target, &R::schema(), source)?;
        fs::remove_file(&self.path)?;
        Ok(())
    }
}

/// Writes batches to a Parquet file atomically. Row groups stay small, so that an hour needs no more memory than a second.
pub(crate) fn write_parquet(
    target: &Path,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
) -> Result<(), Error> {
    let parquet = |e: parquet::errors::ParquetError| {
        Error::Io(std::io::Error::other(format!("{}: {e}", target.display())))
    };
    let properties = parquet_properties(schema);
    let mut file = AtomicFile::create(target)?;
    let mut writer =
        ArrowWriter::try_new(&mut file, SchemaRef::clone(schema), Some(properties)).map_err(parquet)?;
    for batch in batches {
        writer.write(&batch.map_err(|e| arrow_error(target, e))?).map_err(parquet)?;
        if writer.in_progress_size() > 8 << 20 {
            writer.flush().map_err(parquet)?;
        }
    }
    writer.close().map_err(parquet)?;
    file.commit()?;
    Ok(())
}

/// Converts an Arrow error to one that names the file. An OS error stays one, so that a full disk is recognised.
fn arrow_error(path: &Path, error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, source) => Error::Io(source),
        other => Error::malformed(path, other),
    }
}

/// Text repeats, so it is dictionary-encoded; numbers seldom repeat.
pub(crate) fn parquet_properties(schema: &Schema) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false);
    for field in schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8) {
        builder = builder.set_column_dictionary_enabled(field.name().as_str().into(), true);
    }
    builder.build()
}
