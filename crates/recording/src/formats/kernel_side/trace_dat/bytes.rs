//! Numbers and strings of a file, in its byte order.

#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub all: &'a [u8],
    pub at: usize,
    pub big: bool,
}

impl<'a> Bytes<'a> {
    /// Other bytes, in the same byte order.
    pub fn over<'b>(&self, all: &'b [u8]) -> Bytes<'b> {
        Bytes { all, at: 0, big: self.big }
    }

    pub fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let part = end.and_then(|end| self.all.get(self.at..end));
        let part = part.ok_or_else(|| {
            format!("it ends at byte {}, in the middle of something: it is cut off", self.all.len())
        })?;
        self.at += part.len();
        Ok(part)
    }

    /// A part at any offset.
    pub fn part(&self, offset: u64, size: u64) -> Result<&'a [u8], String> {
        Bytes { at: usize::try_from(offset).unwrap_or(usize::MAX), ..*self }.take(size)
    }

    pub fn u16(&mut self) -> Result<u16, String> {
        let bytes = self.take(2)?;
        let bytes = [bytes[0], bytes[1]];
        Ok(if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    pub fn u32(&mut self) -> Result<u32, String> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub fn u64(&mut self) -> Result<u64, String> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// A number of `size` bytes.
    pub fn number(&mut self, size: usize) -> Result<u64, String> {
        match size {
            1 => Ok(self.take(1)?[0].into()),
            2 => self.u16().map(Into::into),
            4 => self.u32().map(Into::into),
            8 => self.u64(),
            other => Err(format!("a field of {other} bytes is no number")),
        }
    }

    /// Text up to the next zero byte.
    pub fn text(&mut self) -> Result<String, String> {
        let rest = self.all.get(self.at..).unwrap_or_default();
        let length =
            rest.iter().position(|byte| *byte == 0).ok_or("a text in it has no end: it is cut off")?;
        let text = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + 1;
        Ok(text)
    }

    pub fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.take(word.len() as u64)? == word.as_bytes() {
            return Ok(());
        }
        Err(format!("`{}` is not where it should be: it is damaged", word.trim_end_matches('\0')))
    }
}
