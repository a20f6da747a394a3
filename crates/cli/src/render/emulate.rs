//! Renders an emulation as text for a terminal.

use quell_analysis::emulation::{Emulation, Point};
use quell_node::injector::phases::SHORTEST_BURN_NS;

use super::rows::rows;
use super::table::time;
use super::warnings;

/// What ran, a row per number of ranks, and the effect of the machine's own noise.
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
        "injected: {:.1} % of the detours, those of {} or longer\n",
        emulation.coverage_percent,
        time((SHORTEST_BURN_NS as f64 / emulation.scale).ceil())
    );
    if emulation.points.is_empty() {
        text +=
            &format!("expected: {} without this machine's own noise\n", time(emulation.expected_ns as f64));
    } else {
        text += &rows(&emulation.points);
        text += "difference: from the prediction, in which ranks are independent; in place: from the prediction for the ranks' actual offsets\n";
        text += &own_noise(emulation);
    }
    text += &warnings::lines(&emulation.warnings);
    text
}

/// The machine's own noise during the emulation, over all numbers of ranks.
fn own_noise(emulation: &Emulation) -> String {
    let sum = |of: &dyn Fn(&Point) -> f64| emulation.points.iter().map(of).sum::<f64>();
    let spread = emulation.points.iter().map(|point| point.reference_spread_ns).fold(0.0, f64::max);
    format!(
        "this machine's own noise: {} of {} runs were repeated, {} were disturbed each time; {} subtracted from {} runs\nquanta without \
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
