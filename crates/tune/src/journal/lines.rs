//! The lines of a journal: each has its number, the checksum of the line before, and its own.
//!
//! The first line is the seal: the number of lines that are on disk, and the checksum of the last. It has a fixed length and is overwritten in
//! place after each line. So a line that is changed, lost or moved is found, and so is a file that was cut: the seal counts more lines than
//! there are. The seal may lag behind by the line that a crash interrupted, but is never ahead of the disk, because it is written after the line
//! is synced.
//!
//! A journal of version 1 has neither; quell still reads and continues those.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Record;
use crate::fault;

/// More lines than any plan needs: a seal that counts more is damaged.
const MOST_LINES: usize = 1_000_000;
/// Number of digits of a checksum, as in `0123456789abcdef`.
const DIGITS: usize = 16;

/// The first line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    /// Number of lines, including this one.
    sealed: usize,
    /// The checksum of the last; zeros if there is no other line.
    last: String,
}

impl Seal {
    /// Its line, whose length does not depend on its values.
    fn line(lines: usize, last: &str) -> String {
        format!("{{\"sealed\":{lines:>7},\"last\":\"{last:0>DIGITS$}\"}}\n")
    }

    fn read(line: &[u8]) -> Option<Self> {
        let seal: Self = serde_json::from_slice(line).ok()?;
        (1..=MOST_LINES).contains(&seal.sealed).then_some(seal)
    }
}

/// The end of the chain.
#[derive(Clone, Debug)]
struct Chain {
    /// Number of lines.
    lines: usize,
    /// The checksum of the last one.
    last: String,
}

/// A journal that is being written. Only one process writes at a time: it holds the lock.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// The length of the file.
    end: u64,
    /// None in a journal of version 1.
    chain: Option<Chain>,
}

impl Journal {
    /// Starts in a new, empty file.
    ///
    /// # Errors
    /// The kernel's error, such as a full disk.
    pub fn on(file: File) -> io::Result<Self> {
        let seal = Seal::line(1, "");
        file.write_all_at(seal.as_bytes(), 0)?;
        Ok(Self { file, end: seal.len() as u64, chain: Some(Chain { lines: 1, last: no_line() }) })
    }

    /// Continues a file that may end within a line: ends that line, so that the next record is on a line of its own.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn go_on(file: File, bytes: &[u8]) -> io::Result<Self> {
        let mut end = bytes.len() as u64;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            file.write_all_at(b"\n", end)?;
            end += 1;
        }
        Ok(Self { file, end, chain: chain_of(bytes) })
    }

    /// Appends a line; it is on disk when this returns.
    ///
    /// # Errors
    /// The kernel's error, such as a full disk.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let json = serde_json::to_string(record)?;
        let (line, chain) = match &self.chain {
            None => (json + "\n", None),
            Some(chain) => {
                let (line, sum) = chained(&json, chain.lines + 1, &chain.last);
                (line, Some(Chain { lines: chain.lines + 1, last: sum }))
            }
        };
        fault::point();
        let written = self.file.write_all_at(line.as_bytes(), self.end).and_then(|()| {
            fault::point();
            self.file.sync_data()
        });
        if written.is_err() {
            // Half a line would make the next one unreadable. The caller needs the first error, so one of this call is ignored.
            let _ = self.file.set_len(self.end);
            return written;
        }
        fault::point();
        self.end += line.len() as u64;
        if let Some(chain) = chain {
            let seal = Seal::line(chain.lines, &chain.last);
            // The line is there, also where its seal cannot be written: the next one follows it.
            self.chain = Some(chain);
            // The next sync brings it to disk.
            self.file.write_all_at(seal.as_bytes(), 0)?;
            fault::point();
        }
        Ok(())
    }

    /// Brings the seal of the last line to disk.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// One line that is in order.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// The record.
    pub json: &'a [u8],
}

/// The lines of a journal in order, and the numbers of those that are unreadable or missing.
pub fn read(bytes: &[u8]) -> (Vec<Line<'_>>, Vec<usize>) {
    if !is_chained(bytes) {
        return read_unchained(bytes);
    }
    let mut damaged = Vec::new();
    let seal = bytes.split(|byte| *byte == b'\n').next().and_then(Seal::read);
    if seal.is_none() {
        damaged.push(1);
    }
    let mut good: BTreeMap<usize, Chained<'_>> = BTreeMap::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter_map(Chained::read) {
        good.entry(line.number).or_insert(line);
    }
    let most = good.keys().next_back().copied().unwrap_or(1).max(seal.as_ref().map_or(1, |seal| seal.sealed));
    damaged.extend((2..=most).filter(|number| !good.contains_key(number)));
    // A line that is in order by itself, but is not the one that was there when the next was written.
    let replaced = good.values().filter_map(|line| {
        let before = good.get(&(line.number - 1))?;
        (before.sum != line.before).then_some(before.number)
    });
    damaged.extend(replaced);
    if let Some(seal) = seal
        && let Some(last) = good.get(&seal.sealed)
        && last.sum != seal.last.as_bytes()
    {
        damaged.push(last.number);
    }
    let lines = good.into_values().map(|line| Line { number: line.number, json: line.json });
    (lines.collect(), damaged)
}

/// A line of the chain.
#[derive(Clone, Copy)]
struct Chained<'a> {
    number: usize,
    json: &'a [u8],
    /// The checksum of the line before.
    before: &'a [u8],
    /// Its own.
    sum: &'a [u8],
}

impl<'a> Chained<'a> {
    /// A line whose checksum is right.
    fn read(line: &'a [u8]) -> Option<Self> {
        let json = line.strip_suffix(b"\n").unwrap_or(line);
        let inner = json.strip_suffix(b"\"}")?;
        let (summed, sum) = inner.split_at_checked(inner.len().checked_sub(DIGITS)?)?;
        let content = summed.strip_suffix(b",\"sum\":\"")?;
        if checksum(content).as_bytes() != sum {
            return None;
        }
        #[derive(Deserialize)]
        struct Place<'b> {
            line: usize,
            before: &'b str,
        }
        let Place { line: number, before } = serde_json::from_slice(json).ok()?;
        (2..=MOST_LINES).contains(&number).then_some(Self { number, json, before: before.as_bytes(), sum })
    }
}

/// A record as a line, and its checksum.
fn chained(json: &str, number: usize, before: &str) -> (String, String) {
    let open = json.strip_suffix('}').unwrap_or(json);
    let content = format!("{open},\"line\":{number},\"before\":\"{before}\"");
    let sum = checksum(content.as_bytes());
    (format!("{content},\"sum\":\"{sum}\"}}\n"), sum)
}

/// It is against accidents, not against root: 64 bits of SHA-256.
fn checksum(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

fn no_line() -> String {
    "0".repeat(DIGITS)
}

/// Whether a journal has a chain: a seal, or a line of one. A journal of version 2 is never empty, and a file that lost all of its content
/// is no journal of version 1.
fn is_chained(bytes: &[u8]) -> bool {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let start = b"{\"sealed\"";
    bytes.iter().all(|byte| *byte == 0)
        || bytes.iter().zip(start).all(|(found, expected)| found == expected)
        || lines.any(|line| Chained::read(line).is_some())
}

/// The end of a journal's chain; none for version 1.
fn chain_of(bytes: &[u8]) -> Option<Chain> {
    if !is_chained(bytes) {
        return None;
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let last = lines.filter_map(Chained::read).max_by_key(|line| line.number);
    let seal = bytes.split(|byte| *byte == b'\n').next().and_then(Seal::read);
    let found = last.map_or((1, no_line()), |line| (line.number, String::from_utf8_lossy(line.sum).into()));
    // What is missing stays missing: the next line follows all that the seal counts.
    Some(match seal {
        Some(seal) if seal.sealed > found.0 => Chain { lines: seal.sealed, last: seal.last },
        _ => Chain { lines: found.0, last: found.1 },
    })
}

/// A journal of version 1.
fn read_unchained(bytes: &[u8]) -> (Vec<Line<'_>>, Vec<usize>) {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut good, mut damaged) = (Vec::new(), Vec::new());
    for (i, json) in lines.iter().enumerate() {
        if serde_json::from_slice::<Record>(json).is_ok() {
            good.push(Line { number: i + 1, json });
        } else if json.ends_with(b"\n") && !(i + 1 < lines.len() && is_torn(json)) {
            // A record is on disk before its write is made, so no write followed an incomplete one.
            damaged.push(i + 1);
        }
    }
    (good, damaged)
}

/// Whether a line is an incomplete record whose line was ended when the journal was continued.
fn is_torn(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // After a power failure a file can have its length without its contents.
    let line =
        line.iter().rposition(|byte| *byte != 0).and_then(|last| line.get(..=last)).unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(line).is_err_and(|error| error.is_eof())
}

/// A journal with these lines as a crash leaves it at any time after them: the seal counts what is complete.
#[cfg(test)]
pub(crate) fn sealed_again(bytes: &[u8]) -> Vec<u8> {
    let Some(first) = bytes.iter().position(|byte| *byte == b'\n') else { return bytes.to_vec() };
    let complete = bytes.split_inclusive(|byte| *byte == b'\n').filter_map(Chained::read).next_back();
    let (lines, last) =
        complete.map_or((1, no_line()), |line| (line.number, String::from_utf8_lossy(line.sum).into()));
    [Seal::line(lines, &last).as_bytes(), &bytes[first + 1..]].concat()
}

#[cfg(test)]
mod tests;
