//! Renders a comparison as text for a terminal.

use quell_analysis::compare::{
    BySource, Change, Changes, Comparison, SideDocument, SourceChange, SourceVerdict,
};
use quell_recording::columns::{Column, Value};
use quell_recording::{Cpu, format_cpu_list};

use super::plots::{self, Scale, Series};
use super::rows::{cell, rows};
use super::table::{table, time};
use super::warnings;
use crate::printer::{one_line, width};

/// With more CPUs, only the names of those that changed are listed.
const MOST_CPUS: usize = 4;
/// A narrower terminal has no room for the differences of figures.
const NARROW: usize = 90;

/// Both sides, which sources changed, what else did, whether it is more than chance, and the distribution of durations.
pub fn compare(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (letter, side) in [('a', &comparison.a), ('b', &comparison.b)] {
        text += &format!("{letter}: {}\n", side_line(side));
    }
    text += &warnings::lines(&comparison.warnings);
    if let Some(found) = &comparison.by_source {
        text += &by_source(comparison, found);
    }
    let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.4}"));
    text += &format!(
        "durations: KL divergence b from a {} nats, a from b {} nats; Wasserstein distance {}\n",
        number(comparison.kl_nats),
        number(comparison.kl_reverse_nats),
        comparison.wasserstein_ns.map_or_else(|| "-".into(), time)
    );
    text += &changes("All CPUs", &comparison.changes);
    text += &match comparison.cpus.len() {
        0 | 1 => String::new(),
        2..=MOST_CPUS => comparison
            .cpus
            .iter()
            .map(|cpu| changes(&format!("CPU {}", cpu.cpu), &cpu.changes))
            .collect::<String>(),
        _ => changed_cpus(comparison),
    };
    text + &densities(comparison)
}

/// The CPUs of which a figure changed for sure.
fn changed_cpus(comparison: &Comparison) -> String {
    let changed =
        comparison.cpus.iter().filter(|cpu| cpu.changes.figures().any(|(_, change)| change.is_sure()));
    let cpus: Vec<Cpu> = changed.map(|cpu| Cpu(cpu.cpu)).collect();
    let all = comparison.cpus.len();
    match cpus.is_empty() {
        true => format!(
            "\nOn none of the {all} CPUs a figure changed for sure; --json has the figures of each.\n"
        ),
        false => format!(
            "\nOn CPUs {} of {all} a figure changed for sure; --json has the figures of each.\n",
            format_cpu_list(&cpus)
        ),
    }
}

/// What made the difference, as a sentence, and the sources that changed as a table.
fn by_source(comparison: &Comparison, found: &BySource) -> String {
    let mut text = format!("\n{}\n", conclusion(comparison, found));
    for slow in &found.slow_cpus {
        text += &format!(
            "CPU {} runs slower in b: a turn of the probe's loop takes {}, {} in a: a lower frequency, or a busy sibling\n",
            slow.cpu,
            time(slow.b_loop_ns),
            time(slow.a_loop_ns)
        );
    }
    if !found.changes.is_empty() {
        text += &format!("\nSources that changed (cost: alone, on {} ranks, phases of 1ms)\n", found.ranks);
        text += &rows(&found.changes);
    }
    text + "\n"
}

fn conclusion(comparison: &Comparison, found: &BySource) -> String {
    let (a, b) = (one_line(&comparison.a.name), one_line(&comparison.b.name));
    let Some(change) = found.changes.first() else {
        if let Some(unsure) = &found.unsure {
            return format!(
                "Not resolved: most of the difference is {}: {}. It comes too seldom to tell this from chance: record for longer",
                one_line(&unsure.source),
                what_changed(unsure)
            );
        }
        return match (found.slow_cpus.is_empty(), found.sources_known) {
            (false, _) => {
                format!("No source of noise differs between {a} and {b} by more than chance, but a CPU does")
            }
            (true, true) => format!(
                "No source of noise differs between {a} and {b} by more than chance ({} compared)",
                found.compared
            ),
            (true, false) => format!(
                "The noise of {a} and {b} does not differ by more than chance; a side does not know its sources"
            ),
        };
    };
    let side = match change.verdict {
        verdict if verdict.is_worse() => "noisier",
        SourceVerdict::Moved => "different",
        _ => "quieter",
    };
    format!("{b} is {side} because of {}: {}", one_line(&change.source), what_changed(change))
}

/// How a source changed, as the end of a sentence.
fn what_changed(change: &SourceChange) -> String {
    let length = match change.longer_than_ns {
        0 => String::new(),
        ns => format!(" longer than {}", time(ns as f64)),
    };
    let rates = match change.verdict {
        SourceVerdict::Moved => {
            let cpus = |cpus: &[u32]| format_cpu_list(&cpus.iter().copied().map(Cpu).collect::<Vec<_>>());
            return format!("it moved from CPU {} to CPU {}", cpus(&change.from_cpus), cpus(&change.cpus));
        }
        SourceVerdict::New => {
            format!("{} detours{length} a second of a CPU, none before", rate(change.b_per_s))
        }
        SourceVerdict::Gone => {
            format!("no detours any more, {} a second of a CPU before", rate(change.a_per_s))
        }
        _ => format!(
            "{} detours{length} a second of a CPU, {} before",
            rate(change.b_per_s),
            rate(change.a_per_s)
        ),
    };
    format!("{rates}; {} of the CPU's time, {} before", percent(change.b_percent), percent(change.a_percent))
}

fn rate(per_s: f64) -> String {
    if per_s >= 100.0 { format!("{per_s:.0}") } else { format!("{per_s:.2}") }
}

fn percent(value: f64) -> String {
    format!("{value:.3} %")
}

fn side_line(side: &SideDocument) -> String {
    format!(
        "{}, {} CPUs, {} watched, {} detours, {:.4} % noise",
        one_line(&side.name),
        side.cpus.len(),
        time(side.span_ns as f64),
        side.detours.count,
        side.overhead_percent
    )
}

/// A table of figures, each in its own unit.
fn changes(title: &str, changes: &Changes) -> String {
    // The interval shows about what the difference does.
    let is_narrow = usize::from(width()) < NARROW;
    let row = |(column, change): (Column, &Change)| {
        let text = |value: f64| cell(&column, &Value::F64(value));
        let cells = [
            Some(column.title.clone()),
            Some(text(change.a)),
            Some(text(change.b)),
            (!is_narrow).then(|| text(change.difference)),
            Some(format!("{} … {}", text(change.low), text(change.high))),
            Some(change.verdict.to_string()),
        ];
        cells.into_iter().flatten().collect()
    };
    let header: &[&str] = match is_narrow {
        false => &["", "a", "b", "b − a", "95 % interval", "verdict"],
        true => &["", "a", "b", "95 % interval of b − a", "verdict"],
    };
    format!("\n{title}\n{}", table(header, changes.figures().map(row)))
}

fn densities(comparison: &Comparison) -> String {
    let Some(densities) = &comparison.densities else { return String::new() };
    let series = |name: &str, values: &[f64]| Series {
        name: name.into(),
        points: densities.log10_ns.iter().copied().zip(values.iter().copied()).collect(),
        line: true,
    };
    let most = densities.a.iter().chain(&densities.b).copied().fold(0.0, f64::max);
    let ends = (densities.log10_ns.first(), densities.log10_ns.last());
    let (Some(&low), Some(&high)) = ends else { return String::new() };
    let x = Scale::log(low, high, plots::decade);
    let y = Scale::linear(most, |value| format!("{value:.2}"));
    let lines = [series("a", &densities.a), series("b", &densities.b)];
    format!(
        "\n{}",
        plots::chart("Density of durations per decade (Parzen windows)", width(), 14, &x, &y, &lines)
    )
}
