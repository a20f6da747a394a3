//! sysjitter's `--raw` (Solarflare's cns-sysjitter): `#` comments with its sums, then `END_NS DELTA_US CYCLES NS` for each time that a core
//! was taken; one file per core, with the core's number after the file name.

use std::path::Path;

use super::content::{Content, Rows, trace_of};
use super::{for_each_line, printable};
use crate::{Cpu, Detour, Method, Nanos, Span, Warning};

pub(super) fn read(path: &Path, text: &str) -> Result<Content, String> {
    let mut detours: Vec<Detour> = Vec::new();
    let (mut threshold, mut runtime, mut printed) = (None, None, None);
    for_each_line(text, |number, line| {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let Some((key, value)) = comment.split_once(':') else { return Ok(()) };
            let value = value.trim();
            let seconds = || value.strip_suffix("seconds").and_then(|text| text.trim().parse::<f64>().ok());
            match key.trim() {
                "threshold" => {
                    threshold = value.strip_suffix("ns").and_then(|ns| ns.trim().parse::<f64>().ok());
                }
                "total_runtime" => {
                    runtime = seconds().and_then(|s| Nanos::from_nanos_f64(s * 1e9)).or(runtime);
                }
                "n_interruptions" => printed = value.parse::<usize>().ok(),
                _ => {}
            }
            return Ok(());
        }
        let fields: Vec<Option<u64>> = line.split_whitespace().map(|field| field.parse().ok()).collect();
        match fields[..] {
            [] => Ok(()),
            [Some(end), Some(_), Some(_), Some(ns)] => {
                let start = end
                    .checked_sub(ns)
                    .ok_or_else(|| format!("line {number}: it lasts longer than the run so far"))?;
                let (start, duration) = (Nanos::from_nanos(start), Nanos::from_nanos(ns));
                detours.push(Detour { start, duration, own: false });
                Ok(())
            }
            _ => Err(format!("line {number}: `{}` is not `timestamp delta cycles ns`", printable(line))),
        }
    })?;
    detours.sort_by_key(|detour| detour.start);
    // Cycles and ns are rounded separately, so neighbours may overlap by one.
    for i in 1..detours.len() {
        let free = detours[i - 1].end();
        if free.as_nanos() == detours[i].start.as_nanos().saturating_add(1) {
            detours[i].start = free;
            detours[i].duration = detours[i].duration.saturating_sub(Nanos::from_nanos(1));
        }
    }
    let count = detours.len();
    let last = detours.iter().map(Detour::end).max().unwrap_or(Nanos::ZERO);
    // A file that was cut off ends with its last row.
    let whole = printed.is_none_or(|printed| printed == count);
    let end = runtime.filter(|_| whole).map_or(last, |end| end.max(last));
    let traces = vec![trace_of(cpu_of(path), detours, Some(Span { start: Nanos::ZERO, end }))];
    let mut content = Content::new(Method::Detour, "sysjitter", Rows::Detours(traces));
    content.manifest.threshold_ns = threshold.filter(|ns| ns.is_finite() && *ns >= 0.0);
    if let Some(printed) = printed.filter(|printed| *printed != count) {
        let [stated, found] = [printed, count].map(|rows| rows as u64);
        content.manifest.warnings.push(Warning::RowsCutOff { stated, found });
    }
    Ok(content)
}

/// sysjitter appends the core's number to the given name.
fn cpu_of(path: &Path) -> Cpu {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let numbers = name.split('.').skip(1).filter_map(|part| part.parse().ok());
    Cpu(numbers.last().unwrap_or(0))
}
