//! Reads a log's records, one after another.

use std::io::{BufReader, Read, Seek as _, SeekFrom, Take};
use std::mem::offset_of;
use std::path::Path;

use fs_err as fs;

use super::layout::{self, HEAD, RECORD};
use crate::mpi::Damage;

/// Lower and upper half of a word.
pub(super) fn two(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The bytes of a record's field.
fn field<const N: usize>(head: &[u8; RECORD], at: usize) -> [u8; N] {
    head.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// A record whose words are not decoded yet.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: u8,
    pub(super) mask: u16,
    pub(super) value: u32,
    pub(super) time_ns: u64,
    pub(super) words: &'a [u8],
}

impl Record<'_> {
    pub(super) fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.words.get(at.checked_mul(8)?..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }

    pub(super) fn need(&self, at: usize) -> Result<u64, Damage> {
        self.word(at).ok_or_else(|| Damage(format!("damaged: a record of kind {} is too short", self.kind)))
    }
}

/// The records of a log.
#[derive(Debug)]
pub(super) struct Records {
    file: Take<BufReader<fs::File>>,
    words: Vec<u8>,
}

impl Records {
    /// The records at `path`, of which `bytes` bytes are valid.
    pub(super) fn open(path: &Path, bytes: u64) -> std::io::Result<Self> {
        let mut file = fs::File::open(path)?;
        file.seek(SeekFrom::Start(HEAD as u64))?;
        Ok(Self { file: BufReader::with_capacity(1 << 16, file).take(bytes), words: vec![0; 255 * 8] })
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, Damage> {
        if self.file.limit() == 0 {
            return Ok(None);
        }
        let mut head = [0; RECORD];
        self.fill(0, &mut head)?;
        let [kind] = field(&head, offset_of!(layout::Record, kind));
        let [words] = field(&head, offset_of!(layout::Record, words));
        let length = usize::from(words) * 8;
        let mut taken = std::mem::take(&mut self.words);
        let filled = self.fill(1, taken.get_mut(..length).unwrap_or_default());
        self.words = taken;
        filled?;
        Ok(Some(Record {
            kind,
            mask: u16::from_le_bytes(field(&head, offset_of!(layout::Record, mask))),
            value: u32::from_le_bytes(field(&head, offset_of!(layout::Record, value))),
            time_ns: u64::from_le_bytes(field(&head, offset_of!(layout::Record, time_ns))),
            words: self.words.get(..length).unwrap_or_default(),
        }))
    }

    fn fill(&mut self, part: u8, to: &mut [u8]) -> Result<(), Damage> {
        let what = if part == 0 { "head" } else { "words" };
        self.file
            .read_exact(to)
            .map_err(|why| Damage(format!("the {what} of a record cannot be read: {why}")))
    }
}
