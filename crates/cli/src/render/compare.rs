//! A comparison as text for a terminal.

use quell_analysis::compare::{Change, Changes, Comparison, SideDocument};

use super::plots::{self, Scale, Series};
use super::table::{table, time};
use super::warnings;
use crate::printer::{one_line, width};

/// Both sides, what changed and whether it is more than chance, and how the durations lie.
pub fn compare(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (letter, side) in [('a', &comparison.a), ('b', &comparison.b)] {
        text += &format!("{letter}: {}\n", side_line(side));
    }
    text += &warnings::lines(&comparison.warnings);
    let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.4}"));
    text += &format!(
        "durations: KL divergence b from a {} nats, a from b {} nats; Wasserstein distance {}\n",
        number(comparison.kl_nats),
        number(comparison.kl_reverse_nats),
        comparison.wasserstein_ns.map_or_else(|| "-".into(), time)
    );
    text += &changes("All CPUs", &comparison.changes);
    for cpu in comparison.cpus.iter().filter(|_| comparison.cpus.len() > 1) {
        text += &changes(&format!("CPU {}", cpu.cpu), &cpu.changes);
    }
    text + &densities(comparison)
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

fn changes(title: &str, changes: &Changes) -> String {
    // Adding zero makes a negative zero a plain one.
    let plain = |value: f64| format!("{:.4}", value + 0.0);
    let mut rows = vec![
        row("noise overhead, %", &changes.overhead_percent, &plain),
        row("detours per s", &changes.rate_per_s, &|value| format!("{value:.2}")),
    ];
    let durations = [
        ("p50", &changes.p50_ns),
        ("p90", &changes.p90_ns),
        ("p99", &changes.p99_ns),
        ("p99.9", &changes.p99_9_ns),
        ("max", &changes.max_ns),
    ];
    rows.extend(
        durations.iter().filter_map(|(name, change)| Some(row(name, change.as_ref()?, &signed_time))),
    );
    format!("\n{title}\n{}", table(&["", "a", "b", "b − a", "95 % interval", "verdict"], rows.into_iter()))
}

fn row(name: &str, change: &Change, text: &dyn Fn(f64) -> String) -> Vec<String> {
    let interval = format!("{} … {}", text(change.low), text(change.high));
    vec![
        name.into(),
        text(change.a),
        text(change.b),
        text(change.difference),
        interval,
        change.verdict.to_string(),
    ]
}

/// A difference of times, which may be negative.
fn signed_time(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", time(-ns)) } else { time(ns) }
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
    let y = Scale::linear(0.0, most, |value| format!("{value:.2}"));
    let lines = [series("a", &densities.a), series("b", &densities.b)];
    format!(
        "\n{}",
        plots::chart("Density of durations per decade (Parzen windows)", width(), 14, &x, &y, &lines)
    )
}
