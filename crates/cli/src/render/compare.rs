//! Renders a comparison as text for a terminal.

use quell_analysis::compare::{Change, Changes, Comparison, SideDocument};
use quell_recording::columns::{Column, Value};

use super::plots::{self, Scale, Series};
use super::rows::cell;
use super::table::{table, time};
use super::warnings;
use crate::printer::{one_line, width};

/// Both sides, what changed, whether it is more than chance, and the distribution of durations.
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

/// A table of figures, each in its own unit.
fn changes(title: &str, changes: &Changes) -> String {
    let row = |(column, change): (Column, &Change)| {
        let text = |value: f64| cell(&column, &Value::F64(value));
        vec![
            column.title.clone(),
            text(change.a),
            text(change.b),
            text(change.difference),
            format!("{} … {}", text(change.low), text(change.high)),
            change.verdict.to_string(),
        ]
    };
    format!(
        "\n{title}\n{}",
        table(&["", "a", "b", "b − a", "95 % interval", "verdict"], changes.figures().map(row))
    )
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
