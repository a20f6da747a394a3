//! HdrHistogram logs (`.hlog`), as jHiccup and the HdrHistogram libraries write them: a line for each interval with a zlib-compressed
//! V2 histogram in base64 (HdrHistogram's HistogramLogWriter and AbstractHistogram.encodeIntoCompressedByteBuffer). Its values have no
//! unit; jHiccup's are ns, and so are ours.
//!
//! Written with the crate `hdrhistogram`, but read here: that crate allocates the whole range that a file claims, which can be
//! 50 MB for a line of a hundred bytes.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::{Counts, Series};
use crate::formats::content::Content;
use crate::formats::{for_each_line, invalid, one_line, printable};
use crate::warning::TaggedThread;
use crate::{Cpu, HistogramKind, Nanos, Recording, Warning};

/// Maximum number of tags, each of which gets a thread's number.
const MOST_TAGS: usize = 1 << 12;
/// Maximum number of tags that the warning names.
const MOST_NAMED: usize = 8;

#[derive(Default)]
struct Log {
    counts: Counts,
    /// Tags of other tools.
    tags: BTreeMap<String, u32>,
    /// First start and last end of each CPU, in s.
    spans: BTreeMap<Cpu, (f64, f64)>,
    start_unix: Option<f64>,
    intervals: u64,
}

pub(in super::super) fn read(text: &str) -> Result<Content, String> {
    let mut log = Log::default();
    for_each_line(text, |number, line| {
        log.read(line.trim()).map_err(|reason| format!("line {number}: {reason}"))
    })?;
    if log.intervals == 0 {
        return Err("the log holds no histogram".into());
    }
    for (cpu, (from, to)) in &log.spans {
        let span = Nanos::from_nanos_f64((to - from) * 1e9).unwrap_or(Nanos::ZERO);
        log.counts.watch(*cpu, span);
    }
    let warnings = &mut log.counts.warnings;
    warnings.push(Warning::UnitUnknown);
    if !log.tags.is_empty() {
        let named = log.tags.iter().map(|(tag, &thread)| TaggedThread { thread, tag: one_line(tag) });
        let tags: Vec<TaggedThread> = named.take(MOST_NAMED).collect();
        let more = (log.tags.len() - tags.len()) as u64;
        warnings.push(Warning::TagsAsThreads { tags, more });
    } else if log.counts.buckets.keys().all(|(cpu, ..)| *cpu == Cpu(0)) {
        warnings.push(Warning::CpusOfThreadsUnknown);
    }
    let zero = log.start_unix.and_then(|seconds| Nanos::from_nanos_f64(seconds * 1e9));
    let mut content = log.counts.content("an HdrHistogram log");
    content.manifest.zero_unix_ns = zero.map(Nanos::as_nanos);
    Ok(content)
}

impl Log {
    fn read(&mut self, line: &str) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(rest) = comment.strip_prefix("[StartTime:") {
                self.start_unix = rest.split_whitespace().next().and_then(|word| word.parse().ok());
            }
            return Ok(());
        }
        if line.is_empty() || line.starts_with('"') {
            return Ok(());
        }
        let (tag, rest) = match line.strip_prefix("Tag=") {
            Some(tagged) => tagged.split_once(',').ok_or("nothing follows its tag")?,
            None => ("", line),
        };
        let fields: Vec<&str> = rest.split(',').map(str::trim).collect();
        let [start, length, _, coded] = fields[..] else {
            return Err(format!("`{}` is not `start,length,max,histogram`", printable(line)));
        };
        let seconds = |word: &str| {
            let time = word.parse::<f64>().ok().filter(|time| time.is_finite() && *time >= 0.0);
            time.ok_or_else(|| format!("`{}` is not a time in seconds", printable(word)))
        };
        let (start, length) = (seconds(start)?, seconds(length)?);
        let series = self.series(tag)?;
        let span = self.spans.entry(series.0).or_insert((start, start));
        *span = (span.0.min(start), span.1.max(start + length));
        let bytes = base64::engine::general_purpose::STANDARD.decode(coded);
        let bytes = bytes.map_err(|error| format!("its histogram is not base64: {error}"))?;
        self.intervals += 1;
        decode(&payload(&bytes)?, |from, to, count| self.counts.add(series, from, to, count))
    }

    /// The series of a tag; quell's own tags name CPU, thread and kind.
    fn series(&mut self, tag: &str) -> Result<Series, String> {
        if tag.is_empty() {
            return Ok((Cpu(0), 0, HistogramKind::Latency));
        }
        if let Some(series) = series_from_tag(tag) {
            return Ok(series);
        }
        // 0 is for values without a tag.
        let next = self.tags.len() as u32 + 1;
        let thread = *self.tags.entry(tag.to_owned()).or_insert(next);
        if self.tags.len() > MOST_TAGS {
            return Err(format!("the log has more than {MOST_TAGS} tags"));
        }
        Ok((Cpu(0), thread, HistogramKind::Latency))
    }
}

fn tag((cpu, thread, kind): Series) -> String {
    format!("cpu{cpu}.thread{thread}.{kind}")
}

fn series_from_tag(tag: &str) -> Option<Series> {
    let mut parts = tag.split('.');
    let cpu = parts.next()?.strip_prefix("cpu")?.parse().ok()?;
    let thread = parts.next()?.strip_prefix("thread")?.parse().ok()?;
    let kind = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((Cpu(cpu), thread, kind))
}

const COMPRESSED_V2: u32 = 0x1c84_9314;
const PLAIN_V2: u32 = 0x1c84_9313;

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let word = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    word.map(u32::from_be_bytes).ok_or_else(|| "its histogram is cut off".into())
}

fn long(bytes: &[u8], at: usize) -> Result<u64, String> {
    Ok(u64::from(word(bytes, at)?) << 32 | u64::from(word(bytes, at + 4)?))
}

/// Maximum size of a plain histogram: 64 halves of 2^18 counts of up to 9 bytes each are what 5 significant digits need.
const MOST_PLAIN: u64 = 128 << 20;

/// The plain V2 form of a compressed one.
fn payload(bytes: &[u8]) -> Result<Vec<u8>, String> {
    match word(bytes, 0)? {
        PLAIN_V2 => Ok(bytes.to_vec()),
        COMPRESSED_V2 => {
            let mut plain = Vec::new();
            let mut reader =
                flate2::read::ZlibDecoder::new(&bytes[8.min(bytes.len())..]).take(MOST_PLAIN + 1);
            reader.read_to_end(&mut plain).map_err(|error| format!("its histogram is damaged: {error}"))?;
            if plain.len() as u64 > MOST_PLAIN {
                return Err(format!(
                    "its histogram unpacks to more than {MOST_PLAIN} bytes, which none needs: it is damaged"
                ));
            }
            Ok(plain)
        }
        0x1c84_9300..=0x1c84_9302 => {
            Err("its histogram has the encoding V0 or V1: write it again with a library that encodes V2"
                .into())
        }
        0x0c72_124e | 0x0c72_124f => Err("its histogram is of real numbers: only whole ones are read".into()),
        other => Err(format!("its histogram begins with {other:#x}, which is no encoding of HdrHistogram's")),
    }
}

/// Calls `each` for each bucket with a count, as (smallest value, largest value, count).
fn decode(plain: &[u8], mut each: impl FnMut(u64, u64, u64) -> Result<(), String>) -> Result<(), String> {
    const HEAD: usize = 40;
    if word(plain, 0)? != PLAIN_V2 {
        return Err("its histogram is damaged: it is not V2 inside".into());
    }
    let (length, offset, digits) = (word(plain, 4)? as usize, word(plain, 8)?, word(plain, 12)?);
    let (low, ratio) = (long(plain, 16)?, f64::from_bits(long(plain, 32)?));
    if offset != 0 || ratio != 1.0 || digits > 5 || low == 0 {
        return Err("its histogram is shifted, scaled, or of more than 5 digits: that is not read".into());
    }
    let counts = plain.get(HEAD..).and_then(|rest| rest.get(..length)).ok_or("its histogram is cut off")?;
    let shape = Shape::new(digits, low);
    let (mut index, mut at) = (0u64, 0);
    while at < counts.len() {
        let number = zigzag(varint(counts, &mut at)?);
        if number < 0 {
            index = index.saturating_add(number.unsigned_abs());
            continue;
        }
        if number > 0 {
            let (from, to) = shape.range(index)?;
            each(from, to, number as u64)?;
        }
        index = index.saturating_add(1);
    }
    Ok(())
}

/// Mapping of counts to values: the first 2^(half+1) cover one unit each, and each further 2^half cover twice the width of those before.
struct Shape {
    half: u32,
    unit: u32,
}

impl Shape {
    fn new(digits: u32, low: u64) -> Self {
        let largest = 2 * 10u64.pow(digits);
        Self { half: largest.next_power_of_two().trailing_zeros().saturating_sub(1), unit: low.ilog2() }
    }

    fn range(&self, index: u64) -> Result<(u64, u64), String> {
        let half = 1u64 << self.half;
        let (bucket, sub) = match (index >> self.half).checked_sub(1) {
            None => (0, index),
            Some(bucket) => (bucket, (index & (half - 1)) + half),
        };
        let shift = u32::try_from(bucket).ok().and_then(|bucket| bucket.checked_add(self.unit));
        let beyond = || "its histogram counts a value beyond 64 bits".to_owned();
        let shift = shift.filter(|shift| *shift < 64).ok_or_else(beyond)?;
        let from = sub.checked_mul(1 << shift).ok_or_else(beyond)?;
        Ok((from, from.saturating_add((1 << shift) - 1)))
    }
}

/// Reads a LEB128 number of 64 bits in at most nine bytes, the last of which has eight bits.
fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, String> {
    let mut value = 0;
    for place in 0..9 {
        let byte = *bytes.get(*at).ok_or("its histogram is cut off")?;
        *at += 1;
        if place == 8 {
            return Ok(value | u64::from(byte) << 56);
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok(value)
}

fn zigzag(coded: u64) -> i64 {
    (coded >> 1) as i64 ^ -((coded & 1) as i64)
}

/// Values and their counts, by series.
fn values(recording: &Recording) -> BTreeMap<Series, Vec<(u64, u64)>> {
    let mut all: BTreeMap<Series, Vec<(u64, u64)>> = BTreeMap::new();
    for trace in &recording.traces {
        let series = (trace.cpu, 0, HistogramKind::Gap);
        let noise = trace.noise().map(|detour| (detour.duration.as_nanos(), 1));
        all.entry(series).or_default().extend(noise);
    }
    for histogram in &recording.histograms {
        for bucket in &histogram.buckets {
            let series = (histogram.cpu, bucket.thread, bucket.kind);
            all.entry(series).or_default().push((bucket.to.as_nanos(), bucket.count));
        }
    }
    all.retain(|_, values| !values.is_empty());
    all
}

/// Writes the durations of detours, or the upper ends of buckets, to three significant digits; one line for each CPU, thread and kind.
pub(in super::super) fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &recording.manifest;
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]").add_comment("[Logged by quell; values are ns]");
    if let Some(zero) = manifest.zero_unix_ns {
        builder.with_start_time(SystemTime::UNIX_EPOCH + Duration::from_nanos(zero));
    }
    let mut log = builder.begin_log_with(&mut text, &mut serializer)?;
    for (series, values) in values(recording) {
        let most = values.iter().map(|(value, _)| *value).max().unwrap_or(0).max(2);
        if most > i64::MAX as u64 {
            return Err(invalid("a time of more than 292 years has no room in an HdrHistogram log".into()));
        }
        let wrong = |error: &dyn std::fmt::Display| invalid(error.to_string());
        let mut histogram =
            hdrhistogram::Histogram::<u64>::new_with_bounds(1, most, 3).map_err(|e| wrong(&e))?;
        for (value, count) in values {
            histogram.record_n(value, count).map_err(|e| wrong(&e))?;
        }
        let facts = manifest.cpus.iter().find(|facts| facts.cpu == series.0);
        let [start, length] = facts
            .map_or([Nanos::ZERO; 2], |facts| [facts.start_ns, facts.span().length()])
            .map(|time| Duration::from_nanos(time.as_nanos()));
        let name = tag(series);
        log.write_histogram(&histogram, start, length, Tag::new(&name)).map_err(|e| wrong(&e))?;
    }
    out.write_all(&text)
}
