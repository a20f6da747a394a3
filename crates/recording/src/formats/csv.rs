//! quell's own CSV, by what the recording holds. Detours are `cpu,start_ns,duration_ns` and, where quell wrote them, `own`; a file of
//! them may have its columns in any order, and others.

mod intervals;
mod quanta;

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::content::{Content, Rows, trace_of};
use super::counted::{read_table, write_table};
use super::{for_each_line, printable, time};
use crate::{Cpu, Detour, Method, Recording, Trace};

const HEADER: &str = "cpu,start_ns,duration_ns,own";

/// Reads what the header says.
pub(super) fn read(text: &str) -> Result<Content, String> {
    let header = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let has = |name: &str| header.split(',').any(|field| field.trim() == name);
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

/// Writes what the recording holds.
pub(super) fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    match recording.manifest.method {
        Method::Detour => write_detours(&recording.traces, out),
        Method::Fwq | Method::Ftq => quanta::write(recording, out),
        Method::Phases => Err(super::invalid("CSV has no room for phases of ranks".into())),
        Method::Kernel => intervals::write(&recording.intervals, out),
        Method::Histogram => write_table(&recording.histograms, out),
    }
}

/// A table whose columns have to be there, in any order.
pub(super) struct Header {
    places: Vec<usize>,
}

impl Header {
    /// Gives each row to a function.
    pub fn read(
        text: &str,
        columns: &[&'static str],
        mut each: impl FnMut(Fields<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut header: Option<Self> = None;
        for (index, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
            let line = index + 1;
            let mut fields = Vec::new();
            if !split(row, &mut fields) {
                return Err(format!("line {line}: a quotation mark is not closed"));
            }
            match &header {
                None => {
                    let place = |name: &&str| {
                        let found = fields.iter().position(|field: &String| field.trim() == *name);
                        found.ok_or_else(|| format!("line {line}: the column `{name}` is missing"))
                    };
                    header = Some(Self { places: columns.iter().map(place).collect::<Result<_, _>>()? });
                }
                Some(header) => each(Fields { line, places: &header.places, fields: &fields })?,
            }
        }
        Ok(())
    }
}

/// The fields of a line; false where a quotation mark is not closed.
fn split(line: &str, fields: &mut Vec<String>) -> bool {
    let mut field = String::new();
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(c),
        }
    }
    fields.push(field);
    !quoted
}

/// A field that may hold anything but the end of a line.
fn quoted(text: &str) -> String {
    let text = crate::one_line(text);
    if text.contains([',', '"']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// A row of such a table.
pub(super) struct Fields<'a> {
    line: usize,
    places: &'a [usize],
    fields: &'a [String],
}

impl Fields<'_> {
    /// What is wrong with it.
    pub fn wrong(&self, reason: &str) -> String {
        format!("line {}: {reason}", self.line)
    }

    pub fn text(&self, column: usize) -> Result<&str, String> {
        let place = self.places[column];
        let field = self.fields.get(place).map(String::as_str);
        field.ok_or_else(|| self.wrong(&format!("column {} is missing", place + 1)))
    }

    pub fn number(&self, column: usize) -> Result<u64, String> {
        let text = self.text(column)?.trim();
        text.parse().map_err(|_| self.wrong(&format!("`{}` is not a whole number", printable(text))))
    }

    pub fn small(&self, column: usize) -> Result<u32, String> {
        let number = self.number(column)?;
        u32::try_from(number).map_err(|_| self.wrong(&format!("{number} has more than 32 bits")))
    }
}

fn read_detours(text: &str) -> Result<Content, String> {
    let mut of_cpu: BTreeMap<Cpu, Vec<Detour>> = BTreeMap::new();
    let mut columns: Option<Columns> = None;
    for_each_line(text, |number, line| {
        if line.trim().is_empty() {
            return Ok(());
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let Some(columns) = &columns else {
            columns = Some(Columns::find(&fields)?);
            return Ok(());
        };
        let (cpu, detour) = columns.row(&fields, number)?;
        of_cpu.entry(cpu).or_default().push(detour);
        Ok(())
    })?;
    let traces = of_cpu.into_iter().map(|(cpu, detours)| trace_of(cpu, detours, None)).collect();
    Ok(Content::new(Method::Detour, "CSV", Rows::Detours(traces)))
}

/// Where each column stands; their order is free, further ones are passed over.
struct Columns {
    cpu: Option<usize>,
    start: usize,
    duration: usize,
    own: Option<usize>,
}

impl Columns {
    fn find(header: &[&str]) -> Result<Self, String> {
        let find = |name| header.iter().position(|field| *field == name);
        let need = |name| find(name).ok_or_else(|| format!("line 1: the column `{name}` is missing"));
        Ok(Self {
            cpu: find("cpu"),
            start: need("start_ns")?,
            duration: need("duration_ns")?,
            own: find("own"),
        })
    }

    fn row(&self, fields: &[&str], line: usize) -> Result<(Cpu, Detour), String> {
        let field = |index: usize| {
            fields.get(index).copied().ok_or_else(|| format!("line {line}: column {} is missing", index + 1))
        };
        let cpu = match self.cpu {
            Some(index) => field(index)?
                .parse()
                .map_err(|_| format!("line {line}: `{}` is not a CPU number", printable(fields[index])))?,
            None => 0,
        };
        let own = match self.own.map(field).transpose()? {
            None | Some("0" | "false" | "False") => false,
            Some("1" | "true" | "True") => true,
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
