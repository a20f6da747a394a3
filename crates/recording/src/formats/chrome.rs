//! The JSON trace of Chrome's `about:tracing` ("Trace Event Format", Google, 2016): complete events (`X`) of detours, quanta and
//! intervals, in us with three digits after the decimal point. Only written.

use std::io::{self, Write};

use serde_json::json;

use crate::display_text::one_line;
use crate::{Nanos, Recording};

/// Rows of a CPU on the timeline.
const DETOURS: u32 = 0;
const INTERVALS: u32 = 1;

pub(super) fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &recording.manifest;
    let zero = manifest.zero_monotonic_ns.unwrap_or(0);
    let mut events = Array { out, some: false };
    events.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for facts in &manifest.cpus {
        let cpu = facts.cpu.0;
        let name = |what: &str, tid: u32, name: String| json!({"ph": "M", "pid": cpu, "tid": tid, "name": what, "args": {"name": name}});
        events.push(&name("process_name", 0, format!("CPU {cpu}")))?;
        events.push(&name("thread_name", DETOURS, "what the probe saw".into()))?;
        events.push(&name("thread_name", INTERVALS, "what the kernel did".into()))?;
    }
    let mut slice = |cpu: u32,
                     row: u32,
                     name: &str,
                     start: Nanos,
                     duration: Nanos,
                     args: serde_json::Value| {
        let (ts, dur) = (us(zero.saturating_add(start.as_nanos())), us(duration.as_nanos()));
        events.begin()?;
        let (name, args) = (json!(one_line(name)), args);
        write!(
            events.out,
            "{{\"ph\":\"X\",\"pid\":{cpu},\"tid\":{row},\"ts\":{ts},\"dur\":{dur},\"name\":{name},\"args\":{args}}}"
        )
    };
    for trace in &recording.traces {
        for detour in &trace.detours {
            let name = if detour.own { "quell's own writing" } else { "detour" };
            slice(trace.cpu.0, DETOURS, name, detour.start, detour.duration, json!({}))?;
        }
    }
    for series in &recording.quanta {
        for quantum in &series.quanta {
            let (name, args) = match recording.manifest.level_of(quantum.work) {
                Some(level) => (level.name.slice(), json!({})),
                None => ("quantum", json!({"work": quantum.work})),
            };
            slice(series.cpu.0, DETOURS, name, quantum.start, quantum.duration, args)?;
        }
    }
    for side in &recording.intervals {
        for one in &side.intervals {
            let mut args = json!({"net_ns": one.net.as_nanos()});
            let known = [("detail", &one.detail), ("cause", &one.cause)];
            for (name, text) in known {
                if let Some(text) = text {
                    args[name] = json!(one_line(text));
                }
            }
            if one.pid != 0 {
                args["pid"] = json!(one.pid);
            }
            slice(side.cpu.0, INTERVALS, &one.source.to_string(), one.start, one.duration, args)?;
        }
    }
    events.out.write_all(b"\n]}\n")
}

/// A JSON array that is written incrementally.
struct Array<'a> {
    out: &'a mut dyn Write,
    some: bool,
}

impl Array<'_> {
    fn begin(&mut self) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.some, true);
        self.out.write_all(if first { b"\n" } else { b",\n" })
    }

    fn push(&mut self, value: &serde_json::Value) -> io::Result<()> {
        self.begin()?;
        write!(self.out, "{value}")
    }
}

/// ns as us, exactly.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}
