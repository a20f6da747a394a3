//! Detours as comma-separated values: `cpu,start_ns,duration_ns` and, where quell wrote them, `own`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::content::{Content, Rows, trace_of};
use super::{for_each_line, printable, time};
use crate::{Cpu, Detour, Method, Trace};

const HEADER: &str = "cpu,start_ns,duration_ns,own";

pub(super) fn read(text: &str) -> Result<Content, String> {
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

pub(super) fn write(traces: &[Trace], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for trace in traces {
        for d in &trace.detours {
            writeln!(out, "{},{},{},{}", trace.cpu, d.start.as_nanos(), d.duration.as_nanos(), d.own)?;
        }
    }
    Ok(())
}
