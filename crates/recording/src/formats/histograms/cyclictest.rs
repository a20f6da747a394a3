//! cyclictest's text (rt-tests 2.4, src/cyclictest/cyclictest.c): the histogram of `-h` and `--histfile`, and the lines of `-v`. In us.

use super::{Counts, Series, US};
use crate::formats::content::Content;
use crate::formats::{for_each_line, printable};
use crate::warning::SummingTool;
use crate::{Cpu, HistogramKind, Warning};

/// Adds the times above the last bucket, which ends before `end` units. `max` is the longest of all.
pub(super) fn add_overflow(
    counts: &mut Counts,
    series: Series,
    end: u64,
    max: Option<u64>,
    over: u64,
    unit: u64,
) -> Result<(), String> {
    let beyond = "the longest latency ends beyond all time";
    let from = end.checked_mul(unit).ok_or(beyond)?;
    let max = max.unwrap_or(0).checked_mul(unit).ok_or(beyond)?;
    counts.add_overflow(series, from, [max, max.checked_add(unit - 1).ok_or(beyond)?], over)
}

fn series(thread: usize) -> Series {
    (Cpu(thread as u32), thread as u32, HistogramKind::Latency)
}

#[derive(Default)]
struct Sums {
    /// Number of threads that have a least latency.
    threads: usize,
    max: Vec<u64>,
    over: Vec<u64>,
}

pub(in super::super) fn read_text(text: &str) -> Result<Content, String> {
    let (mut counts, mut sums) = (Counts::default(), Sums::default());
    let (mut threads, mut end) = (0, 0);
    for_each_line(text, |number, line| {
        let wrong = |reason: String| format!("line {number}: {reason}");
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            return sums.read(comment.trim()).map_err(wrong);
        }
        if line.is_empty() || !line.starts_with(|c: char| c.is_ascii_digit()) {
            // A line of `-q`, or a remark of the tool.
            return if end == 0 || line.is_empty() || line.starts_with("T:") {
                Ok(())
            } else {
                Err(wrong(format!("`{}` is no row of the histogram", printable(line))))
            };
        }
        let fields = line.split_whitespace().map(|field| {
            field.parse().map_err(|_| wrong(format!("`{}` is not a whole number", printable(field))))
        });
        let fields: Vec<u64> = fields.collect::<Result<_, _>>()?;
        if fields.len() < 2 || threads != 0 && fields.len() != threads + 1 {
            return Err(wrong(format!(
                "it has {} numbers: a latency, and how often for each thread",
                fields.len()
            )));
        }
        threads = fields.len() - 1;
        if end != 0 && fields[0] < end {
            return Err(wrong(format!("the latency {} does not rise", fields[0])));
        }
        end = fields[0].checked_add(1).ok_or_else(|| wrong("no latency is that long".into()))?;
        for (thread, count) in fields[1..].iter().enumerate() {
            counts.add_units(series(thread), fields[0], US, *count).map_err(wrong)?;
        }
        Ok(())
    })?;
    // The last column of `-H` is the sum of all threads, which has no least latency.
    if sums.threads + 1 == threads {
        threads -= 1;
        counts.forget(series(threads));
    }
    if threads == 0 {
        return Err("it is cyclictest's, and holds no row of a histogram: run it with -h".into());
    }
    for (thread, over) in sums.over.iter().enumerate().take(threads) {
        add_overflow(&mut counts, series(thread), end, sums.max.get(thread).copied(), *over, US)?;
    }
    if sums.over.is_empty() {
        counts.warnings.push(Warning::SumsMissing { tool: SummingTool::Cyclictest });
    }
    counts.warnings.push(Warning::CpusOfThreadsUnknown);
    Ok(counts.content("cyclictest's histogram"))
}

impl Sums {
    fn read(&mut self, comment: &str) -> Result<(), String> {
        let Some((key, values)) = comment.split_once(':') else { return Ok(()) };
        let sums = match key {
            "Min Latencies" => {
                self.threads = values.split_whitespace().count();
                return Ok(());
            }
            "Max Latencies" => &mut self.max,
            "Histogram Overflows" => &mut self.over,
            _ => return Ok(()),
        };
        let numbers = values
            .split_whitespace()
            .map(|word| word.parse().map_err(|_| format!("`{}` is not a whole number", printable(word))));
        *sums = numbers.collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// Reads lines `THREAD: CYCLE: LATENCY`, one for each time that a thread woke.
pub(in super::super) fn read_verbose(text: &str) -> Result<Content, String> {
    let mut counts = Counts::default();
    let mut begun = false;
    for_each_line(text, |number, line| {
        let line = line.trim();
        let fields: Vec<Option<u64>> = line.split(':').map(|field| field.trim().parse().ok()).collect();
        if let [Some(thread), Some(_), Some(latency)] = fields[..]
            && let Ok(thread) = u32::try_from(thread)
        {
            begun = true;
            let series = (Cpu(thread), thread, HistogramKind::Latency);
            return counts
                .add_units(series, latency, US, 1)
                .map_err(|reason| format!("line {number}: {reason}"));
        }
        let printed = !begun && !line.contains(": ") || line.starts_with('#') || line.is_empty();
        let printed = printed
            || ["Max CPUs", "Online CPUs", "Thread ", "policy:", "T:"]
                .iter()
                .any(|word| line.starts_with(word));
        if printed {
            Ok(())
        } else {
            Err(format!("line {number}: `{}` is not `thread: cycle: latency`", printable(line)))
        }
    })?;
    if !begun {
        return Err("it is cyclictest's, and holds no latency".into());
    }
    counts.warnings.extend([Warning::LatenciesCounted, Warning::CpusOfThreadsUnknown]);
    Ok(counts.content("cyclictest -v"))
}
