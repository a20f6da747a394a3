//! quell's own CSV, depending on the content of the recording. Detours are `cpu,start_ns,duration_ns` and, if quell wrote them, `own`; a file of
//! detours may have its columns in any order, and further ones.

mod intervals;
mod quanta;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use super::content::{Content, Rows, trace_of};
use super::histograms::{read_table, write_table};
use super::{columns, for_each_line, printable, time};
use crate::{Cpu, Detour, Method, Recording, Trace};

const HEADER: &str = "cpu,start_ns,duration_ns,own";

/// Reads rows of the kind that the header defines.
pub(super) fn read(text: &str) -> Result<Content, String> {
    let header = text.lines().find(|line| !is_before_header(line)).unwrap_or_default();
    let header = fields_of(header);
    let has = |name: &str| header.iter().any(|field| field.trim() == name);
    if has("from_ns") {
        read_table(text)
    } else if has("net_ns") {
        intervals::read(text)
    } else if has("work") {
        quanta::read(text)
    } else {
        read_detours(text)
    }
}

/// Whether a line says nothing: a header may come after it.
fn is_before_header(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// The fields of a line. Only some programs put them into quotation marks.
fn fields_of(line: &str) -> Vec<Cow<'_, str>> {
    let mut fields = Vec::new();
    if line.contains('"') && columns::split(line, &mut fields) {
        return fields.into_iter().map(|field| Cow::Owned(field.trim().to_owned())).collect();
    }
    line.split(',').map(|field| Cow::Borrowed(field.trim())).collect()
}

/// Writes the rows of the recording.
pub(super) fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    match recording.manifest.method {
        Method::Detour => write_detours(&recording.traces, out),
        Method::Fwq | Method::Ftq => quanta::write(recording, out),
        Method::Memory => Err(super::invalid("CSV has no room for levels of memory".into())),
        Method::Phases => Err(super::invalid("CSV has no room for phases of ranks".into())),
        Method::Kernel => intervals::write(&recording.intervals, out),
        Method::Histogram => write_table(&recording.histograms, out),
    }
}

/// Quotes a field if necessary, and replaces control characters in it.
fn quoted(text: &str) -> String {
    let text = crate::one_line(text);
    if text.contains([',', '"']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

fn read_detours(text: &str) -> Result<Content, String> {
    let mut of_cpu: BTreeMap<Cpu, Vec<Detour>> = BTreeMap::new();
    let mut columns: Option<Columns> = None;
    for_each_line(text, |number, line| {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Some(columns) = &columns else {
            if !is_before_header(line) {
                columns = Some(Columns::find(&fields_of(line), number)?);
            }
            return Ok(());
        };
        let fields = fields_of(line);
        let (cpu, detour) = columns.row(&fields, number)?;
        of_cpu.entry(cpu).or_default().push(detour);
        Ok(())
    })?;
    let traces = of_cpu.into_iter().map(|(cpu, detours)| trace_of(cpu, detours, None)).collect();
    Ok(Content::new(Method::Detour, "CSV", Rows::Detours(traces)))
}

/// Index of each column; their order is free, and further columns are ignored.
struct Columns {
    cpu: Option<usize>,
    start: usize,
    duration: usize,
    own: Option<usize>,
}

impl Columns {
    fn find(header: &[Cow<'_, str>], line: usize) -> Result<Self, String> {
        let find = |name| header.iter().position(|field| *field == name);
        let need = |name| find(name).ok_or_else(|| format!("line {line}: the column `{name}` is missing"));
        Ok(Self {
            cpu: find("cpu"),
            start: need("start_ns")?,
            duration: need("duration_ns")?,
            own: find("own"),
        })
    }

    fn row(&self, fields: &[Cow<'_, str>], line: usize) -> Result<(Cpu, Detour), String> {
        let field = |index: usize| {
            fields
                .get(index)
                .map(AsRef::as_ref)
                .ok_or_else(|| format!("line {line}: column {} is missing", index + 1))
        };
        let cpu = match self.cpu {
            Some(index) => field(index)?
                .parse()
                .map_err(|_| format!("line {line}: `{}` is not a CPU number", printable(&fields[index])))?,
            None => 0,
        };
        let own = match self.own.map(field).transpose()? {
            None | Some("0") => false,
            Some("1") => true,
            // Python, R and spreadsheets write them differently.
            Some(word) if word.eq_ignore_ascii_case("false") => false,
            Some(word) if word.eq_ignore_ascii_case("true") => true,
            Some(other) => {
                return Err(format!("line {line}: `{}` is neither true nor false", printable(other)));
            }
        };
        let detour = Detour {
            start: time(field(self.start)?, line)?,
            duration: time(field(self.duration)?, line)?,
            own,
        };
        Ok((Cpu(cpu), detour))
    }
}

fn write_detours(traces: &[Trace], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for trace in traces {
        for d in &trace.detours {
            writeln!(out, "{},{},{},{}", trace.cpu, d.start.as_nanos(), d.duration.as_nanos(), d.own)?;
        }
    }
    Ok(())
}
