//! A second source of rows for a recording, on the writer's thread: the kernel recorder.

use std::time::Duration;

use quell_recording::{Error, Manifest, Writer};

/// A source of rows that the writer empties whenever it empties the probes' buffers.
pub trait RowSource {
    /// Drops what has arrived: the zero comes next, and a full buffer would lose what comes after it.
    fn discard(&mut self) {}

    /// The run begins. The manifest has its zero and is not on disk yet. Rows from before the zero must be left out.
    fn begin(&mut self, manifest: &mut Manifest);

    /// Writes all rows that have arrived since the last call; returns how full its fullest buffer was, 0 to 1.
    ///
    /// # Errors
    /// Those of the writer.
    fn collect(&mut self, writer: &mut Writer) -> Result<f64, Error>;

    /// How long its buffers can go without being emptied, even at the highest rate.
    fn drain_interval(&self) -> Duration;

    /// Rows lost so far.
    fn lost(&self) -> u64;

    /// The run is over, and all rows are written.
    fn complete(&mut self, manifest: &mut Manifest);
}

/// No second source.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl RowSource for Alone {
    fn begin(&mut self, _: &mut Manifest) {}

    fn collect(&mut self, _: &mut Writer) -> Result<f64, Error> {
        Ok(0.0)
    }

    fn drain_interval(&self) -> Duration {
        Duration::MAX
    }

    fn lost(&self) -> u64 {
        0
    }

    fn complete(&mut self, _: &mut Manifest) {}
}
