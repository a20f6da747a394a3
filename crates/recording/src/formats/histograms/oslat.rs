//! oslat's text (rt-tests 2.4, src/oslat/oslat.c): lines `LABEL (us): COUNT …` with a count for each core. Times of up to n us and
//! at least n-1 have the label n; the last label covers all longer times.

use super::{Counts, Series, US};
use crate::formats::content::Content;
use crate::formats::{for_each_line, printable};
use crate::warning::SummingTool;
use crate::{Cpu, HistogramKind, Nanos, Warning};

/// Adds buckets by their label in us, the last with all longer times; `max` is the label of the longest.
pub(super) fn add(
    counts: &mut Counts,
    series: Series,
    buckets: impl Iterator<Item = (u64, u64)>,
    max: Option<u64>,
) -> Result<(), String> {
    let beyond = "a bucket ends beyond all time";
    let mut buckets = buckets.peekable();
    while let Some((label, count)) = buckets.next() {
        let from = label.checked_sub(1).ok_or("the label 0 is no bucket of oslat's, which begin with 1")?;
        let from = from.checked_mul(US).ok_or(beyond)?;
        let to = label.checked_mul(US).ok_or(beyond)?;
        match max.filter(|max| buckets.peek().is_none() && *max > label) {
            Some(max) => {
                let most = max.checked_mul(US).ok_or(beyond)?;
                counts.add_overflow(series, from, [most - US, most - 1], count)?;
            }
            None => counts.add(series, from, to - 1, count)?,
        }
    }
    Ok(())
}

#[derive(Default)]
struct File {
    cpus: Vec<Cpu>,
    /// The label, and the count of each core.
    buckets: Vec<(u64, Vec<u64>)>,
    max: Vec<u64>,
    seconds: Vec<f64>,
}

pub(in super::super) fn read(text: &str) -> Result<Content, String> {
    let mut file = File::default();
    for_each_line(text, |number, line| {
        file.read(line.trim()).map_err(|reason| format!("line {number}: {reason}"))
    })?;
    if file.cpus.is_empty() || file.buckets.is_empty() {
        return Err("it is oslat's, and holds no histogram: the run did not end".into());
    }
    let mut counts = Counts::default();
    for (place, &cpu) in file.cpus.iter().enumerate() {
        let buckets = file.buckets.iter().map(|(label, counts)| (*label, counts[place]));
        let series = (cpu, place as u32, HistogramKind::Gap);
        add(&mut counts, series, buckets, file.max.get(place).copied())?;
        let span = file.seconds.get(place).and_then(|seconds| Nanos::from_nanos_f64(seconds * 1e9));
        counts.watch(cpu, span.unwrap_or(Nanos::ZERO));
    }
    if file.max.is_empty() {
        counts.warnings.push(Warning::SumsMissing { tool: SummingTool::Oslat });
    }
    Ok(counts.content("oslat"))
}

impl File {
    fn read(&mut self, line: &str) -> Result<(), String> {
        let Some((key, values)) = line.split_once(':') else { return Ok(()) };
        let key = key.trim();
        match key {
            "Core" if self.cpus.is_empty() => self.cpus = numbers(values)?.into_iter().map(Cpu).collect(),
            "Core" => return Err("a second run begins: give a file for each".into()),
            "Maximum" => self.max = self.parse_all(values)?,
            "Duration" => self.seconds = self.parse_all(values)?,
            _ => {
                let Some(label) = key.strip_suffix("(us)") else { return Ok(()) };
                let label = label.trim().parse().map_err(|_| format!("`{}` is no bucket", printable(key)))?;
                if self.buckets.last().is_some_and(|(last, _)| *last >= label) {
                    return Err(format!("the bucket {label} does not rise"));
                }
                let counts = self.parse_all(values)?;
                self.buckets.push((label, counts));
            }
        }
        Ok(())
    }

    fn parse_all<T: std::str::FromStr>(&self, values: &str) -> Result<Vec<T>, String> {
        let found = numbers(values)?;
        if found.is_empty() || found.len() != self.cpus.len() {
            return Err(format!(
                "it has {} numbers, and oslat watched {} cores",
                found.len(),
                self.cpus.len()
            ));
        }
        Ok(found)
    }
}

/// Reads numbers up to a remark in brackets.
fn numbers<T: std::str::FromStr>(values: &str) -> Result<Vec<T>, String> {
    let values = values.split_once('(').map_or(values, |(values, _)| values);
    let number = |word: &str| word.parse().map_err(|_| format!("`{}` is not a number", printable(word)));
    values.split_whitespace().map(number).collect()
}
