//! oslat's text (rt-tests, src/oslat/oslat.c): lines `LABEL (us): COUNT …` with a count for each core, where the label is the end
//! of a bucket in us, and the last bucket has all longer times. Versions differ in what they do with a time of t whole us:
//!
//! - Up to 2.4, it is t+1, in the bucket t+1.
//! - In 2.5 and 2.6 it is t+1, in the bucket t+2.
//! - Since then it is t, in the bucket t+1.
//!
//! With `-W`, in parts of a us, all are exact. With `--bias`, the first bucket has all shorter times, too. Seen in 2.4, 2.6 and 2.10.

use super::{Counts, Series, US};
use crate::formats::content::Content;
use crate::formats::{for_each_line, printable};
use crate::warning::SummingTool;
use crate::{Cpu, HistogramKind, Nanos, Warning};

/// How a version counts whole us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    /// From one.
    One,
    /// From one, with labels that are one too high.
    OneMoved,
    /// From zero.
    Zero,
}

/// What oslat prints of a core, in ns, as it prints it.
#[derive(Debug, Default)]
pub(super) struct Core {
    /// Label and count of each bucket, in order.
    pub buckets: Vec<(u64, u64)>,
    /// The width of a bucket.
    pub width: u64,
    /// Whether labels have parts of a us.
    pub exact: bool,
    pub shortest: Option<u64>,
    pub longest: Option<u64>,
}

impl Core {
    fn counting(&self, version: Option<&str>) -> Counting {
        // The loop's own time, of less than 1 us, is the shortest of nearly every core.
        if self.shortest == Some(0) {
            return Counting::Zero;
        }
        let first = self.buckets.iter().find(|(_, count)| *count > 0).map(|(label, _)| *label);
        let is_before = self.shortest.zip(first).is_some_and(|(shortest, first)| shortest < first);
        // 2.1 prints it, too.
        if version == Some("2.10") {
            return if is_before { Counting::Zero } else { Counting::One };
        }
        match version.and_then(|version| version.parse::<f64>().ok()) {
            Some(version) if version < 2.45 => Counting::One,
            Some(version) if version < 2.65 => Counting::OneMoved,
            Some(_) => Counting::Zero,
            None if is_before => Counting::OneMoved,
            None => Counting::One,
        }
    }

    /// Adds its buckets.
    pub fn add(&self, counts: &mut Counts, series: Series, version: Option<&str>) -> Result<(), String> {
        let (unit, counting) = if self.exact { (1, Counting::Zero) } else { (US, self.counting(version)) };
        let least = |time: u64| if counting == Counting::Zero { time } else { time.saturating_sub(US) };
        let moved = if counting == Counting::OneMoved { US } else { 0 };
        let longest = self.longest.map(|longest| [least(longest), least(longest).saturating_add(unit - 1)]);
        let mut shortest = self.shortest.map(least);
        for (at, &(label, count)) in self.buckets.iter().enumerate() {
            let end =
                label.checked_sub(1).ok_or("the label 0 is no bucket of oslat's, which begin above it")?;
            let to = end.saturating_sub(moved);
            let mut from = label.saturating_sub(self.width).saturating_sub(moved);
            if count > 0
                && let Some(shortest) = shortest.take()
            {
                from = from.min(shortest);
            }
            match longest.filter(|[_, most]| at + 1 == self.buckets.len() && *most > to) {
                Some(longest) => counts.add_overflow(series, from, longest, count)?,
                None => counts.add(series, from, to, count)?,
            }
        }
        Ok(())
    }
}

/// Parses a time in us, with up to three digits of ns after a point; returns ns.
pub(super) fn time(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "000"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() != 3 || !digits(whole) || !digits(part) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(US)?.checked_add(part.parse().ok()?)
}

#[derive(Default)]
struct File {
    version: Option<String>,
    cpus: Vec<Cpu>,
    /// The label in ns, and the count of each core.
    buckets: Vec<(u64, Vec<u64>)>,
    /// The smallest difference of two labels with no bucket left out between them.
    width: Option<u64>,
    /// Whether buckets were left out since the last one.
    left_out: bool,
    exact: bool,
    shortest: Vec<u64>,
    longest: Vec<u64>,
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
        let core = Core {
            buckets: file.buckets.iter().map(|(label, counts)| (*label, counts[place])).collect(),
            // A single bucket, or one that is alone among those left out, has the usual width.
            width: file.width.unwrap_or(US),
            exact: file.exact,
            shortest: file.shortest.get(place).copied(),
            longest: file.longest.get(place).copied(),
        };
        core.add(&mut counts, (cpu, place as u32, HistogramKind::Gap), file.version.as_deref())?;
        let span = file.seconds.get(place).and_then(|seconds| Nanos::from_nanos_f64(seconds * 1e9));
        counts.watch(cpu, span.unwrap_or(Nanos::ZERO));
    }
    if file.longest.is_empty() {
        counts.warnings.push(Warning::SumsMissing { tool: SummingTool::Oslat });
    }
    Ok(counts.content("oslat"))
}

impl File {
    fn read(&mut self, line: &str) -> Result<(), String> {
        if let Some(version) = line.strip_prefix("oslat V ") {
            self.version = Some(version.trim().to_owned());
        }
        self.left_out |= line == "...";
        let Some((key, values)) = line.split_once(':') else { return Ok(()) };
        let key = key.trim();
        match key {
            "Core" if self.cpus.is_empty() => {
                self.cpus = numbers(values, |word| word.parse().ok())?.into_iter().map(Cpu).collect();
            }
            "Core" => return Err("a second run begins: give a file for each".into()),
            "Minimum" => self.shortest = self.of_cores(values, time)?,
            "Maximum" => self.longest = self.of_cores(values, time)?,
            "Duration" => self.seconds = self.of_cores(values, |word| word.parse().ok())?,
            _ => {
                let Some(text) = key.strip_suffix("(us)").map(str::trim) else { return Ok(()) };
                let label = time(text).ok_or_else(|| format!("`{}` is no bucket", printable(key)))?;
                if let Some((last, _)) = self.buckets.last() {
                    let apart = label.checked_sub(*last).filter(|apart| *apart > 0);
                    let apart =
                        apart.ok_or_else(|| format!("the bucket {} does not rise", printable(text)))?;
                    if !std::mem::take(&mut self.left_out) {
                        self.width = Some(self.width.unwrap_or(apart).min(apart));
                    }
                }
                self.left_out = false;
                self.exact |= text.contains('.');
                let counts = self.of_cores(values, |word| word.parse().ok())?;
                self.buckets.push((label, counts));
            }
        }
        Ok(())
    }

    fn of_cores<T>(&self, values: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
        let found = numbers(values, parse)?;
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
fn numbers<T>(values: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let values = values.split_once('(').map_or(values, |(values, _)| values);
    let number = |word: &str| parse(word).ok_or_else(|| format!("`{}` is not a number", printable(word)));
    values.split_whitespace().map(number).collect()
}
