//! The output of rtla (Linux, tools/tracing/rtla/src: osnoise_hist.c, timerlat_hist.c, osnoise_top.c, timerlat_top.c): histograms with a
//! column for each CPU and context, and summaries, of which the last screen counts.

use super::{Counts, Series, US};
use crate::formats::content::Content;
use crate::formats::{for_each_line, printable};
use crate::warning::SummingTool;
use crate::{Cpu, HistogramKind, Nanos, Warning};

/// Parses rtla's `D HH:MM:SS`.
fn duration(text: &str) -> Option<Nanos> {
    let (days, clock) = text.trim().split_once(' ')?;
    let mut seconds = days.trim().parse::<u64>().ok()?;
    for (part, each) in clock.trim().splitn(3, ':').zip([24, 60, 60]) {
        seconds = seconds.checked_mul(each)?.checked_add(part.parse().ok()?)?;
    }
    Some(Nanos::from_secs(seconds))
}

#[derive(Default)]
struct Hist {
    unit: u64,
    span: Option<Nanos>,
    columns: Vec<Series>,
    rows: Vec<(u64, Vec<u64>)>,
    over: Vec<u64>,
    max: Vec<u64>,
    /// Whether sums over all CPUs follow, which are not rows of a CPU.
    all: bool,
}

pub(in super::super) fn read_hist(text: &str) -> Result<Content, String> {
    let mut hist = Hist { unit: US, ..Hist::default() };
    let timerlat = text.contains("RTLA timerlat");
    for_each_line(text, |number, line| {
        hist.read(line.trim()).map_err(|reason| format!("line {number}: {reason}"))
    })?;
    if hist.columns.is_empty() {
        return Err(
            "it is rtla's, and has no line `Index` that names its columns: run it without --no-index".into(),
        );
    }
    let mut counts = Counts::default();
    let step = hist.step();
    let beyond = "a bucket ends beyond all time";
    for (place, &series) in hist.columns.iter().enumerate() {
        counts.watch(series.0, hist.span.unwrap_or(Nanos::ZERO));
        counts.add(series, 0, 0, 0)?;
        for (index, row) in &hist.rows {
            let from = index.checked_mul(hist.unit).ok_or(beyond)?;
            let to = from.checked_add(step.saturating_mul(hist.unit) - 1).ok_or(beyond)?;
            let longest =
                hist.max.get(place).map(|max| max.saturating_mul(hist.unit).saturating_add(hist.unit - 1));
            counts.add(series, from, to.min(longest.unwrap_or(to)).max(from), row[place])?;
        }
        // The file does not state where the rows end: at least after the last one with a time.
        let max = hist.max.get(place).copied().unwrap_or(0);
        let last = hist.rows.last().map_or(0, |(index, _)| index.saturating_add(1)).min(max);
        let max = max.checked_mul(hist.unit).ok_or(beyond)?;
        let over = hist.over.get(place).copied().unwrap_or(0);
        counts.add_overflow(
            series,
            last.saturating_mul(hist.unit),
            [max, max.saturating_add(hist.unit - 1)],
            over,
        )?;
    }
    if hist.over.is_empty() {
        counts.warnings.push(Warning::SumsMissing { tool: SummingTool::Rtla });
    }
    Ok(counts.content(if timerlat { "rtla timerlat hist" } else { "rtla osnoise hist" }))
}

impl Hist {
    fn read(&mut self, line: &str) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix('#') {
            let comment = comment.trim();
            if comment.contains("(ns)") {
                self.unit = 1;
            } else if let Some(text) = comment.strip_prefix("Duration:") {
                self.span = duration(text);
            }
            return Ok(());
        }
        let (head, rest) = line.split_once(|c: char| c.is_whitespace() || c == ':').unwrap_or((line, ""));
        let rest = rest.trim_start_matches(':');
        match head {
            "" => return Ok(()),
            "Index" if self.columns.is_empty() => return self.name_columns(rest),
            "Index" => return Err("a second histogram begins: give a file for each".into()),
            "ALL" => self.all = true,
            // `rtla osnoise hit stop tracing`, and what it traced.
            "rtla" if !self.max.is_empty() => self.all = true,
            _ if self.all => {}
            "over" => self.over = self.numbers(rest)?,
            "max" => self.max = self.numbers(rest)?,
            "count" | "min" | "avg" => {}
            _ => {
                let index =
                    head.parse().map_err(|_| format!("`{}` is no row of the histogram", printable(line)))?;
                if self.rows.last().is_some_and(|(last, _)| *last >= index) {
                    return Err(format!("the index {index} does not rise"));
                }
                let row = self.numbers(rest)?;
                self.rows.push((index, row));
            }
        }
        Ok(())
    }

    fn name_columns(&mut self, names: &str) -> Result<(), String> {
        for name in names.split_whitespace() {
            let wrong = || format!("`{}` is no column of rtla's", printable(name));
            let (context, cpu) = name.split_once('-').ok_or_else(wrong)?;
            let kind = match context {
                "CPU" => HistogramKind::Gap,
                "IRQ" => HistogramKind::IrqLatency,
                "Thr" => HistogramKind::ThreadLatency,
                "Usr" => HistogramKind::UserLatency,
                _ => return Err(wrong()),
            };
            self.columns.push((Cpu(cpu.parse().map_err(|_| wrong())?), 0, kind));
        }
        Ok(())
    }

    /// A number for each column; `-` if there is none, and rtla's single 0 if nothing was seen.
    fn numbers(&self, text: &str) -> Result<Vec<u64>, String> {
        let number = |word: &str| match word {
            "-" => Ok(0),
            word => word.parse().map_err(|_| format!("`{}` is not a whole number", printable(word))),
        };
        let found: Vec<u64> = text.split_whitespace().map(number).collect::<Result<_, _>>()?;
        match (found.len(), self.columns.len()) {
            (a, b) if a == b => Ok(found),
            (1, _) if found == [0] && self.rows.is_empty() => Ok(vec![0; self.columns.len()]),
            (a, b) => Err(format!("it has {a} numbers for {b} columns")),
        }
    }

    /// Rows of zeros are omitted, so the width of a row follows from the numbers at which all rows begin: it is at most this.
    fn step(&self) -> u64 {
        let common = self.rows.iter().fold(0, |step, (index, _)| gcd(step, *index));
        if common == 0 { self.max.iter().max().map_or(1, |max| max.saturating_add(1)) } else { common }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Reads the screens of `rtla osnoise top`, `rtla hwnoise` and `rtla timerlat top`.
pub(in super::super) fn read_top(text: &str) -> Result<Content, String> {
    let mut top = Top { unit: US, ..Top::default() };
    for_each_line(text, |number, line| {
        let line = plain(line);
        top.read(line.trim()).map_err(|reason| format!("line {number}: {reason}"))
    })?;
    let mut counts = top.counts.ok_or("it is rtla's, and holds no screen")?;
    counts.warnings.push(Warning::Summary);
    counts.warnings.append(&mut top.sums);
    Ok(counts.content(if top.timerlat { "rtla timerlat top" } else { "rtla osnoise top" }))
}

#[derive(Default)]
struct Top {
    timerlat: bool,
    unit: u64,
    span: Option<Nanos>,
    counts: Option<Counts>,
    sums: Vec<Warning>,
}

impl Top {
    fn read(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with("duration:") {
            self.span = line
                .split(['|', ':'])
                .nth(1)
                .and(line.split('|').next())
                .and_then(|text| duration(text.trim_start_matches("duration:")));
        } else if line.contains("Timer Latency (") {
            self.timerlat = true;
            self.unit = if line.contains("(ns)") { 1 } else { US };
            self.span = line.split('|').next().and_then(duration);
        } else if line.starts_with("CPU ") {
            // Each further screen repeats the sums so far.
            (self.counts, self.sums) = (Some(Counts::default()), Vec::new());
        } else if line.split_whitespace().nth(1).is_some_and(|word| word.starts_with('#'))
            && !line.starts_with("ALL")
        {
            let mut counts = self.counts.take().ok_or("no line `CPU …` stands before it")?;
            self.row(line, &mut counts)?;
            self.counts = Some(counts);
        }
        Ok(())
    }

    fn row(&mut self, line: &str, counts: &mut Counts) -> Result<(), String> {
        let wrong = || format!("`{}` is no row of rtla's", printable(line));
        let mut parts = line.split('|');
        let head = parts.next().unwrap_or_default();
        let fields: Vec<&str> = head.split_whitespace().map(|word| word.trim_start_matches('#')).collect();
        let number = |at: usize| fields.get(at).and_then(|word| word.parse::<u64>().ok());
        let cpu = number(0).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu).ok_or_else(wrong)?;
        let seen = number(1).ok_or_else(wrong)?;
        if self.timerlat {
            counts.watch(cpu, self.span.unwrap_or(Nanos::ZERO));
            let kinds = [HistogramKind::IrqLatency, HistogramKind::ThreadLatency, HistogramKind::UserLatency];
            let mut some = false;
            for (part, kind) in parts.zip(kinds) {
                some = true;
                let fields: Vec<&str> = part.split_whitespace().collect();
                let [_, min, _, max] = fields[..] else { return Err(wrong()) };
                if min == "-" {
                    continue;
                }
                let (Ok(min), Ok(max)) = (min.parse(), max.parse()) else { return Err(wrong()) };
                self.between(counts, (cpu, 0, kind), seen, [min, max])?;
            }
            return if some { Ok(()) } else { Err(wrong()) };
        }
        let (Some(runtime), Some(noise), Some(longest), Some(single)) =
            (number(2), number(3), number(5), number(6))
        else {
            return Err(wrong());
        };
        let [noise_ns, runtime_ns, longest_ns] = [noise, runtime, single].map(|us| us.saturating_mul(US));
        counts.watch(cpu, Nanos::from_nanos(runtime_ns));
        let Cpu(number) = cpu;
        self.sums.push(Warning::OsnoiseSums { cpu: number, noise_ns, runtime_ns, periods: seen, longest_ns });
        self.between(counts, (cpu, 0, HistogramKind::Noise), seen, [0, longest])
    }

    fn between(
        &self,
        counts: &mut Counts,
        series: Series,
        seen: u64,
        [min, max]: [u64; 2],
    ) -> Result<(), String> {
        if min > max {
            return Err(format!("the shortest, {min}, is longer than the longest, {max}"));
        }
        let most = max
            .checked_mul(self.unit)
            .and_then(|ns| ns.checked_add(self.unit - 1))
            .ok_or("a time is beyond all time")?;
        counts.add_overflow(series, min * self.unit, [max * self.unit, most], seen)
    }
}

/// The line without the codes that clear and colour a terminal.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            text.push(c);
        } else if chars.next() == Some('[') {
            chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    text
}
