//! An emulation as text for a terminal.

use quell_analysis::emulation::{Emulation, Point};
use quell_node::injector::phases::SHORTEST_BURN_NS;

use super::table::{table, time};
use super::warnings;

/// What ran, a row a scale, and what the machine's own noise did.
pub fn emulation(emulation: &Emulation) -> String {
    let mut text = format!(
        "Phases of {} under `{}` noise, run for virtual ranks in turn on {} CPUs ({} phases, seed {}, scale {})\n",
        time(emulation.quantum_ns as f64),
        emulation.sync.as_str(),
        emulation.machine.cpus.len(),
        emulation.phases,
        emulation.seed,
        emulation.scale
    );
    text += &format!(
        "burned: {:.1} % of the detours, those of {} and more\n",
        emulation.coverage_percent,
        time((SHORTEST_BURN_NS as f64 / emulation.scale).ceil())
    );
    if emulation.points.is_empty() {
        text +=
            &format!("expected: {} without this machine's own noise\n", time(emulation.expected_ns as f64));
    } else {
        let header = [
            "ranks",
            "mean MaxQT",
            "slowdown %",
            "95 % interval",
            "predicted %",
            "difference %",
            "in place %",
            "again",
        ];
        text += &table(&header, emulation.points.iter().map(row));
        text += "difference: from the prediction, whose ranks go their own way; in place: from that for where the ranks really stood\n";
        text += &own_noise(emulation);
    }
    text += &warnings::lines(&emulation.warnings);
    text
}

fn row(point: &Point) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    vec![
        point.ranks.to_string(),
        time(point.mean_max_qt_ns),
        format!("{:.3}", point.slowdown_percent),
        or_none(point.ci95_percent.map(|[low, high]| format!("{low:.3} – {high:.3}"))),
        or_none(point.predicted_percent.map(|percent| format!("{percent:.3}"))),
        or_none(point.difference_percent.map(|percent| format!("{percent:+.2}"))),
        or_none(point.difference_in_place_percent.map(|percent| format!("{percent:+.2}"))),
        format!("{:.1} %", 100.0 * point.own.runs_again as f64 / point.own.runs.max(1) as f64),
    ]
}

/// What the machine did meanwhile, over all scales.
fn own_noise(emulation: &Emulation) -> String {
    let sum = |of: &dyn Fn(&Point) -> f64| emulation.points.iter().map(of).sum::<f64>();
    let spread = emulation.points.iter().map(|point| point.reference_spread_ns).fold(0.0, f64::max);
    format!(
        "this machine's own noise: {} of {} runs were done again, {} were disturbed each time; {} taken out of {} runs\nquanta without \
         noise spread by {} (99.9 % above the median), {:.4} % of the quantum\n",
        sum(&|point| point.own.runs_again as f64),
        sum(&|point| point.own.runs as f64),
        sum(&|point| point.own.disturbed as f64),
        time(sum(&|point| point.own.own_ns)),
        sum(&|point| point.own.with_own as f64),
        time(spread),
        100.0 * spread / emulation.quantum_ns as f64
    )
}
