//! netgauge's quantum files (`-x noise -e fwq`, `-e ftq`): `#` comments, then the quantum's number and, for FWQ, its time in whole
//! us; for FTQ the work done in it. They do not record when each began.

use std::io::{self, Write};

use super::content::{Content, Row, Rows};
use super::{for_each_line, printable};
use crate::warning::MicrosecondTimes;
use crate::{Cpu, Method, Nanos, Quanta, Recording, Warning};

pub(super) fn read(text: &str) -> Result<Content, String> {
    let mut comments = Comments::default();
    let mut row = Row::default();
    let mut last: Option<u64> = None;
    for_each_line(text, |number, line| {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            comments.read(comment);
            return Ok(());
        }
        let Some((index, value)) = two_numbers(line, number)? else { return Ok(()) };
        if last.is_some_and(|last| last >= index) {
            return Err(format!("line {number}: quantum {index} follows quantum {}", last.unwrap_or(0)));
        }
        last = Some(index);
        if comments.ftq {
            let length = comments.quantum.ok_or_else(|| {
                format!("line {number}: no `Compute-Cycle Duration` stands before it, so the length of its quanta is not known")
            })?;
            row.push(length, value, number)
        } else {
            let ns =
                value.checked_mul(1_000).ok_or_else(|| format!("line {number}: {value} us are too long"))?;
            row.push(Nanos::from_nanos(ns), 0, number)
        }
    })?;
    let (method, note) = match comments.ftq {
        true => (Method::Ftq, "a netgauge ftq file"),
        false => (Method::Fwq, "a netgauge fwq file"),
    };
    let quanta = vec![Quanta { cpu: Cpu(0), quanta: row.quanta }];
    let mut content = Content::new(method, note, Rows::Quanta(quanta));
    content.manifest.quantum_ns = comments.quantum;
    content.manifest.host = comments.host;
    content.manifest.warnings.push(Warning::StartsUnknown { ticks: false });
    if !comments.ftq {
        content.manifest.warnings.push(Warning::WholeMicroseconds { of: MicrosecondTimes::Quanta });
    }
    Ok(content)
}

fn two_numbers(line: &str, number: usize) -> Result<Option<(u64, u64)>, String> {
    let mut fields = line.split_whitespace();
    let Some(first) = fields.next() else { return Ok(None) };
    match (first.parse().ok(), fields.next().and_then(|field| field.parse().ok()), fields.next()) {
        (Some(index), Some(value), None) => Ok(Some((index, value))),
        _ => {
            Err(format!("line {number}: `{}` is not the number and the value of a quantum", printable(line)))
        }
    }
}

/// The comments in netgauge's file.
#[derive(Default)]
struct Comments {
    ftq: bool,
    quantum: Option<Nanos>,
    host: Option<String>,
}

impl Comments {
    fn read(&mut self, comment: &str) {
        let Some((key, value)) = comment.split_once(':') else { return };
        let value = value.trim();
        match key.trim() {
            "Benchmark Method" => self.ftq = value == "ftq",
            "Compute-Cycle Duration" => {
                let number = value.trim_end_matches("usec").trim().parse::<f64>().ok();
                let length = number.and_then(|us| Nanos::from_nanos_f64(us * 1e3));
                self.quantum = length.filter(|length| *length > Nanos::ZERO);
            }
            "Nodename" => self.host = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// Writes the quanta of the only CPU. FWQ times are truncated to whole us, as netgauge does.
pub(super) fn write(recording: &Recording, series: &Quanta, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &recording.manifest;
    let ftq = manifest.method == Method::Ftq;
    let (method, title, columns) = match ftq {
        true => ("ftq", "Fixed Time Quantum Benchmark", "cycle number    workload iterations"),
        false => ("fwq", "Fixed Work Quantum Benchmark", "cycle number    duration [us]"),
    };
    writeln!(out, "# Benchmark Method: {method}")?;
    match manifest.quantum_ns {
        Some(quantum) => {
            writeln!(out, "# Compute-Cycle Duration: {} usec", quantum.as_nanos() as f64 / 1e3)?;
        }
        None if ftq => {
            let reason = "the recording does not say how long its quanta were, and netgauge's format has to";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        None => {}
    }
    writeln!(out, "# Number of Cycles/Detours: {}", series.quanta.len())?;
    if let Some(host) = &manifest.host {
        writeln!(out, "# Nodename: {}", crate::one_line(host))?;
    }
    writeln!(out, "# {title}\n# {columns}")?;
    for (index, quantum) in series.quanta.iter().enumerate() {
        match ftq {
            true => writeln!(out, " {index}                {}", quantum.work)?,
            false => writeln!(out, "{index}             {}", quantum.duration.as_nanos() / 1_000)?,
        }
    }
    Ok(())
}
