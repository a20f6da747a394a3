//! Lines `TASK-PID [CPU] FLAGS TIME: EVENT: …` of the kernel's `trace` and `trace_pipe`, of `trace-cmd report`, and of files that rtla saves with
//! `-t`; and `TASK PID [CPU] TIME: GROUP:EVENT: …` of `perf script` and `perf sched script`.

use super::Events;
use super::events::{seconds, what};
use crate::formats::content::Content;
use crate::formats::{for_each_line, printable};
use crate::warning::MicrosecondTimes;
use crate::{Cpu, Warning};

/// Reads the kernel's own text.
pub(in super::super) fn read_ftrace(text: &str) -> Result<Content, String> {
    let tracer = text.lines().find_map(|line| line.strip_prefix("# tracer:")).map(str::trim);
    let note = match tracer {
        Some("osnoise" | "timerlat") => "the kernel's trace of the osnoise or timerlat tracer",
        _ => "a trace of ftrace's",
    };
    if let Some(tracer @ ("function_graph" | "hwlat" | "irqsoff" | "preemptoff" | "wakeup" | "wakeup_rt")) =
        tracer
    {
        return Err(format!(
            "it is of the tracer {tracer}: record with the tracer `nop` and events, or with `osnoise`"
        ));
    }
    read(text, note)
}

/// Reads perf's text.
pub(in super::super) fn read_perf(text: &str) -> Result<Content, String> {
    read(text, "perf script")
}

fn read(text: &str, note: &str) -> Result<Content, String> {
    let mut events = Events::default();
    let mut coarse = true;
    for_each_line(text, |number, line| {
        let of_line = |reason: String| format!("line {number}: {reason}");
        match Line::parse(line) {
            Some(Ok(line)) => {
                coarse &= line.coarse;
                let what = what(line.event, line.text, &mut events.names).map_err(of_line)?;
                events.push(line.cpu, line.time, line.event, what).map_err(of_line)
            }
            Some(Err(reason)) => Err(of_line(reason)),
            None => events.other_line(line).map_err(of_line),
        }
    })?;
    if coarse {
        events.warnings.push(Warning::WholeMicroseconds { of: MicrosecondTimes::Events });
    }
    events.content(note, false)
}

impl Events {
    /// Handles a line that is not an event: messages of the tools.
    fn other_line(&mut self, line: &str) -> Result<(), String> {
        let text = line.trim();
        // `CPU:3 [LOST 40 EVENTS]` of the kernel, `CPU:3 [40 EVENTS DROPPED]` of trace-cmd, and `[EVENTS DROPPED]` if the number is unknown.
        if let Some((cpu, lost)) = text.strip_prefix("CPU:").and_then(|text| text.split_once('['))
            && (lost.starts_with("LOST ") || lost.contains("EVENTS DROPPED"))
        {
            let count = lost.split_whitespace().find_map(|word| word.parse::<u64>().ok());
            self.lost = self.lost.saturating_add(count.unwrap_or(1));
            if let Ok(cpu) = cpu.trim().parse() {
                self.lose(Cpu(cpu));
            }
            return Ok(());
        }
        let printed = ["#", "=>", "CPU:", "CPU ", "cpus=", "version =", "<stack trace>"];
        let hex = |word: &str| word.len() >= 6 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        // A line of a call chain from perf.
        let chain = line.starts_with([' ', '\t']) && text.split_whitespace().next().is_some_and(hex);
        if text.is_empty() || chain || printed.iter().any(|start| text.starts_with(start)) {
            return Ok(());
        }
        Err(format!("`{}` is not `TASK-PID [CPU] … SECONDS.US: EVENT: …`", printable(text)))
    }
}

/// An event in the notation of the tools.
pub(in super::super) struct Line<'a> {
    cpu: Cpu,
    time: u64,
    /// Whether the time is in whole us.
    coarse: bool,
    pub event: &'a str,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// `None` if it is not an event. A task's name may contain anything, so the first `[CPU]` that is followed by a time counts.
    pub(in super::super) fn parse(line: &'a str) -> Option<Result<Self, String>> {
        line.match_indices('[').find_map(|(at, _)| {
            let rest = &line[at + 1..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).take(6).count();
            let cpu = rest[..digits].parse::<u32>().ok()?;
            let rest = rest[digits..].strip_prefix("] ")?;
            let (mut word, mut rest) = rest.trim_start().split_once(' ')?;
            if !word.ends_with(':') {
                // Skips flags.
                (word, rest) = rest.trim_start().split_once(' ')?;
            }
            let time = word.strip_suffix(':')?;
            if time.bytes().all(|byte| byte.is_ascii_digit()) && !time.is_empty() {
                return Some(Err(
                    "its times are no seconds: choose another clock, such as `echo mono > trace_clock`"
                        .into(),
                ));
            }
            let coarse = time.split_once('.').is_some_and(|(_, fraction)| fraction.len() <= 6);
            let time = seconds(time)?;
            let (event, text) = event_of(rest.trim());
            Some(Ok(Self { cpu: Cpu(cpu), time, coarse, event, text }))
        })
    }
}

/// The event's name, without its group, and the rest. perf may print a count before it.
fn event_of(rest: &str) -> (&str, &str) {
    let mut after = rest;
    for _ in 0..2 {
        let (word, text) = after.split_once(' ').unwrap_or((after, ""));
        if let Some(name) = word.strip_suffix(':') {
            return (name.rsplit(':').next().unwrap_or(name), text.trim());
        }
        if !word.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        after = text.trim_start();
    }
    ("", rest)
}
