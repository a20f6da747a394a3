//! Lines of bounded length, and a cursor that moves through one word by word.

use std::io::{self, BufRead, Read};

use super::MAX_LINE;
use super::error::{Fault, Reason, TextError, shown};

/// The lines of a text, without their ends (`\n` or `\r\n`).
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    /// A line that the input's buffer does not hold whole.
    line: Vec<u8>,
    /// Number of bytes of the input's buffer that the line before took.
    taken: usize,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: Vec::new(), taken: 0, number: 0 }
    }

    /// The number of the line that was read last, from 1; 1 before the first.
    pub(super) fn last(&self) -> u64 {
        self.number.max(1)
    }

    /// The next line and its number from 1, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, TextError> {
        self.input.consume(std::mem::take(&mut self.taken));
        let line = match memchr::memchr(b'\n', buffered(&mut self.input)?) {
            // What is buffered is not read again, nor copied.
            Some(end) => {
                self.taken = end + 1;
                &self.input.fill_buf()?[..end]
            }
            None => {
                self.line.clear();
                let most = MAX_LINE as u64 + 2;
                if self.input.by_ref().take(most).read_until(b'\n', &mut self.line)? == 0 {
                    return Ok(None);
                }
                self.line.strip_suffix(b"\n").unwrap_or(&self.line)
            }
        };
        self.number += 1;
        let has_end = self.taken > 0 || line.len() < self.line.len();
        let line = if has_end { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        if line.len() > MAX_LINE {
            return Err(Fault::new(MAX_LINE, Reason::LineTooLong).in_line(self.number));
        }
        Ok(Some((self.number, line)))
    }
}

/// What an input has buffered, after reading if that is nothing; empty at the end.
fn buffered(input: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

/// A line and the position up to which it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    /// The current column, from 0.
    pub(super) fn column(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = self.line.len().min(self.at + bytes);
    }

    /// Moves back by this number of bytes.
    pub(super) fn back(self, bytes: usize) -> Self {
        Self { at: self.at.saturating_sub(bytes), ..self }
    }

    /// Skips blanks and tabs, and returns the next byte.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t') = self.line.get(self.at) {
            self.at += 1;
        }
        self.line.get(self.at).copied()
    }

    /// Skips a mark or keyword if it comes next; returns whether it did.
    pub(super) fn eat(&mut self, mark: &[u8]) -> bool {
        self.peek();
        let there = self.rest().starts_with(mark);
        if there {
            self.at += mark.len();
        }
        there
    }

    /// Reads a word that begins with a letter, if one comes next.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        if !self.peek()?.is_ascii_alphabetic() {
            return None;
        }
        let rest = self.rest();
        let end = rest.iter().position(|&byte| !is_of_word(byte)).unwrap_or(rest.len());
        self.at += end;
        Some(&rest[..end])
    }

    /// Reads a number of `what` up to `most`.
    pub(super) fn number(
        &mut self,
        what: &'static str,
        wanted: &'static str,
        most: u64,
    ) -> Result<u64, Fault> {
        self.peek();
        let rest = self.rest();
        let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.unexpected(wanted));
        }
        let digits = &rest[..end];
        let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
        match digits.iter().try_fold(0u64, add) {
            Some(number) if number <= most => {
                self.at += end;
                Ok(number)
            }
            _ => Err(Fault::new(self.at, Reason::NumberTooLarge { number: shown(digits), what, most })),
        }
    }

    /// A fault at the next item: `wanted` is expected here.
    pub(super) fn unexpected(mut self, wanted: &'static str) -> Fault {
        let found = match self.peek() {
            None => "the end of the line".to_owned(),
            Some(first) => format!("`{}`", shown(self.item(first))),
        };
        Fault::new(self.at, Reason::Unexpected { found, wanted })
    }

    /// The item that begins with `first`: a whole word or number, or the marks up to the next word or blank.
    fn item(&self, first: u8) -> &'a [u8] {
        let rest = self.rest();
        let end = match is_of_word(first) {
            true => rest.iter().position(|&byte| !is_of_word(byte)),
            false => rest.iter().position(|&byte| is_of_word(byte) || byte == b' '),
        };
        &rest[..end.unwrap_or(rest.len())]
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
