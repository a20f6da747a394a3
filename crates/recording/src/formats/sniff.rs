//! Which format a file has, by what stands in it.

use super::{printable, vpsum};

/// What a file of another tool can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readable {
    Csv,
    Netgauge,
    NetgaugeQuanta,
    Llnl,
    Minnich,
    Psnap,
    Vpsum,
}

/// What `convert` reads, for messages.
pub(super) const KNOWN: &str = "`convert` reads CSV with the header `cpu,start_ns,duration_ns`, netgauge's selfish, fwq and ftq files, LLNL's \
     fwq, Minnich's ftq, vpsum and PSNAP";

/// The first line that says what the file is; comments alone are netgauge's, of a silent node.
pub(super) fn sniff(text: &str) -> Result<Readable, String> {
    let mut comments = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let found = match line.strip_prefix('#') {
            Some(comment) => of_comment(comment),
            None => {
                Some(of_row(line).or(comments.then_some(Readable::Netgauge)).ok_or_else(|| unknown(line))?)
            }
        };
        if let Some(found) = found {
            return Ok(found);
        }
        comments = true;
    }
    if comments { Ok(Readable::Netgauge) } else { Err("the file is empty".into()) }
}

fn of_comment(comment: &str) -> Option<Readable> {
    let comment = comment.trim();
    match comment.split_once(':').map(|(key, value)| (key, value.trim())) {
        Some(("Benchmark Method", "fwq" | "ftq")) => Some(Readable::NetgaugeQuanta),
        Some(("Benchmark Method", _)) => Some(Readable::Netgauge),
        _ if comment.starts_with(vpsum::MARK) => Some(Readable::Vpsum),
        _ if comment.starts_with("Frequency ") => Some(Readable::Minnich),
        _ if comment.contains("P-SNAP") => Some(Readable::Psnap),
        _ => None,
    }
}

fn of_row(line: &str) -> Option<Readable> {
    let starts = |with: &[&str]| with.iter().any(|word| line.starts_with(word));
    if starts(&["my_count=", "Using Global", "PSNAP"]) {
        return Some(Readable::Psnap);
    } else if starts(&["iteration"]) {
        return Some(Readable::Vpsum);
    } else if starts(&["Speed: thread"]) {
        return Some(Readable::Llnl);
    } else if line.contains(',') && line.contains("start_ns") {
        return Some(Readable::Csv);
    }
    let fields: Vec<&str> = line.split_whitespace().take(5).collect();
    let whole = fields.iter().take_while(|field| field.trim_end_matches(',').parse::<u64>().is_ok()).count();
    match (fields.len(), whole) {
        (2, _) => Some(Readable::Netgauge),
        (3, 3) => Some(Readable::Vpsum),
        (4, 3 | 4) => Some(Readable::Psnap),
        _ => None,
    }
}

fn unknown(line: &str) -> String {
    format!("the format is not known (it starts with `{}`); {KNOWN}", printable(line))
}
