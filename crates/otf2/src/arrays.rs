//! Whether the lists in files of definitions fit into their records, checked before the library reads them: it takes memory for as many members
//! as a list claims to have, and reads on beyond its buffer until it has that many.
//!
//! A record is its type, the length of its data (one byte, or 0xff and eight bytes), and its data. Integers of a list are one byte for their
//! length, and that many bytes. Other lists have 255 members at most (OTF2 3.0, `src/OTF2_GlobalDefReader_inc.c`, `src/otf2_id_map.c`).

use std::io::Read as _;
use std::path::Path;

use fs_err::File;

use crate::chunks::{BIG_ENDIAN, HEAD};

/// Types up to this one end a chunk.
const LAST_MARK: u8 = 2;
const MAPPING_TABLE: u8 = 5;
const GROUP: u8 = 18;
/// The mode of a mapping table that holds its second column only.
const DENSE: u8 = 0;
/// The length of an integer of which all bits are set.
const UNDEFINED: u8 = 0xff;
/// The length of a record whose length follows.
const LONG: u8 = 0xff;

/// What a file describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The archive.
    Global,
    /// A location: it may have mapping tables.
    Local,
}

/// Checks a file with chunks of this size.
///
/// # Errors
/// Where the first record begins that does not fit, or why the file cannot be read.
pub(crate) fn check(path: &Path, chunk: u64, scope: Scope) -> Result<(), String> {
    let say = |error: std::io::Error| error.to_string();
    let mut file = File::open(path).map_err(say)?;
    let mut bytes = Vec::new();
    let mut begin = 0;
    loop {
        bytes.clear();
        (&mut file).take(chunk).read_to_end(&mut bytes).map_err(say)?;
        if bytes.len() <= HEAD {
            return Ok(());
        }
        check_chunk(&bytes, scope).map_err(|at| {
            format!("{} has a record at byte {} that does not fit", path.display(), begin + at as u64)
        })?;
        begin += bytes.len() as u64;
    }
}

/// Checks a chunk; the error is where the record begins that does not fit.
fn check_chunk(chunk: &[u8], scope: Scope) -> Result<(), usize> {
    let mut rest = Bytes { left: &chunk[HEAD..], is_big: chunk[1] == BIG_ENDIAN };
    loop {
        let at = chunk.len() - rest.left.len();
        let Some(kind) = rest.byte().filter(|kind| *kind > LAST_MARK) else { return Ok(()) };
        // Beyond the file's end, the library would read what an earlier chunk left in its buffer.
        let data = rest.data().ok_or(at)?;
        let fits = match kind {
            GROUP => group_fits(data),
            MAPPING_TABLE if scope == Scope::Local => table_fits(data),
            _ => Some(()),
        };
        fits.ok_or(at)?;
    }
}

/// The library reads a group's members before it looks for the end of its record.
fn group_fits(mut data: Bytes<'_>) -> Option<()> {
    let [_self, _name] = [data.integer(4)?, data.integer(4)?];
    let _kind = data.byte()?;
    let members = data.integer(4)?;
    data.pass_integers(members)
}

fn table_fits(mut data: Bytes<'_>) -> Option<()> {
    let _kind = data.byte()?;
    let pairs = data.integer(8)?;
    let is_dense = data.byte()? == DENSE;
    data.pass_integers(if is_dense { pairs } else { pairs.checked_mul(2)? })
}

/// What is left of a chunk, or of a record's data.
struct Bytes<'a> {
    left: &'a [u8],
    is_big: bool,
}

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.left.split_off_first().copied()
    }

    /// The data of a record whose type was read.
    fn data(&mut self) -> Option<Self> {
        let length = match self.byte()? {
            LONG => self.number(8)?,
            short => short.into(),
        };
        let left = self.left.split_off(..usize::try_from(length).ok()?)?;
        Some(Self { left, is_big: self.is_big })
    }

    /// An integer of `most` bytes at most.
    fn integer(&mut self, most: u8) -> Option<u64> {
        match self.byte()? {
            UNDEFINED => Some(u64::MAX),
            length if length <= most => self.number(length.into()),
            _ => None,
        }
    }

    fn number(&mut self, length: usize) -> Option<u64> {
        let bytes = self.left.split_off(..length)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if self.is_big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    /// Passes over the members of a list. Each takes a byte at least, so this ends.
    fn pass_integers(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.integer(8).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(order: u8, records: &[&[u8]]) -> Vec<u8> {
        let mut chunk = vec![0; HEAD];
        chunk[1] = order;
        records.iter().for_each(|record| chunk.extend_from_slice(record));
        chunk.extend([2, 1]);
        chunk
    }

    #[test]
    fn lists_that_fit_pass_and_others_do_not() {
        // Group 1 of name 2 and kind 0, with the members 5 and 256, and what version 1.2 added.
        let group = [GROUP, 14, 1, 1, 1, 2, 0, 1, 2, 1, 5, 2, 0, 1, 0, 0];
        let table = [MAPPING_TABLE, 9, 0, 1, 2, 1, 0, 0, 1, 1, 0];
        let dense = [MAPPING_TABLE, 6, 0, 1, 3, DENSE, 0, UNDEFINED];
        let checked = |records: &[&[u8]], scope| check_chunk(&chunk(b'B', records), scope);
        assert_eq!(checked(&[&group, &table, &group], Scope::Local), Ok(()));
        // As long as its record, but not with what its members need.
        let more = |record: &[u8], at: usize, value: u8| {
            let mut record = record.to_vec();
            record[at] = value;
            record
        };
        for (members, refused) in [(3, false), (4, false), (5, true), (255, true)] {
            let found = checked(&[&table, &more(&group, 8, members)], Scope::Local);
            assert_eq!(found, if refused { Err(HEAD + table.len()) } else { Ok(()) }, "{members}");
        }
        assert_eq!(checked(&[&more(&group, 7, UNDEFINED)], Scope::Global), Err(HEAD), "all bits set");
        assert_eq!(checked(&[&more(&group, 9, 9)], Scope::Global), Err(HEAD), "an integer of nine bytes");
        assert_eq!(checked(&[&more(&table, 4, 3)], Scope::Local), Err(HEAD));
        assert_eq!(checked(&[&more(&table, 4, 3)], Scope::Global), Ok(()), "it is another record there");
        assert_eq!(checked(&[&dense], Scope::Local), Err(HEAD), "a record beyond its chunk");
        assert_eq!(checked(&[&more(&dense, 1, 5)], Scope::Local), Err(HEAD));
        assert_eq!(checked(&[&more(&more(&dense, 1, 6), 4, 2)], Scope::Local), Ok(()));
    }

    #[test]
    fn long_records_and_both_byte_orders_are_read() {
        let members = 300_u16;
        for (order, length, count) in [
            (b'B', (306_u64).to_le_bytes(), members.to_le_bytes()),
            (b'#', (306_u64).to_be_bytes(), members.to_be_bytes()),
        ] {
            let head = [&[GROUP, LONG][..], &length, &[0, 0, 0, 2], &count].concat();
            let record = [&head[..], &[0; 300]].concat();
            assert_eq!(check_chunk(&chunk(order, &[&record]), Scope::Global), Ok(()));
            assert_eq!(check_chunk(&chunk(order, &[&record[..record.len() - 3]]), Scope::Global), Err(HEAD));
        }
    }
}
