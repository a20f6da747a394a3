//! Where the rows of a run go: a recording on disk ([`Disk`]), or whoever watches.

use std::path::Path;
use std::time::Duration;

use quell_recording::{Cpu, Detour, Error, Manifest, Nanos, Progress, Quantum, Writer};

use super::{Beside, Status};

/// Rows reach the file at most about this long after they were found.
const FLUSH: Nanos = Nanos::from_nanos(700_000_000);

/// Takes what the probes find. All of it is called on the writer's thread, between two sleeps: what it costs on a
/// probed CPU counts as quell's own.
pub trait Sink {
    /// The run begins: its zero is in the manifest. Rows from before the zero are not wanted.
    ///
    /// # Errors
    /// Where there is no place for rows; the run is then called off.
    fn begin(&mut self, manifest: &mut Manifest) -> Result<(), Error>;

    /// Takes detours; those of one CPU come in order of their start.
    ///
    /// # Errors
    /// Those of the place where rows go; they end the run.
    fn detours(&mut self, rows: &[(Cpu, Detour)]) -> Result<(), Error>;

    /// Takes quanta; as [`Self::detours`].
    ///
    /// # Errors
    /// As [`Self::detours`].
    fn quanta(&mut self, rows: &[(Cpu, Quantum)]) -> Result<(), Error>;

    /// Takes how far the run is: all rows up to then have been handed over.
    ///
    /// # Errors
    /// As [`Self::detours`].
    fn progress(&mut self, progress: &Progress) -> Result<(), Error>;

    /// Called at each look at the probes' buffers, after it: the time to empty other buffers. Returns how full the
    /// fullest was, 0 to 1.
    ///
    /// # Errors
    /// As [`Self::detours`].
    fn look(&mut self) -> Result<f64, Error>;

    /// How long what is emptied in [`Self::look`] can wait, whatever comes.
    fn patience(&self) -> Duration {
        Duration::MAX
    }

    /// Rows lost so far by what is emptied in [`Self::look`].
    fn lost(&self) -> u64;

    /// Told after each flush.
    fn status(&mut self, status: Status);

    /// When rows are wanted next, after they were handed over at `flushed`.
    fn next_flush(&self, flushed: Nanos) -> Nanos;

    /// Sleeps at most so long; a signal, or what else it waits for, may wake it earlier.
    fn doze(&mut self, length: Duration) {
        doze(length);
    }

    /// The run is over, and the manifest complete. `written` is how the rows fared.
    ///
    /// # Errors
    /// That in `written`, or another on the way to the end.
    fn end(&mut self, manifest: &mut Manifest, written: Result<(), Error>) -> Result<(), Error>;
}

/// A recording in a folder, and what runs beside the probes into it.
pub(super) struct Disk<'a> {
    folder: &'a Path,
    writer: Option<Writer>,
    beside: &'a mut dyn Beside,
    status: &'a mut dyn FnMut(Status),
}

impl<'a> Disk<'a> {
    pub fn new(folder: &'a Path, beside: &'a mut dyn Beside, status: &'a mut dyn FnMut(Status)) -> Self {
        Self { folder, writer: None, beside, status }
    }
}

impl Sink for Disk<'_> {
    fn begin(&mut self, manifest: &mut Manifest) -> Result<(), Error> {
        self.beside.begin(manifest);
        self.writer = Some(Writer::create(self.folder, manifest)?);
        Ok(())
    }

    fn detours(&mut self, rows: &[(Cpu, Detour)]) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.detours(rows))
    }

    fn quanta(&mut self, rows: &[(Cpu, Quantum)]) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.quanta(rows))
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.progress(progress))
    }

    fn look(&mut self) -> Result<f64, Error> {
        self.writer.as_mut().map_or(Ok(0.0), |writer| self.beside.collect(writer))
    }

    fn patience(&self) -> Duration {
        self.beside.patience()
    }

    fn lost(&self) -> u64 {
        self.beside.lost()
    }

    fn status(&mut self, status: Status) {
        (self.status)(status);
    }

    fn next_flush(&self, flushed: Nanos) -> Nanos {
        flushed + FLUSH
    }

    /// Finishes the recording, or keeps what an error left of it.
    fn end(&mut self, manifest: &mut Manifest, written: Result<(), Error>) -> Result<(), Error> {
        self.beside.complete(manifest);
        match (self.writer.take(), written) {
            (Some(writer), Ok(())) => writer.finish(manifest),
            (Some(writer), Err(error)) => {
                writer.abandon(manifest, &error);
                Err(error)
            }
            (None, written) => written,
        }
    }
}

/// Sleeps, and wakes early for a signal.
pub(super) fn doze(length: Duration) {
    let time = libc::timespec {
        tv_sec: length.as_secs() as _,
        tv_nsec: libc::c_long::from(length.subsec_nanos() as i32),
    };
    // SAFETY: `time` lives through the call; the rest of the time is not asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}
