//! Measured LogGOPS parameters as text for a terminal, and as a file for `--net`.

use quell_analysis::bench::loggp::{Check, Comparison, Document, Estimate, Kind, Range};

use super::table::{table, time};
use super::warnings;
use crate::printer::one_line;

/// The parameters of each kind of network, of its ranges of sizes, and how near the simulator comes with them.
pub fn bench_loggp(document: &Document) -> String {
    let mut text = format!("{}\n", one_line(&document.mpi));
    text += &warnings::lines(&document.warnings);
    text.extend(document.kinds.iter().map(kind));
    text
}

fn kind(kind: &Kind) -> String {
    let hosts: Vec<String> = kind.hosts.iter().map(|host| one_line(host)).collect();
    let heading = format!(
        "\n{}-node: ranks 0 and {} on {}, {} rounds\n",
        kind.kind.word(),
        kind.partner,
        hosts.join(" and "),
        kind.rounds
    );
    let mut text = heading + &parameters(kind) + "\n" + &ranges(&kind.ranges);
    if !kind.checks.is_empty() {
        text = text + "\n" + &checks(&kind.checks);
    }
    text
}

/// L, o, g, G, O and S, each with its interval.
fn parameters(kind: &Kind) -> String {
    let of = &kind.parameters;
    let times = [
        ("L", of.latency_ns, "latency"),
        ("o", of.overhead_ns, "CPU time of a send or an arrival"),
        ("o_s", of.send_overhead_ns, "of a send, as measured"),
        ("o_r", of.receive_overhead_ns, "of an arrival, as measured"),
        ("g", of.gap_ns, "from one message to the next"),
    ];
    let rates = [
        ("G", of.gap_per_byte_ns, "for each further byte"),
        ("O", of.overhead_per_byte_ns, "CPU time of each further byte"),
    ];
    let row = |name: &str, figures: [String; 3], what: &str| {
        [name.to_owned()].into_iter().chain(figures).chain([what.to_owned()]).collect::<Vec<_>>()
    };
    let ends = |estimate: Estimate| [estimate.value, estimate.low, estimate.high];
    let times = times.map(|(name, estimate, what)| row(name, ends(estimate).map(time), what));
    let rates = rates.map(|(name, estimate, what)| row(name, ends(estimate).map(rate), what));
    let least = if kind.eager_limit_found { "" } else { "≥ " };
    let limit = ends(kind.eager_limit_bytes).map(|bytes| format!("{least}{bytes:.0} B"));
    let limit = row("S", limit, "largest message whose sender does not wait");
    table(&["", "value", "5 %", "95 %", ""], times.into_iter().chain(rates).chain([limit]))
}

fn rate(ns: f64) -> String {
    format!("{ns:.4} ns/B")
}

fn ranges(ranges: &[Range]) -> String {
    let row = |range: &Range| {
        let times = [range.latency_ns, range.overhead_ns, range.gap_ns].map(|estimate| time(estimate.value));
        let rates = [range.gap_per_byte_ns, range.overhead_per_byte_ns].map(|estimate| rate(estimate.value));
        let worst = format!("{:.1} %", range.worst_residual_percent);
        [format!("{}–{} B", range.from_bytes, range.to_bytes)]
            .into_iter()
            .chain(times)
            .chain(rates)
            .chain([worst])
            .collect()
    };
    table(&["sizes", "L", "o", "g", "G", "O", "at most off"], ranges.iter().map(row))
}

fn checks(checks: &[Check]) -> String {
    let figures = |of: &Comparison| {
        [time(of.measured_ns), time(of.simulated_ns), format!("{:+.1} %", of.deviation_percent)]
    };
    let row = |check: &Check| {
        [format!("{} B", check.bytes)]
            .into_iter()
            .chain(figures(&check.pingpong))
            .chain(figures(&check.scatter))
            .collect()
    };
    let header = ["size", "ping-pong / 2", "simulated", "", "linear scatter", "simulated", ""];
    table(&header, checks.iter().map(row))
}
