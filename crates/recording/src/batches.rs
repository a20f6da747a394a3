//! The tables of a recording as stored in its files: Arrow batches, for callers that compute with columns.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use crate::formats::Imported;
use crate::read::read_batches;
use crate::table::Row;
use crate::{Bucket, Cpu, Detour, Error, Interval, Manifest, Method, Phase, Quantum, Thread};

/// A complete table of a recording.
#[derive(Clone, Debug)]
pub struct Batches {
    /// Its columns, as in its file.
    pub schema: SchemaRef,
    /// Its rows, in the file's order.
    pub batches: Vec<RecordBatch>,
}

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Detours that the probe saw.
    Detours,
    /// Intervals of kernel activity.
    Intervals,
    /// Quanta of work or time; for an MPI program its phases.
    Quanta,
    /// Phases of an MPI program; empty for other recordings.
    Phases,
    /// Threads of a recorded command.
    Threads,
    /// Histograms from tools that keep only these.
    Histograms,
}

impl Batches {
    /// Reads a table of the recording in `folder`; a missing table has no rows. A recording that was cut off is read up to its last
    /// complete flush.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the file and the reason, or [`Error::Io`].
    pub fn read(folder: &Path, kind: Kind) -> Result<Self, Error> {
        let is_mpi = || Ok::<_, Error>(Manifest::read(folder)?.method == Method::Phases);
        match kind {
            Kind::Detours => batches_from_folder::<Detour>(folder),
            Kind::Intervals => batches_from_folder::<Interval>(folder),
            Kind::Quanta => batches_from_folder::<Quantum>(folder),
            Kind::Phases if is_mpi()? => batches_from_folder::<Phase>(folder),
            Kind::Phases => Ok(empty::<Phase>()),
            Kind::Threads => batches_from_folder::<Thread>(folder),
            Kind::Histograms => batches_from_folder::<Bucket>(folder),
        }
    }

    /// The table of another tool's file.
    ///
    /// # Errors
    /// [`Error::Malformed`] for rows that do not make a table.
    pub fn from_imported(imported: &Imported, kind: Kind) -> Result<Self, Error> {
        let recording = &imported.recording;
        let detours = || {
            let rows = recording.traces.iter();
            rows.flat_map(|trace| trace.detours.iter().map(|detour| (trace.cpu, *detour))).collect::<Vec<_>>()
        };
        let quanta = || {
            let rows = recording.quanta.iter();
            rows.flat_map(|series| series.quanta.iter().map(|quantum| (series.cpu, *quantum)))
                .collect::<Vec<_>>()
        };
        let intervals = || {
            let rows = recording.intervals.iter();
            rows.flat_map(|side| side.intervals.iter().map(|interval| (side.cpu, interval.clone())))
                .collect::<Vec<_>>()
        };
        let buckets = || {
            let rows = recording.histograms.iter();
            rows.flat_map(|of| of.buckets.iter().map(|bucket| (of.cpu, *bucket))).collect::<Vec<_>>()
        };
        let table = match kind {
            Kind::Detours => batches_from_rows(&detours()),
            Kind::Quanta if imported.phases.is_empty() => batches_from_rows(&quanta()),
            Kind::Quanta | Kind::Phases => batches_from_rows(&imported.phases),
            Kind::Intervals => batches_from_rows(&intervals()),
            Kind::Histograms => batches_from_rows(&buckets()),
            Kind::Threads => Ok(empty::<Thread>()),
        };
        table.map_err(|error| Error::malformed(&recording.path, error.to_string()))
    }
}

fn empty<R: Row>() -> Batches {
    Batches { schema: R::schema(), batches: Vec::new() }
}

fn batches_from_rows<R: Row>(rows: &[(Cpu, R)]) -> Result<Batches, ArrowError> {
    Ok(Batches { schema: R::schema(), batches: vec![R::to_batch(rows)?] })
}

fn batches_from_folder<R: Row>(folder: &Path) -> Result<Batches, Error> {
    let mut batches = Vec::new();
    read_batches(folder, R::TABLE, &mut |_, batch| {
        batches.push(batch);
        Ok(())
    })?;
    let schema = batches.first().map_or_else(R::schema, RecordBatch::schema);
    Ok(Batches { schema, batches })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats;

    #[test]
    fn tables_hold_what_recordings_hold() {
        let text = b"cpu,start_ns,duration_ns,own\n0,10,5,false\n1,20,7,true\n";
        let imported = formats::parse_all(Path::new("a.csv"), text).unwrap();
        let detours = Batches::from_imported(&imported, Kind::Detours).unwrap();
        let rows: Vec<_> =
            detours.batches.iter().flat_map(|batch| Detour::from_batch(batch).unwrap()).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].0, rows[1].1), (Cpu(1), imported.recording.traces[1].detours[0]));
        assert!(Batches::from_imported(&imported, Kind::Threads).unwrap().batches.is_empty());
    }
}
