//! Where the rows of a run go: to a recording on disk ([`Disk`]), or to another consumer.

use std::path::Path;
use std::time::Duration;

use quell_recording::{Cpu, Detour, Error, Manifest, Nanos, Progress, Quantum, Warning, Writer};

use super::{RowSource, Status};

/// Rows reach the file at most about this long after they were found. Two of the writer's longest sleeps: each time that it wakes, the core's caches
/// hold nothing of its own any more.
const FLUSH: Nanos = Nanos::from_nanos(600_000_000);

/// Receives what the probes find. All methods run on the writer's thread, between two sleeps: the time that they take on a
/// probed CPU counts as quell's own.
pub trait Sink {
    /// The zero comes next: what other buffers hold from before can go.
    fn discard(&mut self) {}

    /// The run begins. The manifest has its zero. Rows from before the zero must be left out.
    ///
    /// # Errors
    /// If there is no place for rows; the run is then cancelled.
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

    /// Takes the progress of the run: all rows up to then have been handed over.
    ///
    /// # Errors
    /// As [`Self::detours`].
    fn progress(&mut self, progress: &Progress) -> Result<(), Error>;

    /// A CPU went offline, or was closed to quell, after `last`: it has no more rows.
    fn closed(&mut self, _cpu: Cpu, _last: Nanos) {}

    /// Called after each time that the probes' buffers were emptied, to empty other buffers. Returns how full the
    /// fullest of these was, 0 to 1.
    ///
    /// # Errors
    /// As [`Self::detours`].
    fn look(&mut self) -> Result<f64, Error>;

    /// How long the buffers that [`Self::look`] empties can wait, even at the highest rate.
    fn drain_interval(&self) -> Duration {
        Duration::MAX
    }

    /// Number of rows lost so far from the buffers that [`Self::look`] empties.
    fn lost(&self) -> u64;

    /// Called after each flush.
    fn status(&mut self, status: Status);

    /// When rows should come next, after they were handed over at `flushed`.
    fn next_flush(&self, flushed: Nanos) -> Nanos;

    /// Sleeps for at most `length`; a signal, or another event that the sink waits for, may end the sleep earlier.
    fn sleep_for(&mut self, length: Duration) {
        sleep_for(length);
    }

    /// The run is over, and the manifest is complete. `written` is the result of writing the rows.
    ///
    /// # Errors
    /// The one in `written`, or another that occurs while finishing.
    fn end(&mut self, manifest: &mut Manifest, written: Result<(), Error>) -> Result<(), Error>;
}

/// A recording in a folder, with the second source whose rows go into it.
pub(super) struct Disk<'a> {
    folder: &'a Path,
    writer: Option<Writer>,
    /// The manifest as it is in the folder.
    manifest: Option<Manifest>,
    rows: &'a mut dyn RowSource,
    status: &'a mut dyn FnMut(Status),
}

impl<'a> Disk<'a> {
    pub fn new(folder: &'a Path, rows: &'a mut dyn RowSource, status: &'a mut dyn FnMut(Status)) -> Self {
        Self { folder, writer: None, manifest: None, rows, status }
    }
}

impl Sink for Disk<'_> {
    fn discard(&mut self) {
        self.rows.discard();
    }

    fn begin(&mut self, manifest: &mut Manifest) -> Result<(), Error> {
        self.rows.begin(manifest);
        self.writer = Some(Writer::create(self.folder, manifest)?);
        self.manifest = Some(manifest.clone());
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

    /// Keeps the end on disk, for a recording that is killed later.
    fn closed(&mut self, cpu: Cpu, last: Nanos) {
        let (Some(writer), Some(manifest)) = (&self.writer, &mut self.manifest) else { return };
        for facts in manifest.cpus.iter_mut().filter(|facts| facts.cpu == cpu) {
            // Zero would be an end that is not known.
            facts.end_ns = last.max(Nanos::from_nanos(1));
        }
        manifest.warnings.push(Warning::CpuClosed { cpu: cpu.0 });
        // If the disk takes nothing more, the next rows say so.
        let _ = writer.describe(manifest);
    }

    fn look(&mut self) -> Result<f64, Error> {
        self.writer.as_mut().map_or(Ok(0.0), |writer| self.rows.collect(writer))
    }

    fn drain_interval(&self) -> Duration {
        self.rows.drain_interval()
    }

    fn lost(&self) -> u64 {
        self.rows.lost()
    }

    fn status(&mut self, status: Status) {
        (self.status)(status);
    }

    fn next_flush(&self, flushed: Nanos) -> Nanos {
        flushed + FLUSH
    }

    /// Finishes the recording, or keeps what was written before an error.
    fn end(&mut self, manifest: &mut Manifest, written: Result<(), Error>) -> Result<(), Error> {
        self.rows.complete(manifest);
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

/// Sleeps until a signal arrives or the time is over.
pub(super) fn sleep_for(length: Duration) {
    let time = libc::timespec {
        tv_sec: length.as_secs() as _,
        tv_nsec: libc::c_long::from(length.subsec_nanos() as i32),
    };
    // SAFETY: `time` lives through the call; a null pointer means that the remaining time is not requested.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use quell_recording::{CpuFacts, Method, Recording, Span, State};

    use super::*;
    use crate::probe::Alone;

    #[test]
    fn the_end_of_a_closed_cpu_survives_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.quell");
        let mut manifest = Manifest::new(Method::Detour, State::Recording);
        manifest.cpus = [0, 1].map(|cpu| CpuFacts::from_span(Cpu(cpu), Span::default())).into();
        let (mut rows, mut status) = (Alone, |_| {});
        let mut disk = Disk::new(&path, &mut rows, &mut status);
        disk.begin(&mut manifest).unwrap();
        disk.closed(Cpu(1), Nanos::from_secs(60));
        let until_ns = Nanos::from_secs(3600);
        disk.progress(&Progress { until_ns, lost: vec![0, 0], intervals_lost: 0 }).unwrap();
        let killed = Recording::open(&path).unwrap();
        assert_eq!(
            killed.traces.iter().map(|trace| trace.span.end).collect::<Vec<_>>(),
            [until_ns, Nanos::from_secs(60)]
        );
        assert_eq!(killed.manifest.warnings, [Warning::CpuClosed { cpu: 1 }]);
    }
}
