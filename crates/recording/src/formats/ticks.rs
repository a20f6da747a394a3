//! Two single-node tools whose files are only read: LLNL's fwq (a quantum's clock ticks per line) and Minnich's ftq (when each quantum began,
//! and the work done in it).

use super::content::{Content, Row, Rows};
use super::{for_each_line, printable};
use crate::{Cpu, Method, Nanos, Quanta, Quantum, Warning, parse_cpu_list};

/// Reads LLNL's `fwq-th` (LLNL/system-noise): `Speed: thread 0, cycles …, seconds …, GHz f`, `Thread 0 running on CPUs n`, then ticks.
pub(super) fn read_llnl(text: &str) -> Result<Content, String> {
    let (mut row, mut ghz, mut cpu) = (Row::default(), None, Cpu(0));
    for_each_line(text, |number, line| {
        let line = line.trim();
        if line.is_empty() {
            Ok(())
        } else if line.starts_with("Speed:") {
            let speed = line.rsplit("GHz").next().and_then(|speed| speed.trim().parse::<f64>().ok());
            let speed = speed.filter(|speed| speed.is_finite() && *speed > 0.0);
            let none = || format!("line {number}: `{}` does not end with the clock's GHz", printable(line));
            match ghz.replace(speed.ok_or_else(none)?) {
                None => Ok(()),
                Some(_) => Err(format!("line {number}: a second thread begins; give a file for each")),
            }
        } else if let Some((_, cpus)) = line.split_once("running on CPUs") {
            // A thread that was not bound lists several CPUs, none of which is its own.
            if let Ok([one]) = parse_cpu_list(cpus).as_deref() {
                cpu = *one;
            }
            Ok(())
        } else {
            let ghz = ghz.ok_or_else(|| format!("line {number}: no line `Speed:` stands before it"))?;
            let ticks = line.parse::<u64>().ok().and_then(|ticks| Nanos::from_nanos_f64(ticks as f64 / ghz));
            let none = || format!("line {number}: `{}` is not a number of clock ticks", printable(line));
            row.push(ticks.ok_or_else(none)?, 0, number)
        }
    })?;
    let quanta = vec![Quanta { cpu, quanta: row.quanta }];
    let mut content = Content::new(Method::Fwq, "an LLNL fwq file", Rows::Quanta(quanta));
    content.manifest.warnings.push(Warning::StartsUnknown { ticks: false });
    Ok(content)
}

/// Reads Minnich's `ftq` (rminnich/ftq): `# Frequency f`, further comments, then `ns count`.
pub(super) fn read_minnich(text: &str) -> Result<Content, String> {
    let mut length: Option<Nanos> = None;
    let mut cpu = Cpu(0);
    let mut rows: Vec<Quantum> = Vec::new();
    let mut zero = None;
    for_each_line(text, |number, line| {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(hertz) = comment.trim().strip_prefix("Frequency") {
                let quantum =
                    hertz.trim().parse::<f64>().ok().and_then(|hertz| Nanos::from_nanos_f64(1e9 / hertz));
                length = quantum.filter(|quantum| *quantum > Nanos::ZERO);
            } else if let Some((_, core)) = comment.split_once(", core ") {
                // -1 if it was not bound.
                cpu = core.trim().parse().map_or(cpu, Cpu);
            }
            return Ok(());
        }
        let mut fields = line.split_whitespace().map(|field| field.parse::<u64>().ok());
        let (start, work) = match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => return Ok(()),
            (Some(Some(start)), Some(Some(work)), None) => (start, work),
            _ => return Err(format!("line {number}: `{}` is not `ns count`", printable(line))),
        };
        let duration = length.ok_or_else(|| format!("line {number}: no `# Frequency` stands before it"))?;
        let start = start
            .checked_sub(*zero.get_or_insert(start))
            .map(Nanos::from_nanos)
            .filter(|start| rows.last().is_none_or(|last| last.start < *start))
            .ok_or_else(|| format!("line {number}: it begins before the quantum above it"))?;
        rows.push(Quantum { start, duration, work });
        Ok(())
    })?;
    let mut content = Content::new(
        Method::Ftq,
        "an ftq file of Minnich's",
        Rows::Quanta(vec![Quanta { cpu, quanta: rows }]),
    );
    content.manifest.quantum_ns = length;
    Ok(content)
}
