//! trace-cmd's `trace.dat`, versions 6 and 7 (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)): the formats of events as text, and each CPU's
//! pages of the kernel's ring buffer.

mod bytes;
mod format;
mod pages;

use std::borrow::Cow;
use std::collections::BTreeSet;

use self::bytes::Bytes;
use self::format::Formats;
use super::Events;
use crate::formats::content::Content;
use crate::formats::printable;
use crate::{Cpu, Warning};

/// The beginning of such a file.
pub(in super::super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The metadata of the file.
#[derive(Default)]
struct Head {
    formats: Formats,
    /// As in the kernel's `trace_clock`, with the selected clock in brackets, or its name alone.
    clock: String,
    kernel: Option<String>,
    /// Number of events that the kernel's buffer lost, as the file states it.
    lost: u64,
    layout: pages::Layout,
    buffers: Vec<Buffer>,
}

/// The recording of one instance of the tracer.
#[derive(Default)]
struct Buffer {
    name: String,
    page_size: u32,
    compressed: bool,
    /// CPU, offset of its data, and their size in bytes.
    cpus: Vec<(u32, u64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packed {
    No,
    Zlib,
    Zstd,
}

/// Reads a whole file.
pub(in super::super) fn read(file: &[u8]) -> Result<Content, String> {
    let mut bytes = Bytes { all: file, at: MAGIC.len(), big: false };
    let version = bytes.text()?;
    bytes.big = match bytes.take(1)?[0] {
        0 => false,
        1 => true,
        other => return Err(format!("its byte order {other} is not known")),
    };
    bytes.take(1)?;
    let page_size = bytes.u32()?;
    let head = match version.as_str() {
        "6" => version_6(&mut bytes, page_size)?,
        "7" => version_7(&mut bytes)?.0,
        _ => {
            return Err(format!(
                "it is a trace.dat of version {}: convert it with `trace-cmd convert --file-version 7`",
                printable(&version)
            ));
        }
    };
    let packed = if version == "7" { compression(file, bytes.big)? } else { Packed::No };
    events_of(head, &bytes, packed)
}

fn events_of(head: Head, file: &Bytes<'_>, packed: Packed) -> Result<Content, String> {
    let clock = match head.clock.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((chosen, _)) => chosen.to_owned(),
        None => head.clock.trim().to_owned(),
    };
    if matches!(clock.as_str(), "counter" | "x86-tsc") {
        return Err(format!(
            "its clock is {clock}, which counts no ns: record with `trace-cmd record -C mono`"
        ));
    }
    let mut events = Events { lost: head.lost, ..Events::default() };
    let (mut used, mut left) = (None, Vec::new());
    let (mut missed, mut budget) = (0u64, MOST_UNPACKED.saturating_mul(file.all.len() as u64) + MOST_CHUNK);
    for buffer in head.buffers.iter().filter(|buffer| buffer.cpus.iter().any(|(_, _, size)| *size > 0)) {
        if used.is_some() {
            left.push(printable(&buffer.name));
            continue;
        }
        used = Some(buffer);
        // Overlapping parts could make a small file appear long.
        let all = buffer.cpus.iter().fold(0u64, |sum, (_, _, size)| sum.saturating_add(*size));
        if all > file.all.len() as u64 {
            return Err(format!(
                "its CPUs have {all} bytes of events, and it has {}: it is damaged or cut off",
                file.all.len()
            ));
        }
        for &(cpu, offset, size) in &buffer.cpus {
            if size == 0 {
                continue;
            }
            let mut lost = 0u64;
            let mut pages = |data: &[u8]| {
                budget = budget
                    .checked_sub(data.len() as u64)
                    .ok_or("it is far longer unpacked than traces are: it is damaged")?;
                let mut each = |time: u64, event: &[u8]| {
                    if event.is_empty() {
                        events.lose(Cpu(cpu));
                        return Ok(());
                    }
                    let (name, what) = head.formats.what(file.over(event), &mut events.names)?;
                    events.push(Cpu(cpu), time, name, what)
                };
                let of_pages = pages::each(file.over(data), buffer.page_size, head.layout, &mut each)
                    .map_err(|reason| format!("CPU {cpu}: {reason}"))?;
                lost = lost.saturating_add(of_pages);
                Ok(())
            };
            if buffer.compressed {
                // The size is that of the chunks, without the field for their count.
                each_chunk(file.over(file.part(offset, size.saturating_add(4))?), packed, &mut pages)?;
            } else {
                pages(file.part(offset, size)?)?;
            }
            missed = missed.saturating_add(lost);
        }
    }
    // The tool's sum and the counts in pages describe the same losses.
    events.lost = events.lost.max(missed);
    if used.is_none() {
        return Err("it holds no events".into());
    }
    if !left.is_empty() {
        events.warnings.push(Warning::InstancesLeftOut { instances: left });
    }
    let mut content = events.content("a trace.dat of trace-cmd's", clock == "mono")?;
    content.manifest.kernel = head.kernel;
    Ok(content)
}

impl Head {
    /// Reads an option that is the same in both versions, by its number.
    fn option(&mut self, id: u16, data: &Bytes<'_>) {
        let text = || String::from_utf8_lossy(data.all).trim_end_matches('\0').trim().to_owned();
        match id {
            2 => {
                let lost =
                    |line: &str| line.strip_prefix("overrun:").and_then(|n| n.trim().parse::<u64>().ok());
                self.lost =
                    self.lost.saturating_add(text().lines().filter_map(lost).fold(0, u64::saturating_add));
            }
            4 => self.clock = text(),
            5 => self.kernel = Some(text()),
            _ => {}
        }
    }

    fn header_info(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        bytes.expect("header_page\0")?;
        let size = bytes.u64()?;
        self.layout = pages::Layout::read(&String::from_utf8_lossy(bytes.take(size)?))?;
        bytes.expect("header_event\0")?;
        let size = bytes.u64()?;
        bytes.take(size)?;
        Ok(())
    }

    fn ftrace_formats(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for _ in 0..bytes.u32()? {
            let size = bytes.u64()?;
            self.formats.add("ftrace", &String::from_utf8_lossy(bytes.take(size)?))?;
        }
        Ok(())
    }

    fn event_formats(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for _ in 0..bytes.u32()? {
            let system = bytes.text()?;
            for _ in 0..bytes.u32()? {
                let size = bytes.u64()?;
                self.formats.add(&system, &String::from_utf8_lossy(bytes.take(size)?))?;
            }
        }
        Ok(())
    }
}

/// Version 6 has one section after the other, then the offsets of each CPU's pages.
fn version_6(bytes: &mut Bytes<'_>, page_size: u32) -> Result<Head, String> {
    let mut head = Head::default();
    head.header_info(bytes)?;
    head.ftrace_formats(bytes)?;
    head.event_formats(bytes)?;
    for _ in 0..2 {
        // Names of functions, and formats of printk.
        let size = bytes.u32()?;
        bytes.take(size.into())?;
    }
    let size = bytes.u64()?;
    bytes.take(size)?; // names of tasks: switches have them too
    let cpus = bytes.u32()?;
    let mut instances = Vec::new();
    let mut kind = bytes.take(10)?;
    if kind == b"options  \0" {
        loop {
            let id = bytes.u16()?;
            if id == 0 {
                break;
            }
            let size = bytes.u32()?;
            let data = bytes.take(size.into())?;
            let mut data = bytes.over(data);
            head.option(id, &data);
            if id == 3 {
                let offset = data.u64()?;
                instances.push((offset, data.text().unwrap_or_default()));
                if instances.len() > MOST_POINTERS {
                    return Err(format!("it has more than {MOST_POINTERS} instances"));
                }
            }
        }
        kind = bytes.take(10)?;
    }
    head.buffers.push(flyrecord(bytes, kind, String::new(), page_size, cpus)?);
    for (offset, name) in instances {
        let mut there = Bytes { at: usize::try_from(offset).unwrap_or(usize::MAX), ..*bytes };
        let kind = there.take(10)?;
        head.buffers.push(flyrecord(&mut there, kind, name, page_size, cpus)?);
    }
    Ok(head)
}

fn flyrecord(
    bytes: &mut Bytes<'_>,
    kind: &[u8],
    name: String,
    page_size: u32,
    cpus: u32,
) -> Result<Buffer, String> {
    if kind == b"latency  \0" {
        return Err("it holds the text of a latency tracer: `trace-cmd report` prints it".into());
    }
    if kind != b"flyrecord\0" {
        return Err("the description of its events is missing: the file is damaged".into());
    }
    let mut buffer = Buffer { name, page_size, ..Buffer::default() };
    for cpu in 0..cpus {
        buffer.cpus.push((cpu, bytes.u64()?, bytes.u64()?));
    }
    Ok(buffer)
}

/// The name of the compression precedes the offset of the first options.
fn compression(file: &[u8], big: bool) -> Result<Packed, String> {
    let mut bytes = Bytes { all: file, at: MAGIC.len() + 2 + 2 + 4, big };
    match bytes.text()?.as_str() {
        "none" => Ok(Packed::No),
        "zlib" => Ok(Packed::Zlib),
        "zstd" => Ok(Packed::Zstd),
        other => Err(format!(
            "it is compressed with {}, which is not read: `trace-cmd convert --compression none` undoes that",
            printable(other)
        )),
    }
}

/// In version 7, options point to the sections.
fn version_7(bytes: &mut Bytes<'_>) -> Result<(Head, Packed), String> {
    let packed = compression(bytes.all, bytes.big)?;
    bytes.text()?;
    bytes.text()?;
    let mut head = Head::default();
    let mut next = bytes.u64()?;
    let (mut seen, mut reported) = (BTreeSet::new(), BTreeSet::new());
    while next != 0 {
        if !seen.insert(next) || seen.len() > MOST_POINTERS {
            return Err("its options point at themselves: it is damaged".into());
        }
        let data = section(bytes, next, 0, packed)?;
        let mut options = bytes.over(&data);
        next = 0;
        while options.at < options.all.len() {
            let id = options.u16()?;
            let size = options.u32()?;
            let data = options.take(size.into())?;
            let mut data = options.over(data);
            if (16..=18).contains(&id) && !reported.insert(id) {
                return Err(format!("it has section {id} twice: it is damaged"));
            }
            match id {
                0 => {
                    next = data.u64()?;
                    break;
                }
                3 => {
                    let buffer = buffer(bytes, &mut data)?;
                    head.buffers.push(buffer);
                    if head.buffers.len() > MOST_POINTERS {
                        return Err(format!("it has more than {MOST_POINTERS} instances"));
                    }
                }
                16 => head.header_info(&mut bytes.over(&section(bytes, data.u64()?, 16, packed)?))?,
                17 => head.ftrace_formats(&mut bytes.over(&section(bytes, data.u64()?, 17, packed)?))?,
                18 => head.event_formats(&mut bytes.over(&section(bytes, data.u64()?, 18, packed)?))?,
                _ => head.option(id, &data),
            }
        }
    }
    Ok((head, packed))
}

/// The head of a section: its flags, and the offset and size of its data.
fn section_head(file: &Bytes<'_>, offset: u64, id: u16) -> Result<(u16, u64, u64), String> {
    let mut there = Bytes { at: usize::try_from(offset).unwrap_or(usize::MAX), ..*file };
    let found = there.u16()?;
    if found != id {
        return Err(format!("at byte {offset} there is section {found} where {id} should be: it is damaged"));
    }
    let flags = there.u16()?;
    there.take(4)?;
    let size = there.u64()?;
    Ok((flags, there.at as u64, size))
}

fn section<'a>(file: &Bytes<'a>, offset: u64, id: u16, packed: Packed) -> Result<Cow<'a, [u8]>, String> {
    let (flags, at, size) = section_head(file, offset, id)?;
    let data = file.part(at, size)?;
    if flags & 1 == 0 {
        return Ok(Cow::Borrowed(data));
    }
    Ok(Cow::Owned(unpack(&mut file.over(data), packed)?))
}

fn buffer(file: &Bytes<'_>, data: &mut Bytes<'_>) -> Result<Buffer, String> {
    let (flags, ..) = section_head(file, data.u64()?, 3)?;
    let name = data.text()?;
    data.text()?; // the clock, which is that of the option TRACECLOCK
    let mut buffer = Buffer { name, page_size: data.u32()?, compressed: flags & 1 != 0, cpus: Vec::new() };
    for _ in 0..data.u32()? {
        buffer.cpus.push((data.u32()?, data.u64()?, data.u64()?));
    }
    Ok(buffer)
}

/// Reads a CPU's pages, which come in chunks of whole pages.
fn each_chunk(
    mut data: Bytes<'_>,
    packed: Packed,
    each: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    for _ in 0..data.u32()? {
        each(&unpack(&mut data, packed)?)?;
    }
    Ok(())
}

/// Maximum ratio of a chunk's claimed size to its packed size; real traces are far below.
const MOST_RATIO: u64 = 4_096;
/// Maximum ratio of all unpacked data to the length of the file, in addition to one chunk.
const MOST_UNPACKED: u64 = 64;
/// Maximum size of a chunk, in bytes. The size is chosen when the file is made; trace-cmd uses some pages.
const MOST_CHUNK: u64 = 1 << 28;
/// Maximum number of instances of the tracer, and of sections of options. Each can point anywhere, so several could be the same part of the file.
const MOST_POINTERS: usize = 64;

/// Unpacks a chunk: two sizes, followed by the packed data.
fn unpack(data: &mut Bytes<'_>, packed: Packed) -> Result<Vec<u8>, String> {
    let (size, unpacked) = (data.u32()?, data.u32()?);
    let chunk = data.take(size.into())?;
    if u64::from(unpacked) > (u64::from(size) * MOST_RATIO).min(MOST_CHUNK) {
        return Err(format!("{size} packed bytes claim to be {unpacked}: it is damaged"));
    }
    let found = match packed {
        Packed::No => {
            return Err("a section is packed, and the file names no compression: it is damaged".into());
        }
        Packed::Zstd => zstd::bulk::decompress(chunk, unpacked as usize),
        Packed::Zlib => {
            use std::io::Read as _;
            let mut found = Vec::new();
            let mut reader = flate2::read::ZlibDecoder::new(chunk).take(unpacked.into());
            reader.read_to_end(&mut found).map(|_| found)
        }
    };
    found.map_err(|error| format!("a packed section is damaged: {error}"))
}

#[cfg(test)]
mod tests;
