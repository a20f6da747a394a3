//! A log's records, one after another, and what they say happened.

use std::io::{BufReader, Read, Seek as _, SeekFrom, Take};
use std::path::Path;

use fs_err as fs;

use super::definitions::Maps;
use super::layout::{HEAD, RECORD, SOURCES, kind, operation, two};
use super::lines::Clock;
use crate::mpi::{BLOCKING, Damage, Event, UNKNOWN, What};

/// About so many events are read at once.
const BATCH: usize = 4096;

/// A record, its words still to be understood.
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

    fn need(&self, at: usize) -> Result<u64, Damage> {
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
    /// The records at `path`, of which `bytes` bytes are whole.
    pub(super) fn open(path: &Path, bytes: u64) -> std::io::Result<Self> {
        let mut file = fs::File::open(path)?;
        file.seek(SeekFrom::Start(HEAD as u64))?;
        Ok(Self { file: BufReader::with_capacity(1 << 16, file).take(bytes), words: vec![0; 255 * 8] })
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, Damage> {
        if self.file.limit() == 0 {
            return Ok(None);
        }
        let mut head = [0; RECORD];
        self.fill(0, &mut head)?;
        let [kind, words, mask @ .., _, _, _, _, _, _, _, _, _, _, _, _] = head;
        let length = usize::from(words) * 8;
        let mut taken = std::mem::take(&mut self.words);
        let filled = self.fill(1, taken.get_mut(..length).unwrap_or_default());
        self.words = taken;
        filled?;
        let value = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let time_ns = head.last_chunk().map_or(0, |time| u64::from_le_bytes(*time));
        let words = self.words.get(..length).unwrap_or_default();
        Ok(Some(Record { kind, mask: u16::from_le_bytes(mask), value, time_ns, words }))
    }

    fn fill(&mut self, part: u8, to: &mut [u8]) -> Result<(), Damage> {
        let what = if part == 0 { "head" } else { "words" };
        self.file
            .read_exact(to)
            .map_err(|why| Damage(format!("the {what} of a record cannot be read: {why}")))
    }
}

/// The events of a log.
#[derive(Debug)]
pub(super) struct Events {
    records: Records,
}

impl Events {
    pub(super) fn open(path: &Path, bytes: u64) -> std::io::Result<Self> {
        Ok(Self { records: Records::open(path, bytes)? })
    }

    /// The next few thousand; `false` after the last.
    pub(super) fn read(
        &mut self,
        maps: &Maps,
        clock: &Clock,
        events: &mut Vec<Event>,
    ) -> Result<bool, Damage> {
        let enough = events.len().saturating_add(BATCH);
        while events.len() < enough {
            let Some(record) = self.records.next()? else { return Ok(false) };
            let time_ns = clock.common(record.time_ns);
            happened(&record, maps, |what| events.push(Event { time_ns, what }))?;
        }
        Ok(true)
    }
}

/// What a record says happened.
fn happened(record: &Record<'_>, maps: &Maps, mut tell: impl FnMut(What)) -> Result<(), Damage> {
    let (tag, comm) = (record.value, |number| maps.comm(number));
    let request = |at| record.word(at).unwrap_or(BLOCKING);
    match record.kind {
        kind::REGION | kind::COMM | kind::MEMBERS => {}
        // The noise struck before the call was entered, or before it was left.
        kind::ENTER | kind::LEAVE => {
            noise(record, maps, &mut tell)?;
            let region = maps.region(record.value)?;
            tell(if record.kind == kind::ENTER { What::Enter(region) } else { What::Leave(region) });
        }
        kind::SEND => {
            let (number, to) = two(record.need(0)?);
            let comm = comm(number)?;
            tell(What::Send { comm, to, tag, bytes: record.need(1)?, request: request(2) });
        }
        kind::SEND_DONE => tell(What::SendDone { request: record.need(0)? }),
        kind::POSTED => {
            let (number, from) = two(record.need(0)?);
            tell(What::RecvPosted { comm: comm(number)?, from, tag, request: record.need(1)? });
        }
        kind::RECV => {
            let (number, from) = two(record.need(0)?);
            let comm = comm(number)?;
            tell(What::Recv { comm, from, tag, bytes: record.need(1)?, request: request(2) });
        }
        kind::PROBED => {
            let (number, from) = two(record.need(0)?);
            tell(What::Probed { comm: comm(number)?, from, tag });
        }
        kind::PENDING => tell(What::Pending { request: record.need(0)? }),
        kind::CANCELLED => tell(What::Cancelled { request: record.need(0)? }),
        kind::COLLECTIVE_BEGIN => tell(What::CollectiveBegin),
        kind::COLLECTIVE_POSTED => {
            tell(What::CollectivePosted { comm: comm(record.value)?, request: record.need(0)? });
        }
        kind::COLLECTIVE => {
            let operation = operation(record.mask)
                .ok_or_else(|| Damage(format!("damaged: operation {} is none", record.mask)))?;
            let (_, root) = two(record.need(0)?);
            let (sent, received) = (record.need(1)?, record.need(2)?);
            let comm = comm(record.value)?;
            tell(What::Collective { operation, comm, root, sent, received, request: request(3) });
        }
        other => return Err(Damage(format!("damaged: a record of kind {other}"))),
    }
    Ok(())
}

fn noise(record: &Record<'_>, maps: &Maps, tell: &mut impl FnMut(What)) -> Result<(), Damage> {
    let changed = (0..SOURCES).filter(|source| record.mask >> source & 1 != 0);
    for (at, number) in changed.enumerate() {
        let total_ns = record.need(at)?;
        let source = maps.source(number);
        if source != UNKNOWN {
            tell(What::Noise { source, total_ns });
        }
    }
    Ok(())
}
