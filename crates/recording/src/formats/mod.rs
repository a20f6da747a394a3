//! Other tools' files, in and out. A format is recognised by its content, never by its name.

mod csv;
mod netgauge;
pub mod perfetto;

use std::io::{self, BufRead, Write};
use std::path::Path;

use crate::read::check_detours;
use crate::words::one_line;
use crate::{Cpu, CpuFacts, Detour, Error, Manifest, Method, Nanos, Recording, Span, State, Trace};

/// A format that other tools read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `cpu,start_ns,duration_ns,own` with a header line.
    Csv,
    /// netgauge's selfish detour file, which is LogGOPSim's noise file too: one CPU.
    Netgauge,
    /// Perfetto's timeline: detours and the kernel's intervals. Only written.
    Perfetto,
}

/// What a file of another tool can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readable {
    Csv,
    Netgauge,
}

/// What a file of another tool says.
#[derive(Debug)]
struct Content {
    traces: Vec<Trace>,
    threshold_ns: Option<f64>,
    note: &'static str,
}

/// Reads another tool's file as a recording. Where the file does not say how long its tool watched, the span of a
/// CPU ends with its last detour.
///
/// # Errors
/// [`Error::Malformed`] with the line and the reason, where the format is not known or a line cannot be read.
pub fn import(path: &Path) -> Result<Recording, Error> {
    parse(path, &fs_err::read(path)?)
}

/// As [`import`], of a file's content; `path` is what messages call it.
///
/// # Errors
/// As [`import`].
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Recording, Error> {
    let malformed = |reason: String| Error::malformed(path, reason);
    let text = std::str::from_utf8(bytes)
        .map_err(|_| malformed("it is not text; `convert` reads CSV and netgauge's selfish files".into()))?;
    // Spreadsheets put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let content = match sniff(text).map_err(malformed)? {
        Readable::Csv => csv::read(text),
        Readable::Netgauge => netgauge::read(text),
    }
    .map_err(malformed)?;
    for trace in &content.traces {
        check_detours(trace.cpu, trace.span, &trace.detours).map_err(malformed)?;
    }
    let mut manifest = Manifest::new(Method::Detour, State::Imported);
    manifest.note = Some(format!("imported from {}", content.note));
    manifest.threshold_ns = content.threshold_ns;
    manifest.cpus = content.traces.iter().map(|t| CpuFacts::of_span(t.cpu, t.span)).collect();
    Ok(Recording::of_traces(path, manifest, content.traces))
}

/// Writes what a recording holds for other tools, as far as their format has room for it; quell's own detours are
/// left out where it cannot mark them. Many small writes: give it a buffer.
///
/// # Errors
/// Those of `out`; for netgauge's format [`io::ErrorKind::InvalidInput`] unless there is exactly one trace.
pub fn export(recording: &Recording, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Csv => csv::write(&recording.traces, out),
        Format::Perfetto => perfetto::write(recording, out),
        Format::Netgauge => match recording.traces.as_slice() {
            [trace] => netgauge::write(trace, out),
            traces => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "netgauge's format holds one CPU and the recording has {}: choose one with --cpu",
                    traces.len()
                ),
            )),
        },
    }
}

fn sniff(text: &str) -> Result<Readable, String> {
    let first = text.lines().find(|line| !line.trim().is_empty()).ok_or("the file is empty")?;
    if first.starts_with('#') || first.split_whitespace().count() == 2 {
        Ok(Readable::Netgauge)
    } else if first.contains("start_ns") && first.contains(',') {
        Ok(Readable::Csv)
    } else {
        Err(format!(
            "the format is not known (it starts with `{}`); `convert` reads CSV with the header \
             `cpu,start_ns,duration_ns` and netgauge's selfish files",
            printable(first)
        ))
    }
}

/// A span from zero to the last detour's end.
fn span_to_last(detours: &[Detour]) -> Span {
    Span { start: Nanos::ZERO, end: detours.last().map_or(Nanos::ZERO, Detour::end) }
}

/// Reads a time in ns as other tools print it, with a fraction or without; refuses NaN, negative and endless ones.
fn time(field: &str, line: usize) -> Result<Nanos, String> {
    let whole = field.parse::<u64>().ok().map(Nanos::from_nanos);
    whole
        .or_else(|| field.parse::<f64>().ok().and_then(Nanos::from_nanos_f64))
        .ok_or_else(|| format!("line {line}: `{}` is not a time in ns", printable(field)))
}

/// A field of a hostile file, fit for a message.
fn printable(field: &str) -> String {
    one_line(&field.chars().take(40).collect::<String>())
}

/// Reads a line-based format; the closure sees line numbers from 1.
fn for_each_line(text: &str, mut each: impl FnMut(usize, &str) -> Result<(), String>) -> Result<(), String> {
    for (index, line) in text.as_bytes().lines().enumerate() {
        each(index + 1, &line.map_err(|e| e.to_string())?)?;
    }
    Ok(())
}

fn trace_of(cpu: Cpu, mut detours: Vec<Detour>, span: Option<Span>) -> Trace {
    detours.sort_by_key(|d| d.start);
    let span = span.unwrap_or_else(|| span_to_last(&detours));
    Trace { cpu, span, detours }
}
