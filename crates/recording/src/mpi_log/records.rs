//! Reads a log's records, one after another.

use std::io::{BufReader, Chain, Cursor, Read, Seek as _, SeekFrom};
use std::mem::offset_of;
use std::path::Path;

use fs_err as fs;

use super::layout::field::APPENDED;
use super::layout::{self, HEAD, RECORD, STAGE};
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

/// Where the records of a log are, in bytes: at most what the file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Behind the stage. They come first.
    pub(super) appended: u64,
    /// In the stage.
    pub(super) staged: u64,
}

impl Extent {
    /// The extent that a head claims, in a file of `length` bytes.
    pub(super) fn new(bytes: u64, appended: u64, length: u64) -> Self {
        let behind_head = length.saturating_sub(HEAD as u64);
        let (appended, there) = (appended.min(bytes), behind_head.saturating_sub(STAGE as u64));
        if appended > there {
            // Records are missing before those in the stage.
            return Self { appended: there, staged: 0 };
        }
        Self { appended, staged: (bytes - appended).min(STAGE as u64).min(behind_head) }
    }

    /// Where the same records are once `appended` bytes are: a program that still runs appends all that is in the stage, and overwrites it.
    fn after(self, appended: u64) -> Self {
        let moved = self.staged > 0 && appended > self.appended;
        if moved { Self { appended: self.appended + self.staged, staged: 0 } } else { self }
    }
}

/// The records of a log.
#[derive(Debug)]
pub(super) struct Records {
    file: Chain<std::io::Take<BufReader<fs::File>>, Cursor<Vec<u8>>>,
    left: u64,
    words: Vec<u8>,
}

impl Records {
    /// The records at `path`.
    pub(super) fn open(path: &Path, extent: Extent) -> std::io::Result<Self> {
        let mut file = fs::File::open(path)?;
        let mut stage = Vec::new();
        file.seek(SeekFrom::Start(HEAD as u64))?;
        file.by_ref().take(extent.staged).read_to_end(&mut stage)?;
        let mut appended = [0; 8];
        file.seek(SeekFrom::Start(APPENDED.at as u64))?;
        file.read_exact(&mut appended)?;
        let extent = extent.after(u64::from_le_bytes(appended));
        stage.truncate(extent.staged as usize);
        file.seek(SeekFrom::Start((HEAD + STAGE) as u64))?;
        let appended = BufReader::with_capacity(1 << 16, file).take(extent.appended);
        Ok(Self {
            file: appended.chain(Cursor::new(stage)),
            left: extent.appended + extent.staged,
            words: vec![0; 255 * 8],
        })
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, Damage> {
        if self.left == 0 {
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
            .map_err(|why| Damage(format!("the {what} of a record cannot be read: {why}")))?;
        // What is there is whole, or the line above fails.
        self.left = self.left.saturating_sub(to.len() as u64);
        Ok(())
    }
}
