//! The report of one rank of an MPI program: facts and rows. The layout is that of `mpi/rank_file.h`.

mod layout;

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;

use crate::{Error, one_line, whole_file};
pub use layout::phase;
use layout::{Block, FACT, FIRST, ROWS, VERSION};

/// Maximum number of columns: rows with more are not from quell.
const MOST_COLUMNS: usize = 64;

/// Facts as text, by name.
pub type Facts = BTreeMap<String, String>;

/// The file of one rank, up to its last complete block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFile {
    /// The rank's facts before its first series: `rank`, `host`, `cpus`, and so on.
    pub facts: Facts,
    /// Its series, in their order.
    pub series: Vec<Series>,
    /// Whether it ends in the middle of a block, because the rank died or its disk was full.
    pub torn: bool,
}

/// Rows of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The text after `series`.
    pub name: String,
    /// Facts in the series; of several with one name the last.
    pub facts: Facts,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// The values, row by row.
    values: Vec<u64>,
}

impl Series {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns.len().max(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of the column `name`, by row.
    pub fn column<'a>(&'a self, name: &str) -> Option<impl ExactSizeIterator<Item = u64> + use<'a>> {
        let at = self.columns.iter().position(|column| column == name)?;
        Some(self.values[at.min(self.values.len())..].iter().step_by(self.columns.len()).copied())
    }

    /// A fact as a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.facts.get(name)?.parse().ok()
    }
}

impl RankFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Malformed`] if it is not a rank's file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::parse(&whole_file::read(path, whole_file::MOST_BYTES)?)
            .map_err(|reason| Error::malformed(path, reason))
    }

    /// A fact of the rank as a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.facts.get(name)?.parse().ok()
    }

    /// Parses a file's bytes. A tail that is not a complete block is ignored, and marked by [`Self::torn`].
    ///
    /// # Errors
    /// Why the bytes are not a rank's file.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut file = Self::default();
        let mut rest = bytes;
        let mut first = true;
        while let Some((kind, payload, after)) = block(rest) {
            match kind {
                FACT => file.tell(payload, first)?,
                ROWS if !first => file.add_rows(payload)?,
                _ => return Err("not a rank's file, or damaged: a block is neither FACT nor ROWS".into()),
            }
            first = false;
            rest = after;
        }
        if first {
            return Err("not a rank's file: its first block is not whole".into());
        }
        file.torn = !rest.is_empty();
        Ok(file)
    }

    fn tell(&mut self, payload: &[u8], first: bool) -> Result<(), String> {
        let text = String::from_utf8_lossy(payload);
        let mut lines = text.lines();
        if first {
            let line = lines.next().unwrap_or_default();
            let version = line.strip_prefix(FIRST).map(|rest| rest.trim().parse::<u32>());
            match version {
                Some(Ok(VERSION)) => {}
                Some(Ok(other)) => {
                    return Err(format!("version {other} of rank files is not known: update quell"));
                }
                _ => return Err(format!("not a rank's file: it starts with `{}`", one_line(line))),
            }
        }
        for line in lines {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match (key, self.series.last_mut()) {
                ("series", _) => self.series.push(Series { name: value.into(), ..Series::default() }),
                ("columns", Some(series)) if series.values.is_empty() => {
                    series.columns = value.split(' ').map(str::to_owned).collect();
                    if series.columns.len() > MOST_COLUMNS {
                        return Err(format!("a series has {} columns", series.columns.len()));
                    }
                }
                ("columns", _) => return Err("columns are named where there is no series, or late".into()),
                (_, Some(series)) => drop(series.facts.insert(key.into(), value.into())),
                (_, None) => drop(self.facts.insert(key.into(), value.into())),
            }
        }
        Ok(())
    }

    fn add_rows(&mut self, payload: &[u8]) -> Result<(), String> {
        let series = self
            .series
            .last_mut()
            .filter(|series| !series.columns.is_empty())
            .ok_or("there are rows before a series and its columns")?;
        let row = series.columns.len() * 8;
        if !payload.len().is_multiple_of(row) {
            return Err(format!("a block of {} bytes is not of rows of {row} bytes", payload.len()));
        }
        let (words, _) = payload.as_chunks::<8>();
        series.values.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        Ok(())
    }
}

/// The first block of `bytes`, if it is complete, and the rest.
fn block(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<Block>())?;
    let kind = head[offset_of!(Block, kind)..].first_chunk()?;
    let length = u64::from_le_bytes(*head[offset_of!(Block, bytes)..].first_chunk()?);
    let (payload, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((kind, payload, after))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use proptest::prelude::*;

    fn block_of(kind: &str, payload: &[u8]) -> Vec<u8> {
        let mut block = kind.as_bytes().to_vec();
        block.extend([0; 4]);
        block.extend((payload.len() as u64).to_le_bytes());
        block.extend(payload);
        block
    }

    fn whole(rows: &[u64]) -> Vec<u8> {
        let rows: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        [
            block_of("FACT", b"quell-rank 1\nhost a b\n"),
            block_of("FACT", b"rank 3\n"),
            block_of("FACT", b"series bsp\ncolumns a b\nq 1\n"),
            block_of("ROWS", &rows),
            block_of("FACT", b"q 2\n"),
        ]
        .concat()
    }

    #[test]
    fn facts_and_rows_are_read() {
        let file = RankFile::parse(&whole(&[1, 2, 3, 4])).unwrap();
        assert_eq!(file.facts["host"], "a b");
        assert_eq!(file.number("rank"), Some(3));
        let [series] = &file.series[..] else { panic!("one series") };
        assert_eq!((series.len(), series.number("q")), (2, Some(2)));
        assert_eq!(series.column("b").unwrap().collect::<Vec<_>>(), [2, 4]);
        assert!(series.column("c").is_none() && !file.torn);
    }

    #[test]
    fn a_series_without_rows_has_empty_columns() {
        let file = RankFile::parse(&whole(&[])).unwrap();
        assert_eq!(file.series[0].column("b").unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_rank_file_is_refused_with_a_reason() {
        let after = |text: &[u8]| [block_of("FACT", b"quell-rank 1\n"), text.to_vec()].concat();
        for (bytes, reason) in [
            (vec![], "first block"),
            (b"#!/bin/sh and more than a head".to_vec(), "first block"),
            (block_of("ROWS", &[]), "neither"),
            (block_of("FACT", b"quell-rank 2\n"), "version 2"),
            (block_of("FACT", b"hello\n"), "starts with `hello`"),
            (after(&block_of("ROWS", &[])), "before a series"),
            (after(&block_of("FACT", b"columns a\n")), "no series"),
            (after(&block_of("FACT", b"series a\ncolumns a b\n")), ""),
        ] {
            match RankFile::parse(&bytes) {
                Err(why) => assert!(!reason.is_empty() && why.contains(reason), "{why} ≠ {reason}"),
                Ok(_) => assert!(reason.is_empty(), "{reason}"),
            }
        }
        let odd = [after(&block_of("FACT", b"series a\ncolumns a b\n")), block_of("ROWS", &[0; 8])].concat();
        assert!(RankFile::parse(&odd).unwrap_err().contains("not of rows of 16"));
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_a_file_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = RankFile::parse(&bytes);
        }

        #[test]
        fn a_cut_file_keeps_its_whole_blocks(rows in prop::collection::vec(any::<(u64, u64)>(), 0..20), cut in 0.0..1.0) {
            let values: Vec<u64> = rows.iter().flat_map(|&(a, b)| [a, b]).collect();
            let bytes = whole(&values);
            let cut = (bytes.len() as f64 * cut) as usize;
            if let Ok(file) = RankFile::parse(&bytes[..cut]) {
                let kept = file.series.first().map_or(0, Series::len);
                prop_assert!(kept == 0 || kept == rows.len());
                prop_assert!(cut == 0 || file.torn || bytes.len() > cut);
            }
        }
    }
}
