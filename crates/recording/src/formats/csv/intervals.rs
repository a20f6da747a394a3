//! The kernel's intervals: `cpu,start_ns,duration_ns,net_ns,source,pid,victim,detail,cause`. An empty detail or cause is
//! unknown.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use super::quoted;
use crate::formats::columns::{Fields, Header};
use crate::formats::content::{Content, KernelCpu, Rows};
use crate::formats::printable;
use crate::{Cpu, Interval, Intervals, Method, Nanos, Span};

const COLUMNS: [&str; 9] =
    ["cpu", "start_ns", "duration_ns", "net_ns", "source", "pid", "victim", "detail", "cause"];

pub(super) fn read(text: &str) -> Result<Content, String> {
    let mut of_cpu: BTreeMap<Cpu, Vec<Interval>> = BTreeMap::new();
    Header::read(text, &COLUMNS, |row| {
        let interval = interval(&row)?;
        of_cpu.entry(Cpu(row.small(0)?)).or_default().push(interval);
        Ok(())
    })?;
    let side = |(cpu, mut intervals): (Cpu, Vec<Interval>)| {
        intervals.sort_by_key(|interval| interval.start);
        let end = intervals.iter().map(Interval::end).max().unwrap_or(Nanos::ZERO);
        KernelCpu { cpu, span: Span { start: Nanos::ZERO, end }, detours: Vec::new(), intervals }
    };
    let sides = of_cpu.into_iter().map(side).collect();
    Ok(Content::new(Method::Kernel, "CSV", Rows::Kernel(sides)))
}

fn interval(row: &Fields<'_>) -> Result<Interval, String> {
    let [start, duration, net] = [row.number(1)?, row.number(2)?, row.number(3)?].map(Nanos::from_nanos);
    if start.checked_add(duration).is_none() || net > duration {
        return Err(row.wrong("it ends beyond all time, or takes more than its own length"));
    }
    let source = row.text(4)?.parse().map_err(|reason: String| row.wrong(&printable(&reason)))?;
    let known = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    let (detail, cause) = (known(row.text(7)?), known(row.text(8)?));
    Ok(Interval { start, duration, net, source, pid: row.small(5)?, victim: row.small(6)?, detail, cause })
}

pub(super) fn write(sides: &[Intervals], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for side in sides {
        for one in &side.intervals {
            let [start, duration, net] = [one.start, one.duration, one.net].map(Nanos::as_nanos);
            let known = |text: &Option<Arc<str>>| text.as_deref().map(quoted).unwrap_or_default();
            writeln!(
                out,
                "{},{start},{duration},{net},{},{},{},{},{}",
                side.cpu,
                quoted(&one.source.to_string()),
                one.pid,
                one.victim,
                known(&one.detail),
                known(&one.cause)
            )?;
        }
    }
    Ok(())
}
