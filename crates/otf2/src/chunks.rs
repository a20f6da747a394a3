//! How much of an archive's file is valid, checked before the library reads it: of a truncated file, the library would repeat the previous
//! contents of its buffer without end.
//!
//! A file is a sequence of chunks of one size, of which the last may be shorter. Each chunk begins with a mark, the byte order, and the
//! numbers of its first and last event, followed by records. Marks end the last chunk, and the file.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use fs_err::File;

pub(crate) const HEAD: usize = 18;
const CHUNK_MARK: u8 = 3;
pub(crate) const LITTLE_ENDIAN: u8 = b'B';
pub(crate) const BIG_ENDIAN: u8 = b'#';
/// The end marks of the last chunk, and of the file.
const END: [u8; 2] = [2, 1];
const TIMESTAMP: u8 = 5;
/// Records of this type and above are events.
const FIRST_EVENT: u8 = 10;

/// The valid part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Its size in bytes.
    pub(crate) size: u64,
    /// Number of complete events in it; 0 for definitions.
    pub(crate) events: u64,
    /// Why there are no more, if the file is damaged.
    pub(crate) broken: Option<String>,
}

/// Checks a file. A file that cannot be opened counts as damaged.
pub(crate) fn extent(file: &Path, chunk: u64) -> Extent {
    let mut extent = Extent { size: 0, events: 0, broken: None };
    extent.broken = look(file, chunk, &mut extent).err();
    extent
}

fn look(path: &Path, chunk: u64, extent: &mut Extent) -> Result<(), String> {
    let say = |error: std::io::Error| error.to_string();
    let mut file = File::open(path).map_err(say)?;
    extent.size = file.metadata().map_err(say)?.len();
    let size = extent.size;
    if size < (HEAD + END.len()) as u64 || chunk <= HEAD as u64 {
        return Err(format!("{} is cut off after {size} bytes", path.display()));
    }
    let mut at = 0;
    loop {
        let mut head = [0; HEAD];
        file.seek(SeekFrom::Start(at)).map_err(say)?;
        if size - at < HEAD as u64 {
            return Err(format!("{} is cut off after {size} bytes", path.display()));
        }
        file.read_exact(&mut head).map_err(say)?;
        let (first, last) =
            numbers(&head).ok_or_else(|| format!("{} has no chunk at byte {at}", path.display()))?;
        // Definitions have no event numbers.
        let expected = extent.events + 1;
        if (first, last) != (0, 0) && (first != expected || last < first - 1) {
            return Err(format!(
                "{} has events {first} to {last} at byte {at}, not event {expected}",
                path.display()
            ));
        }
        if size - at > chunk {
            extent.events = last;
            at += chunk;
            continue;
        }
        return last_chunk(&mut file, path, size - at, first, last, extent);
    }
}

/// Checks the end of the last chunk; if it is truncated, counts the complete events.
fn last_chunk(
    file: &mut File,
    path: &Path,
    length: u64,
    first: u64,
    last: u64,
    extent: &mut Extent,
) -> Result<(), String> {
    let mut records = Vec::new();
    file.take(length - HEAD as u64).read_to_end(&mut records).map_err(|error| error.to_string())?;
    if records.ends_with(&END) {
        extent.events = last;
        return Ok(());
    }
    let whole = whole_events(&records);
    if first > 0 && whole < last - (first - 1) {
        extent.events += whole;
        return Err(format!("{} is cut off after {} bytes", path.display(), extent.size));
    }
    extent.events = last;
    if first > 0 { Ok(()) } else { Err(format!("{} is cut off after {} bytes", path.display(), extent.size)) }
}

/// The numbers of a chunk's first and last event.
fn numbers(head: &[u8; HEAD]) -> Option<(u64, u64)> {
    let [mark, order, numbers @ ..] = head;
    let (numbers, _) = numbers.as_chunks::<8>();
    let read = match *order {
        LITTLE_ENDIAN => u64::from_le_bytes,
        BIG_ENDIAN => u64::from_be_bytes,
        _ => return None,
    };
    (*mark == CHUNK_MARK).then(|| (read(numbers[0]), read(numbers[1])))
}

/// Number of complete events in a chunk's records.
fn whole_events(mut records: &[u8]) -> u64 {
    let mut events = 0;
    loop {
        let [kind, rest @ ..] = records else { return events };
        let length = match (*kind, rest) {
            (0..TIMESTAMP, _) => return events, // marks, and what must not occur here
            (TIMESTAMP, _) => 8,
            (_, [0xff, ..]) => {
                // A long record, whose length is in the chunk's byte order. It hardly fits into a chunk, so counting stops here.
                return events;
            }
            (_, [length, ..]) => 1 + usize::from(*length),
            (_, []) => return events,
        };
        let Some(next) = rest.get(length..) else { return events };
        events += u64::from(*kind >= FIRST_EVENT);
        records = next;
    }
}
