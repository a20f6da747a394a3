//! Parts of a large text, read side by side.
//!
//! A part begins at a line that starts with `rank `, and goes on to the first such line behind its share of the file. Only texts of
//! which this is certain to give what [`read_text`](super::read_text) gives are read so: each part ends outside ranks and comments, the
//! next one begins with the next rank, and nothing is odd or wrong. All others are left to it, which explains them.

use std::io;

use rayon::prelude::*;

use super::line::{Cursor, Lines};
use super::read::Reader;
use super::statement::{Parser, Statement};
use crate::goal::builder::ScheduleBuilder;
use crate::goal::finding::Findings;
use crate::goal::schedule::Schedule;

/// Share of a part, in bytes.
const SHARE: u64 = 4 << 20;
/// Maximum length of a part, in shares: a rank can be longer than a share.
const MOST_SHARES: u64 = 16;
/// Number of bytes from the start of a text in which its number of ranks is looked for.
const HEAD: usize = 1 << 16;
/// The start of a line that begins a rank.
const RANK: &[u8] = b"rank ";

/// A text of which any part can be read.
pub trait ReadAt: Sync {
    /// Reads bytes from `offset` on, and returns their number: 0 at the end.
    ///
    /// # Errors
    /// If reading fails.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for [u8] {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = bytes.len().min(rest.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Reads a schedule from a text of `length` bytes with up to this number of threads of its own. `None` for a text that is small,
/// odd, or not valid: [`read_text`](super::read_text) reads it, or explains what is wrong.
pub fn read_text_in_parts(text: &(impl ReadAt + ?Sized), length: u64, threads: usize) -> Option<Schedule> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    read_in_shares(text, length, threads.min(cores), SHARE)
}

/// The same with another share of a part.
pub(in crate::goal) fn read_in_shares(
    text: &(impl ReadAt + ?Sized),
    length: u64,
    threads: usize,
    share: u64,
) -> Option<Schedule> {
    if threads < 2 || length < 2 * share {
        return None;
    }
    // Without threads of its own the text takes longer, and is read all the same.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()?;
    let ranks = number_of_ranks(&read(text, 0, HEAD as u64).ok()?)?;
    let mut whole = ScheduleBuilder::new(ranks);
    let parts = length.div_ceil(share);
    for first in (0..parts).step_by(threads) {
        let some = first..parts.min(first + threads as u64);
        let read = some.into_par_iter().map(|number| part(text, number * share, share, ranks));
        let read: Result<Vec<_>, _> = pool.install(|| read.collect());
        for part in read.ok()?.into_iter().flatten() {
            whole.append(part)?;
        }
    }
    whole.finish().ok()
}

/// The number of ranks, if it stands at the start of a text.
fn number_of_ranks(head: &[u8]) -> Option<u32> {
    let (mut lines, mut parser) = (Lines::new(head), Parser::default());
    while let Some((_, line)) = lines.next().ok()? {
        if let Some((_, statement)) = parser.next(&mut Cursor::new(line)).ok()? {
            return match statement {
                Statement::NumRanks(ranks) if ranks > 0 => Some(ranks),
                _ => None,
            };
        }
    }
    None
}

/// Reads bytes from `offset` on; fewer only at the end.
fn read(text: &(impl ReadAt + ?Sized), offset: u64, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count as usize];
    let mut there = 0;
    while there < bytes.len() {
        match text.read_at(&mut bytes[there..], offset + there as u64) {
            Ok(0) => break,
            Ok(more) => there += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(there);
    Ok(bytes)
}

/// A part that cannot be read alone.
struct NotAlone;

/// The ranks that begin within `share` bytes from `begin` on, and at the start of the text what precedes them; `None` if none do.
fn part(
    text: &(impl ReadAt + ?Sized),
    begin: u64,
    share: u64,
    ranks: u32,
) -> Result<Option<ScheduleBuilder>, NotAlone> {
    // From the byte before, so that a line at the very start is seen as one, to the end of a word that begins in the share.
    let from = begin.saturating_sub(1);
    let within = (begin - from + share) as usize;
    let mut bytes = read(text, from, (within + RANK.len()) as u64).map_err(|_| NotAlone)?;
    let start = if begin == 0 { Some(0) } else { line_of_rank(&bytes, 0) };
    let Some(start) = start.filter(|start| *start < within) else { return Ok(None) };
    let mut looked = within - 1;
    let end = loop {
        if let Some(end) = line_of_rank(&bytes, looked) {
            break end;
        }
        looked = looked.max(bytes.len().saturating_sub(RANK.len()));
        let more = read(text, from + bytes.len() as u64, share).map_err(|_| NotAlone)?;
        if more.is_empty() {
            break bytes.len();
        }
        bytes.extend(more);
        if bytes.len() as u64 > MOST_SHARES * share {
            return Err(NotAlone);
        }
    };
    let bytes = &bytes[start..end];
    let mut notes = Findings::default();
    let reader = if begin == 0 {
        Reader::new(false, &mut notes)
    } else {
        let first = first_rank(bytes).ok_or(NotAlone)?;
        Reader::of_part(ScheduleBuilder::from_rank(first, ranks), &mut notes)
    };
    let builder = reader.read_part(bytes).ok_or(NotAlone)?;
    if notes.is_empty() { Ok(Some(builder)) } else { Err(NotAlone) }
}

/// Where the first line from a byte on begins that starts a rank: right behind a line's end.
fn line_of_rank(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == b'\n')? + 1;
        if bytes[at..].starts_with(RANK) {
            return Some(at);
        }
    }
}

/// The rank that a part begins with.
fn first_rank(bytes: &[u8]) -> Option<u32> {
    let (mut lines, mut parser) = (Lines::new(bytes), Parser::default());
    let (_, line) = lines.next().ok()??;
    match parser.next(&mut Cursor::new(line)).ok()?? {
        (_, Statement::Rank(rank)) => Some(rank),
        _ => None,
    }
}
