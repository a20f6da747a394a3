//! Reads bytes in order, through a buffer of fixed size.

use std::io::{self, Read};

use super::error::{BinaryError, Part};

const BUFFER: usize = 1 << 17;

/// An input that counts the bytes that were read from it.
pub(super) struct Input<R> {
    inner: R,
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    /// Number of bytes that were read.
    pub(super) taken: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, buffer: vec![0; BUFFER].into_boxed_slice(), begin: 0, end: 0, taken: 0 }
    }

    /// As many whole records of `size` bytes as the buffer holds, at least one and at most `most`; fails in `part` if
    /// the input ends before one is complete.
    pub(super) fn records(&mut self, size: usize, most: usize, part: Part) -> Result<&[u8], BinaryError> {
        debug_assert!(size <= self.buffer.len() && most > 0);
        while self.end - self.begin < size {
            self.fill(part)?;
        }
        let records = most.min((self.end - self.begin) / size);
        let begin = self.begin;
        self.begin += records * size;
        self.taken += (records * size) as u64;
        Ok(&self.buffer[begin..self.begin])
    }

    /// Exactly `N` bytes.
    pub(super) fn array<const N: usize>(&mut self, part: Part) -> Result<[u8; N], BinaryError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.records(N, 1, part)?);
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, part: Part) -> Result<u32, BinaryError> {
        self.array(part).map(u32::from_le_bytes)
    }

    /// Appends `count` numbers to `list`, which grows only as they are read.
    pub(super) fn u32s(&mut self, count: u64, list: &mut Vec<u32>, part: Part) -> Result<(), BinaryError> {
        let mut left = count;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let bytes = self.records(4, most, part)?;
            left -= (bytes.len() / 4) as u64;
            let (numbers, _) = bytes.as_chunks();
            list.extend(numbers.iter().map(|number| u32::from_le_bytes(*number)));
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, count: u64, part: Part) -> Result<(), BinaryError> {
        let mut left = count;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            left -= self.records(1, most, part)?.len() as u64;
        }
        Ok(())
    }

    fn fill(&mut self, part: Part) -> Result<(), BinaryError> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        loop {
            match self.inner.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(BinaryError::Truncated(part, self.taken + self.end as u64)),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
