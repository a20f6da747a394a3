//! netgauge's selfish detour file (`-x noise -e selfish`): `#` comments, then `time<TAB>duration` in ns. Times count
//! from the first detour. LogGOPSim reads the same as its noise trace.

use std::io::{self, Write};

use super::content::{Content, Rows, span_to_last, trace_of};
use super::{for_each_line, printable, time};
use crate::{Cpu, Detour, Method, Nanos, Span, Trace};

pub(super) fn read(text: &str) -> Result<Content, String> {
    let mut detours = Vec::new();
    let mut comments = Comments::default();
    for_each_line(text, |number, line| {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            return comments.read(comment);
        }
        let mut fields = line.split_whitespace();
        match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => Ok(()),
            (Some(start), Some(duration), None) => {
                let (start, duration) = (time(start, number)?, time(duration, number)?);
                detours.push(Detour { start, duration, own: false });
                Ok(())
            }
            _ => Err(format!("line {number}: `{}` is not `time duration`", printable(line))),
        }
    })?;
    // Rounding to whole ns can make neighbours overlap by one; no other overlap is allowed.
    detours.sort_by_key(|d| d.start);
    for i in 1..detours.len() {
        let free = detours[i - 1].end();
        if free.as_nanos() == detours[i].start.as_nanos().saturating_add(1) {
            detours[i].start = free;
        }
    }
    let last = span_to_last(&detours).end;
    let span = comments.period.map(|period| Span { start: Nanos::ZERO, end: period.max(last) });
    let traces = vec![trace_of(Cpu(0), detours, span)];
    let mut content = Content::new(Method::Detour, "a netgauge selfish file", Rows::Detours(traces));
    content.manifest.threshold_ns =
        comments.minimum_ns.zip(comments.threshold_percent).map(|(min, percent)| min * percent / 100.0);
    Ok(content)
}

/// The comments in netgauge's file.
#[derive(Default)]
struct Comments {
    minimum_ns: Option<f64>,
    threshold_percent: Option<f64>,
    period: Option<Nanos>,
}

impl Comments {
    fn read(&mut self, comment: &str) -> Result<(), String> {
        // `Threshold: [% minimal cycle length]: 900` has two colons: the key ends at the first, the value starts after the last.
        let Some((key, value)) =
            comment.split_once(':').zip(comment.rsplit_once(':')).map(|(a, b)| (a.0, b.1.trim()))
        else {
            return Ok(());
        };
        let number = || {
            let digits = value.trim_end_matches('s').trim();
            digits.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0)
        };
        match key.trim() {
            "Benchmark Method" if value != "selfish" => {
                return Err(format!("it holds netgauge's `{}` rows, not selfish detours", printable(value)));
            }
            "Minimal cycle length [ns]" => self.minimum_ns = number(),
            "Threshold" => self.threshold_percent = number(),
            // netgauge's own is the end of the last detour, rounded to two digits.
            "Measurement period" if two_digits(value) => {}
            "Measurement period" => self.period = number().and_then(|s| Nanos::from_nanos_f64(s * 1e9)),
            _ => {}
        }
        Ok(())
    }
}

/// Whether a number has two digits behind the point.
fn two_digits(value: &str) -> bool {
    let digits = value.trim_end_matches('s').trim().split_once('.');
    digits.is_some_and(|(_, digits)| digits.len() == 2)
}

pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Benchmark Method: selfish")?;
    writeln!(out, "# Selfish Benchmark")?;
    writeln!(out, "# Measurement period: {:.9} s", trace.span.length().as_secs_f64())?;
    writeln!(out, "# Time [ns]\tselfish duration [ns]")?;
    for d in trace.noise() {
        let start = d.start - trace.span.start;
        writeln!(out, "{}.00\t{}.00", start.as_nanos(), d.duration.as_nanos())?;
    }
    Ok(())
}
