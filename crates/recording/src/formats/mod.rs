//! Reads and writes other tools' files. A format is recognised by its content, never by its name.

pub mod catalogue;
mod chrome;
mod columns;
mod content;
mod csv;
mod histograms;
mod kernel_side;
mod netgauge;
mod netgauge_quanta;
pub mod perfetto;
mod psnap;
mod sniff;
mod sysjitter;
mod ticks;
mod vpsum;

use std::io::{self, BufRead, Write};
use std::path::Path;

use self::content::Content;
pub use self::content::Imported;
use self::sniff::{Readable, sniff, sniff_bytes};
use crate::display_text::one_line;
use crate::whole_file;
use crate::{Cpu, Error, Manifest, Method, Nanos, Phase, RankFacts, Recording};

/// A format that other tools read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table with a header line: detours, quanta, intervals or histograms, depending on the recording.
    Csv,
    /// netgauge's files of one CPU, depending on the recording: selfish detours, FWQ or FTQ.
    Netgauge,
    /// LogGOPSim's noise file, which equals netgauge's of selfish detours. Only written under this name.
    LogGopSim,
    /// A log of HdrHistogram: durations of detours, or the counts of a histogram.
    HdrHistogram,
    /// Chrome's JSON trace. Only written.
    Chrome,
    /// Perfetto's timeline: detours and the kernel's intervals. Only written.
    Perfetto,
    /// IBM's vpsum: each iteration of one rank.
    Vpsum,
    /// LANL's PSNAP: a histogram of each rank's quanta.
    Psnap,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Csv,
        Self::Netgauge,
        Self::LogGopSim,
        Self::HdrHistogram,
        Self::Chrome,
        Self::Perfetto,
        Self::Vpsum,
        Self::Psnap,
    ];

    /// Its name for `--to`, as in [`catalogue`].
    pub fn word(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Netgauge => "netgauge",
            Self::LogGopSim => "loggopsim",
            Self::HdrHistogram => "hdrhistogram",
            Self::Chrome => "chrome",
            Self::Perfetto => "perfetto",
            Self::Vpsum => "vpsum",
            Self::Psnap => "psnap",
        }
    }

    /// The format with this name for `--to`; `None` if other crates write it, or if there is none.
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }
}

/// Reads another tool's file as a recording. If the file does not state how long its tool observed, the span of a
/// CPU ends with its last row. [`import_all`] returns the phases of ranks too.
///
/// # Errors
/// [`Error::Malformed`] with the line and the reason, if the format is unknown or a line cannot be read.
pub fn import(path: &Path) -> Result<Recording, Error> {
    Ok(import_all(path)?.recording)
}

/// Reads another tool's file, or a folder of vpsum's files, one per rank.
///
/// # Errors
/// As [`import`].
pub fn import_all(path: &Path) -> Result<Imported, Error> {
    if path.is_dir() {
        vpsum::read_folder(path, |text| Ok(sniff(text)? == Readable::Vpsum))
    } else {
        let bytes = whole_file::read_if(path, whole_file::MOST_BYTES, |begin| may_be_read(path, begin))?;
        parse_all(path, &bytes)
    }
}

/// As [`import`], from a file's content; `path` names the file in messages.
///
/// # Errors
/// As [`import`].
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Recording, Error> {
    Ok(parse_all(path, bytes)?.recording)
}

/// As [`import_all`], from a file's content.
///
/// # Errors
/// As [`import`].
pub fn parse_all(path: &Path, bytes: &[u8]) -> Result<Imported, Error> {
    let malformed = |reason: String| Error::malformed(path, reason);
    if sniff_bytes(bytes).map_err(malformed)? == Some(Readable::TraceDat) {
        let content = kernel_side::trace_dat::read(bytes).map_err(malformed)?;
        return content.finish(path).map_err(malformed);
    }
    let text = text_of(bytes).map_err(malformed)?;
    let content: Content = match sniff(text).map_err(malformed)? {
        Readable::Sysjitter => sysjitter::read(path, text),
        Readable::RtTestsJson => histograms::read_json(text),
        Readable::Oslat => histograms::read_oslat(text),
        Readable::Cyclictest => histograms::read_cyclictest(text),
        Readable::CyclictestVerbose => histograms::read_cyclictest_verbose(text),
        Readable::RtlaHist => histograms::read_rtla_hist(text),
        Readable::RtlaTop => histograms::read_rtla_top(text),
        Readable::Hdr => histograms::read_hdr(text),
        Readable::Ftrace => kernel_side::read_ftrace(text),
        Readable::Perf => kernel_side::read_perf(text),
        Readable::DetourList => kernel_side::read_detour_list(text),
        Readable::EventList => kernel_side::read_event_list(text),
        Readable::TraceDat => Err(sniff::no_text()),
        Readable::Csv => csv::read(text),
        Readable::Netgauge => netgauge::read(text),
        Readable::NetgaugeQuanta => netgauge_quanta::read(text),
        Readable::Llnl => ticks::read_llnl(text),
        Readable::Minnich => ticks::read_minnich(text),
        Readable::Psnap => psnap::read(text),
        Readable::Vpsum => vpsum::read_file(path, text),
    }
    .map_err(malformed)?;
    content.finish(path).map_err(malformed)
}

/// Refuses what no format begins with, before the rest is read.
fn may_be_read(path: &Path, begin: &[u8]) -> Result<(), Error> {
    let malformed = |reason: String| Error::malformed(path, reason);
    let is_text = sniff_bytes(begin).map_err(malformed)?.is_none();
    if is_text && begin.contains(&0) { Err(malformed(sniff::no_text())) } else { Ok(()) }
}

fn text_of(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| sniff::no_text())?;
    // Spreadsheets add a byte order mark at the beginning.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Writes the content of a recording for other tools, as far as their format can store it; quell's own detours are
/// omitted if the format cannot mark them. Makes many small writes, so `out` should be buffered.
///
/// # Errors
/// Those of `out`; [`io::ErrorKind::InvalidInput`] for netgauge's formats unless there is exactly one CPU, and for those
/// of phases, which [`export_phases`] writes.
pub fn export(recording: &Recording, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Csv => csv::write(recording, out),
        Format::HdrHistogram => histograms::write_hdr(recording, out),
        Format::Chrome => chrome::write(recording, out),
        Format::LogGopSim => netgauge::write(only(&recording.traces)?, out),
        Format::Perfetto => perfetto::write(recording, out),
        Format::Netgauge => match recording.manifest.method {
            Method::Fwq | Method::Ftq => netgauge_quanta::write(recording, only(&recording.quanta)?, out),
            _ => netgauge::write(only(&recording.traces)?, out),
        },
        Format::Vpsum | Format::Psnap => Err(invalid("the format is one of phases of ranks".into())),
    }
}

/// Writes phases in vpsum's or PSNAP's format; `manifest` is that of their recording. vpsum holds one rank.
///
/// # Errors
/// Those of `out`; [`io::ErrorKind::InvalidInput`] for any other format, and for vpsum unless there is exactly one rank.
pub fn export_phases(
    manifest: &Manifest,
    phases: &[(Cpu, Phase)],
    format: Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Psnap => psnap::write(manifest, phases, out),
        Format::Vpsum => vpsum::write(manifest, phases, out),
        _ => Err(invalid("the format has no room for phases of ranks".into())),
    }
}

fn only<T>(per_cpu: &[T]) -> io::Result<&T> {
    match per_cpu {
        [one] => Ok(one),
        all => Err(invalid(format!(
            "netgauge's format holds one CPU and the recording has {}: choose one with --cpu",
            all.len()
        ))),
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// Parses a time in ns as other tools print it, with a fraction or without; rejects NaN, negative and infinite values.
fn time(field: &str, line: usize) -> Result<Nanos, String> {
    let whole = field.parse::<u64>().ok().map(Nanos::from_nanos);
    whole
        .or_else(|| field.parse::<f64>().ok().and_then(Nanos::from_nanos_f64))
        .ok_or_else(|| format!("line {line}: `{}` is not a time in ns", printable(field)))
}

/// A field of a hostile file, escaped and shortened for a message.
fn printable(field: &str) -> String {
    one_line(&field.chars().take(40).collect::<String>())
}

/// Reads a line-based format; the closure gets line numbers from 1.
fn for_each_line(text: &str, mut each: impl FnMut(usize, &str) -> Result<(), String>) -> Result<(), String> {
    for (index, line) in text.as_bytes().lines().enumerate() {
        each(index + 1, &line.map_err(|e| e.to_string())?)?;
    }
    Ok(())
}

/// The facts of a rank whose file does not describe its process.
fn rank_facts(rank: u32) -> RankFacts {
    let (cpus, ns_per_iteration) = (String::new(), 0.0);
    RankFacts { rank, pid: 0, cpus, ns_per_iteration, timing_ns: 0.0, clock_offset_ns: 0, clock_error_ns: 0 }
}
