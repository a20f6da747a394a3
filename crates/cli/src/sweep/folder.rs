//! The dataset's folder: `_sweep.json`, and one file for each chunk, which is written atomically.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use quell_recording::results::{Cell, Kind, Results};
use quell_recording::{AtomicFile, atomic_write, drafted, whole_file};

use super::identity::Identity;
use super::{Context, Row};
use quell_request::Usage;

/// The file that identifies the plan of a dataset.
const PLAN: &str = "_sweep.json";
/// The prefix of the names of chunk files.
const PART: &str = "part-";

/// The folder of a dataset.
#[derive(Debug)]
pub struct Folder {
    /// Path of the folder.
    pub path: PathBuf,
    /// The plan that it belongs to.
    pub identity: Identity,
    columns: Vec<(String, Kind)>,
}

/// The content of a chunk's file.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Number of rows.
    pub rows: u64,
    /// Number of rows with an error.
    pub failed: u64,
}

impl Folder {
    /// The folder for a verb's plan; writes nothing yet.
    pub fn new(
        path: PathBuf,
        verb: &str,
        results: Vec<(String, Kind)>,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let axes = context.plan.axes.iter().map(|axis| (axis.kind.column.to_owned(), axis.kind.kind));
        let all = std::iter::once(("point".to_owned(), Kind::U64)).chain(axes).chain(results);
        let columns = all.chain([("error".to_owned(), Kind::Text)]).collect();
        Ok(Self { path, identity: Identity::new(verb, context)?, columns })
    }

    /// Creates the folder for this plan, or checks that it belongs to it. Other processes may do so at the same time.
    ///
    /// # Errors
    /// If the folder belongs to another plan, with the differences, or holds other files.
    pub fn claim(&self) -> anyhow::Result<()> {
        quell_recording::create_folder(&self.path)?;
        if self.compare()? {
            return Ok(());
        }
        let mut text = serde_json::to_vec_pretty(&self.identity)?;
        text.push(b'\n');
        let mut file = AtomicFile::create(&self.path.join(PLAN))?;
        file.write_all(&text)?;
        match file.commit_new() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.compare().map(|_| ()),
            other => Ok(other?),
        }
    }

    /// Whether the folder belongs to this plan; `false` if it belongs to none.
    ///
    /// # Errors
    /// As for [`Self::claim`].
    pub fn compare(&self) -> anyhow::Result<bool> {
        let found = match self.found()? {
            Some(found) => found,
            None if !self.holds_others()? => return Ok(false),
            // Another process may have created the folder since.
            None => self.found()?.ok_or_else(|| {
                Usage(format!(
                    "{} holds other files and no sweep: name another folder with --output",
                    self.path.display()
                ))
            })?,
        };
        let differences = self.identity.differences(&found);
        if differences.is_empty() {
            return Ok(true);
        }
        let list: String = differences.iter().map(|text| format!("\n  {text}")).collect();
        Err(Usage(format!(
            "{} holds another sweep: name another folder with --output, or remove it{list}",
            self.path.display()
        ))
        .into())
    }

    fn found(&self) -> anyhow::Result<Option<Identity>> {
        let path = self.path.join(PLAN);
        match whole_file::read(&path, whole_file::MOST_DESCRIPTION_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| Usage(format!("{} is not a sweep plan: {error}", path.display())).into()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn holds_others(&self) -> anyhow::Result<bool> {
        let entries = match fs_err::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            if !entry?.file_name().as_encoded_bytes().starts_with(b".") {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn part(&self, chunk: u64) -> PathBuf {
        self.path.join(format!("{PART}{chunk:06}.parquet"))
    }

    /// Whether a chunk has a file, whatever its content.
    pub fn has(&self, chunk: u64) -> bool {
        self.part(chunk).exists()
    }

    /// Number of chunks that have a file.
    pub fn there(&self) -> u64 {
        (0..self.identity.files).filter(|chunk| self.has(*chunk)).count() as u64
    }

    /// The content of a chunk's file, if it is complete: it has this plan's columns, and a row for each of its points.
    pub fn held(&self, chunk: u64) -> Option<Held> {
        let table = Results::read(&self.part(chunk)).ok().filter(|table| table.columns == self.columns)?;
        let points = self.identity.points_a_file;
        let mut next = chunk.checked_mul(points)?;
        let end = next.saturating_add(points).min(self.identity.points);
        for row in &table.rows {
            match row.first() {
                Some(Cell::U64(point)) if *point == next => next += 1,
                // A point may have several rows.
                Some(Cell::U64(point)) if next.checked_sub(1) == Some(*point) => {}
                _ => return None,
            }
        }
        let failed =
            table.rows.iter().filter(|row| row.last().is_some_and(|cell| *cell != Cell::Empty)).count();
        (next == end).then_some(Held { rows: table.rows.len() as u64, failed: failed as u64 })
    }

    /// The table of a chunk, from the rows of its units.
    pub fn table(&self, context: &Context, units: &[(quell_analysis::sweep::Unit, Vec<Row>)]) -> Results {
        let results = self.columns.len() - context.plan.axes.len() - 2;
        let mut rows = Vec::new();
        for (unit, of_unit) in units {
            for row in of_unit {
                let point = &unit.points[row.point];
                let (cells, error) = match &row.cells {
                    Ok(cells) => (cells.clone(), Cell::Empty),
                    Err(reason) => (vec![Cell::Empty; results], Cell::Text(reason.clone())),
                };
                let number = std::iter::once(Cell::U64(point.number));
                rows.push(number.chain(context.plan.cells(point)).chain(cells).chain([error]).collect());
            }
        }
        Results { columns: self.columns.clone(), rows }
    }

    /// Writes a chunk's file atomically.
    ///
    /// # Errors
    /// For instance if the disk is full; the folder is then unchanged.
    pub fn write(&self, chunk: u64, table: &Results) -> anyhow::Result<()> {
        match atomic_write(&self.part(chunk), &table.to_parquet()?) {
            // Another process has the same share, wrote the same file, and removed the temporary ones.
            Err(_) if self.held(chunk).is_some() => Ok(()),
            other => Ok(other?),
        }
    }

    /// Removes temporary files of processes that were killed while writing. Only for a dataset that is complete.
    pub fn clean(&self) {
        let entries = fs_err::read_dir(&self.path).into_iter().flatten().filter_map(Result::ok);
        for path in entries.map(|entry| entry.path()) {
            if is_left_over(&path) {
                // A file that cannot be removed does no harm.
                let _ = fs_err::remove_file(path);
            }
        }
    }
}

fn is_left_over(path: &Path) -> bool {
    drafted(path).is_some_and(|name| name == PLAN || name.starts_with(PART))
}
