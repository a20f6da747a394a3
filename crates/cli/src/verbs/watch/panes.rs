//! Lines of text that the screen and the plain output share.

use quell_analysis::live::{Frame, LongestDetour};
use quell_recording::Nanos;

use super::columns::share;
use crate::printer::one_line;
use crate::render::table::time;

/// Maximum number of culprits in a line.
const MOST_CULPRITS: usize = 3;

/// A detour longer than any before, in one line.
pub fn longest(one: &LongestDetour) -> String {
    let culprit = |one: &quell_analysis::live::Culprit| {
        let detail =
            one.detail.as_deref().map(|detail| format!(" ({})", one_line(detail))).unwrap_or_default();
        format!("{} {}{detail}", one_line(&one.source), time(one.ns as f64))
    };
    let mut culprits: Vec<String> = one.culprits.iter().take(MOST_CULPRITS).map(culprit).collect();
    let more = one.culprits.len().saturating_sub(MOST_CULPRITS);
    if more > 0 {
        culprits.push(format!("{more} more"));
    }
    let at = one.start_ns as f64 / 1e9;
    format!("{at:>9.3}s  CPU {:<3} {:>8}  {}", one.cpu, time(one.duration_ns as f64), culprits.join(", "))
}

/// What quell itself costs, in pieces that may be spread over several lines.
pub fn overhead(frame: &Frame) -> Vec<String> {
    let over = &frame.overhead;
    let mut parts = Vec::new();
    if frame.sources.is_some() {
        parts.push(match (over.bpf_percent, over.bpf_runs_per_s) {
            (Some(percent), Some(runs)) => {
                format!("eBPF {} % of a CPU ({runs:.0} runs/s)", share(Some(percent)))
            }
            _ => "eBPF not counted by this kernel".into(),
        });
    }
    parts.push(format!("own thread {} %", share(Some(over.thread_percent))));
    if !frame.passive {
        parts.push(format!("own detours {} ({})", over.own_detours, time(over.own_ns as f64)));
        parts.push(format!("lost {} detours", over.lost_detours));
    }
    if frame.sources.is_some() {
        parts.push(format!("lost {} intervals", over.lost_intervals));
    }
    parts
}

/// Joins pieces into lines of at most `width` columns.
pub fn packed(first: &str, parts: &[String], width: usize) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    for (index, part) in parts.iter().enumerate() {
        let last = lines.last_mut().map(|line| (line.chars().count(), line));
        match last {
            Some((length, line)) if index == 0 || length + 3 + part.chars().count() <= width => {
                line.push_str(if index == 0 { "" } else { " · " });
                line.push_str(part);
            }
            _ => lines.push(format!("  {part}")),
        }
    }
    lines
}

/// The time since the start, and the length of an interval.
pub fn moment(frame: &Frame) -> String {
    let secs = frame.time_ns as f64 / 1e9;
    let interval = Nanos::from_nanos(frame.interval_ns / 1_000_000 * 1_000_000);
    format!("{secs:.1}s · last {interval}")
}
