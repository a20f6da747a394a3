//! Quanta: `method,cpu,start_ns,duration_ns,work`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::formats::columns::Header;
use crate::formats::content::{Content, Rows};
use crate::formats::printable;
use crate::{Cpu, Method, Nanos, Quanta, Quantum, Recording};

const COLUMNS: [&str; 5] = ["method", "cpu", "start_ns", "duration_ns", "work"];

pub(super) fn read(text: &str) -> Result<Content, String> {
    let mut method = None;
    let mut of_cpu: BTreeMap<Cpu, Vec<Quantum>> = BTreeMap::new();
    Header::read(text, &COLUMNS, |row| {
        let name = row.text(0)?.trim();
        let this = match name {
            "fwq" => Method::Fwq,
            "ftq" => Method::Ftq,
            _ => return Err(row.wrong(&format!("the method `{}` is neither fwq nor ftq", printable(name)))),
        };
        if *method.get_or_insert(this) != this {
            return Err(row.wrong("it is of another method than the rows above it"));
        }
        let [start, duration] = [row.number(2)?, row.number(3)?].map(Nanos::from_nanos);
        let quantum = Quantum { start, duration, work: row.number(4)? };
        of_cpu.entry(Cpu(row.small(1)?)).or_default().push(quantum);
        Ok(())
    })?;
    let series = |(cpu, mut quanta): (Cpu, Vec<Quantum>)| {
        quanta.sort_by_key(|quantum| quantum.start);
        Quanta { cpu, quanta }
    };
    let quanta = of_cpu.into_iter().map(series).collect();
    Ok(Content::new(method.unwrap_or(Method::Fwq), "CSV", Rows::Quanta(quanta)))
}

pub(super) fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    let method = recording.manifest.method;
    for series in &recording.quanta {
        for quantum in &series.quanta {
            let (start, duration) = (quantum.start.as_nanos(), quantum.duration.as_nanos());
            writeln!(out, "{method},{},{start},{duration},{}", series.cpu, quantum.work)?;
        }
    }
    Ok(())
}
