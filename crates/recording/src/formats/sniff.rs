//! Recognises the format of a file by its content.

use super::catalogue::read_names;
use super::kernel_side::trace_dat;
use super::{kernel_side, printable, vpsum};

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readable {
    Csv,
    Netgauge,
    NetgaugeQuanta,
    Llnl,
    Minnich,
    Psnap,
    Vpsum,
    Sysjitter,
    RtTestsJson,
    Oslat,
    Cyclictest,
    CyclictestVerbose,
    RtlaHist,
    RtlaTop,
    Ftrace,
    Perf,
    TraceDat,
    Hdr,
    DetourList,
    EventList,
}

/// The formats that `convert` reads, for messages.
fn known() -> String {
    format!("`convert` reads {}; `quell convert --list` says more", read_names())
}

/// The format of a file that is not text.
pub(super) fn sniff_bytes(bytes: &[u8]) -> Result<Option<Readable>, String> {
    if bytes.starts_with(trace_dat::MAGIC) {
        return Ok(Some(Readable::TraceDat));
    }
    let refused = [
        (
            b"PERFILE2".as_slice(),
            "it is perf's own file: `perf script --ns -i FILE > FILE.txt` makes the text that is read",
        ),
        (b"PAR1", "it is a Parquet table: give the recording's folder"),
        (b"\x1f\x8b", "it is compressed by gzip: unpack it first"),
        (b"\x28\xb5\x2f\xfd", "it is compressed by zstd: unpack it first"),
        (b"OTF2", "it is a part of an OTF2 archive: `quell track` reads those"),
    ];
    match refused.into_iter().find(|(magic, _)| bytes.starts_with(magic)) {
        Some((_, why)) => Err(why.into()),
        None => Ok(None),
    }
}

/// The format by the first line that identifies it; a file with only netgauge's comments is from a noise-free node.
pub(super) fn sniff(text: &str) -> Result<Readable, String> {
    let mut comments = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let found = match line.strip_prefix('#') {
            Some(comment) => read_comment(comment)?,
            None => Some(
                sniff_row(line, text)?
                    .or(comments.then_some(Readable::Netgauge))
                    .ok_or_else(|| unknown(line))?,
            ),
        };
        if let Some(found) = found {
            return Ok(found);
        }
        comments = true;
    }
    match comments {
        true if text.contains("elfish") => Ok(Readable::Netgauge),
        true => Err(format!("it has only comments, and none that a tool writes; {}", known())),
        false => Err("the file is empty".into()),
    }
}

fn read_comment(comment: &str) -> Result<Option<Readable>, String> {
    let comment = comment.trim();
    if comment.starts_with("size n PRTT(1,0,s)") {
        return Err(
            "it is netgauge's LogGP: convert it to a network, as in `quell convert FILE net.toml`".into()
        );
    }
    Ok(match comment.split_once(':').map(|(key, value)| (key, value.trim())) {
        Some(("Benchmark Method", "fwq" | "ftq")) => Some(Readable::NetgaugeQuanta),
        Some(("Benchmark Method", _)) => Some(Readable::Netgauge),
        Some(("cpu_mhz" | "total_interruption", _)) => Some(Readable::Sysjitter),
        Some(("tracer", _)) => Some(Readable::Ftrace),
        _ if comment.starts_with(vpsum::MARK) => Some(Readable::Vpsum),
        _ if comment.starts_with("Frequency ") => Some(Readable::Minnich),
        _ if comment.contains("P-SNAP") => Some(Readable::Psnap),
        _ if comment.starts_with(kernel_side::ANCHORS) => Some(Readable::DetourList),
        _ if comment.starts_with("[") && comment.contains("istogram log") => Some(Readable::Hdr),
        _ if comment.starts_with("RTLA ") => Some(Readable::RtlaHist),
        _ if comment == "Histogram" => Some(Readable::Cyclictest),
        _ => None,
    })
}

fn sniff_row(line: &str, text: &str) -> Result<Option<Readable>, String> {
    let starts = |with: &[&str]| with.iter().any(|word| line.starts_with(word));
    if line.starts_with("starting time :")
        && text.contains("osnoise") | text.contains("checking program args")
    {
        return Err("it is what IBM's osnoise says of itself, and holds no row of its histograms: they come when its run has ended".into());
    } else if starts(&["my_count=", "Using Global", "PSNAP"]) {
        return Ok(Some(Readable::Psnap));
    } else if starts(&["iteration"]) {
        return Ok(Some(Readable::Vpsum));
    } else if starts(&["Speed: thread"]) {
        return Ok(Some(Readable::Llnl));
    } else if starts(&["{"]) {
        return Ok(Some(Readable::RtTestsJson));
    } else if starts(&["oslat V", "Core:"]) {
        return Ok(Some(Readable::Oslat));
    } else if starts(&["\"StartTimestamp\"", "Tag="]) || is_hdr_row(line) {
        return Ok(Some(Readable::Hdr));
    } else if starts(&["Max CPUs =", "Thread 0 Interval:"]) || is_verbose_row(line) {
        return Ok(Some(Readable::CyclictestVerbose));
    } else if starts(&["Index "]) {
        return Ok(Some(Readable::RtlaHist));
    } else if line.contains("Operating System Noise")
        || line.contains("Hardware-related Noise")
        || line.contains("Timer Latency")
    {
        return Ok(Some(Readable::RtlaTop));
    } else if line.contains(',') && (line.contains("start_ns") || line.contains("from_ns")) {
        return Ok(Some(Readable::Csv));
    } else if let Some(found) = sniff_trace_row(line) {
        return Ok(Some(found));
    } else if starts(&["cpus=", "CPU:"]) {
        return Ok(Some(Readable::Ftrace));
    }
    let fields: Vec<&str> = line.split_whitespace().take(6).collect();
    let whole = fields.iter().take_while(|field| field.trim_end_matches(',').parse::<u64>().is_ok()).count();
    Ok(match (fields.len(), whole) {
        (1, 1) => {
            return Err(
                "it has one number a line, which tells neither its unit nor the length of a quantum: give the file of LLNL's fwq with its \
                 line `Speed:`, or of ftq with its line `# Frequency`"
                    .into(),
            );
        }
        (2, _) => Some(Readable::Netgauge),
        (3, 3) => Some(Readable::Vpsum),
        (5, 4..) if fields[1].len() == 2 && fields[0].len() > 6 => Some(Readable::EventList),
        (4, 3 | 4) => Some(Readable::Psnap),
        _ => None,
    })
}

/// Whether a line is `TASK PID [CPU] TIME: GROUP:EVENT:` of perf, or `TASK-PID [CPU] …` of the kernel.
fn sniff_trace_row(line: &str) -> Option<Readable> {
    let _ = kernel_side::Line::parse(line)?.ok()?;
    let (before, _) = line.split_once('[')?;
    let ftrace = before
        .trim_end()
        .rsplit_once('-')
        .is_some_and(|(_, pid)| pid.trim_end().bytes().all(|b| b.is_ascii_digit()));
    Some(if ftrace { Readable::Ftrace } else { Readable::Perf })
}

/// Whether a line is `START,LENGTH,MAX,HISTF…`.
fn is_hdr_row(line: &str) -> bool {
    let fields: Vec<&str> = line.split(',').collect();
    matches!(fields[..], [start, length, _, coded] if coded.trim().starts_with("HIST")
        && [start, length].iter().all(|field| field.trim().parse::<f64>().is_ok()))
}

/// Whether a line is `THREAD: CYCLE: LATENCY`.
fn is_verbose_row(line: &str) -> bool {
    line.split(':').count() == 3 && line.split(':').all(|field| field.trim().parse::<u64>().is_ok())
}

pub(super) fn unknown(line: &str) -> String {
    format!("the format is not known (it starts with `{}`); {}", printable(line), known())
}

/// The error for a file that is not text and has no known format.
pub(super) fn no_text() -> String {
    format!("it is not text; {}", known())
}
