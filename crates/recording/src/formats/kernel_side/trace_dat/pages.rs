//! The kernel's ring buffer, page by page (include/linux/ring_buffer.h, kernel/trace/ring_buffer.c).

use super::bytes::Bytes;

/// The positions of fields in the head of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    commit: usize,
    commit_size: usize,
    data: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self { commit: 8, commit_size: 8, data: 16 }
    }
}

impl Layout {
    /// Parses the kernel's `events/header_page`.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut layout = Self::default();
        for line in text.lines().filter(|line| line.contains("field:")) {
            let number = |name: &str| {
                let (_, rest) = line.split_once(name)?;
                rest.split(';').next()?.trim().parse::<usize>().ok().filter(|number| *number <= 64)
            };
            let wrong = "its `header_page` cannot be read: it is damaged";
            if line.contains(" commit;") {
                layout.commit = number("offset:").ok_or(wrong)?;
                layout.commit_size = number("size:").filter(|size| [4, 8].contains(size)).ok_or(wrong)?;
            } else if line.contains(" data;") {
                layout.data = number("offset:").ok_or(wrong)?;
            }
        }
        Ok(layout)
    }
}

/// Receives an event's time and bytes; no bytes if events were lost there.
pub(super) type Each<'a> = dyn FnMut(u64, &[u8]) -> Result<(), String> + 'a;

/// Flags of a page's commit: events were lost before it, and their number follows its data.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// The bits of a commit that hold the length.
const LENGTH: u64 = (1 << 20) - 1;

const PADDING: u32 = 29;
const EXTEND: u32 = 30;
const STAMP: u32 = 31;

/// Passes each event's time and bytes to a function; returns the number of lost events.
pub(super) fn each(
    mut data: Bytes<'_>,
    page_size: u32,
    layout: Layout,
    each: &mut Each<'_>,
) -> Result<u64, String> {
    if (page_size as usize) < layout.data + 8 {
        return Err(format!("pages of {page_size} bytes are none: it is damaged"));
    }
    let mut lost = 0u64;
    while data.at < data.all.len() {
        let size = u64::from(page_size).min((data.all.len() - data.at) as u64);
        let page = data.take(size)?;
        let page = data.over(page);
        lost = lost.saturating_add(read_page(page, layout, each)?);
    }
    Ok(lost)
}

fn read_page(mut page: Bytes<'_>, layout: Layout, each: &mut Each<'_>) -> Result<u64, String> {
    let mut time = page.u64()?;
    page.at = layout.commit;
    let commit = page.number(layout.commit_size)?;
    let end = layout.data + (commit & LENGTH) as usize;
    if commit & MISSED != 0 {
        each(time, &[])?;
    }
    page.at = layout.data;
    let mut within =
        Bytes { all: page.all.get(..end).ok_or("a page is longer than pages are: it is damaged")?, ..page };
    while within.at + 4 <= end {
        let word = within.u32()?;
        let (kind, delta) =
            if page.big { (word >> 27, word & ((1 << 27) - 1)) } else { (word & 31, word >> 5) };
        match kind {
            PADDING if delta == 0 => break,
            PADDING => {
                // Its length does not include the delta.
                let length = within.u32()?;
                time = time.saturating_add(delta.into());
                within.take(u64::from(length).saturating_sub(4))?;
            }
            EXTEND => time = time.saturating_add(u64::from(delta) + (u64::from(within.u32()?) << 27)),
            // It has 59 bits of the time; the bits above are those of the page.
            STAMP => time = (time >> 59 << 59) | (u64::from(delta) + (u64::from(within.u32()?) << 27)),
            0 => {
                time = time.saturating_add(delta.into());
                let length = within.u32()?;
                let length = length.checked_sub(4).ok_or("an event is shorter than its own length")?;
                each(
                    time,
                    within.take(u64::from(length).next_multiple_of(4).min((end - within.at) as u64))?,
                )?;
            }
            words => {
                time = time.saturating_add(delta.into());
                each(time, within.take(u64::from(words) * 4)?)?;
            }
        }
    }
    let missed = match commit & (MISSED | MISSED_STORED) {
        0 | MISSED_STORED => 0,
        MISSED => 1,
        _ => Bytes { at: end, ..page }.number(layout.commit_size).unwrap_or(1),
    };
    Ok(missed)
}
