//! A file that Parquet's reader reads. It remembers the system's errors, which the reader turns into text: a disk that fails is not a damaged
//! table.

use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fs_err as fs;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The first error of the system, if any.
type Failed = Arc<Mutex<Option<io::Error>>>;

/// The file of a table.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    file: fs::File,
    length: u64,
    failed: Failed,
}

impl ParquetFile {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        Ok(Self { length: file.metadata()?.len(), file, failed: Failed::default() })
    }

    /// Takes the first error of the system from here, after the reader has failed.
    pub fn failures(&self) -> impl Fn() -> Option<io::Error> + use<> {
        let failed = Arc::clone(&self.failed);
        move || failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn at(&self, start: u64) -> io::Result<fs::File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

fn note<T>(failed: &Failed, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| {
        let text = io::Error::new(error.kind(), error.to_string());
        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        text
    })
}

impl Length for ParquetFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for ParquetFile {
    type T = Noted<BufReader<fs::File>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let reader = BufReader::new(note(&self.failed, self.at(start))?);
        Ok(Noted { reader, failed: Arc::clone(&self.failed) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A damaged table may claim any length.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are beyond the end of the file"
            )));
        }
        let mut buffer = Vec::new();
        let memory = buffer.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory.into());
        note(&self.failed, memory)?;
        let read = note(
            &self.failed,
            self.at(start).and_then(|file| file.take(length as u64).read_to_end(&mut buffer)),
        )?;
        if read != length {
            return Err(ParquetError::EOF(format!(
                "the file ends after {read} of {length} bytes at {start}"
            )));
        }
        Ok(buffer.into())
    }
}

/// A reader that notes the system's errors.
#[derive(Debug)]
pub(crate) struct Noted<R> {
    reader: R,
    failed: Failed,
}

impl<R: Read> Read for Noted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.reader.read(buffer) {
            // The caller reads again.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            other => note(&self.failed, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_the_file_is_no_allocation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, b"0123456789").unwrap();
        let file = ParquetFile::open(&path).unwrap();
        assert_eq!(file.get_bytes(2, 3).unwrap().as_ref(), b"234");
        assert!(file.get_bytes(2, usize::MAX).is_err() && file.get_bytes(u64::MAX, 1).is_err());
        assert!(file.get_bytes(0, 11).is_err());
        assert!(file.failures()().is_none(), "the system did nothing wrong");
        let mut rest = String::new();
        file.get_read(7).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "789");
    }

    #[test]
    fn what_the_system_refuses_is_remembered_once() {
        let folder = tempfile::tempdir().unwrap();
        // A folder can be opened, and not be read.
        let file = ParquetFile::open(folder.path()).unwrap();
        let file = ParquetFile { length: 100, ..file };
        let failures = file.failures();
        assert!(file.get_bytes(0, 8).is_err());
        assert_eq!(failures().map(|error| error.kind()), Some(io::ErrorKind::IsADirectory));
        assert!(failures().is_none());
    }
}
