//! Renders measured LogGOPS parameters as text for a terminal, and as a file for `--net`.

use quell_analysis::bench::loggp::{Check, Document, Estimate, Kind, Range};
use quell_recording::columns::Columns;

use super::rows::rows;
use super::table::{table, time};
use super::warnings;
use crate::printer::one_line;

/// The parameters of each kind of network, by range of sizes, and how closely the simulator reproduces the measurements with them.
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

/// L, o, g, G, O and S, each with its confidence interval.
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

/// A range of message sizes that share one set of parameters.
#[derive(Debug, Columns)]
struct RangeRow<'a> {
    #[column]
    sizes: String,
    #[column(flatten)]
    range: &'a Range,
}

fn ranges(ranges: &[Range]) -> String {
    let shown: Vec<RangeRow<'_>> = ranges
        .iter()
        .map(|range| RangeRow { sizes: format!("{}–{} B", range.from_bytes, range.to_bytes), range })
        .collect();
    rows(&shown)
}

/// A message size at which the simulator was compared with the measurement.
#[derive(Debug, Columns)]
struct CheckRow {
    #[column(title = "size", suffix = " B")]
    bytes: u64,
    #[column(title = "ping-pong / 2")]
    pingpong_ns: f64,
    #[column(title = "simulated")]
    pingpong_simulated_ns: f64,
    #[column(title = "", precision = 1, suffix = " %", plus)]
    pingpong_off_percent: f64,
    #[column(title = "linear scatter")]
    scatter_ns: f64,
    #[column(title = "simulated")]
    scatter_simulated_ns: f64,
    #[column(title = "", precision = 1, suffix = " %", plus)]
    scatter_off_percent: f64,
}

impl CheckRow {
    fn new(check: &Check) -> Self {
        Self {
            bytes: check.bytes,
            pingpong_ns: check.pingpong.measured_ns,
            pingpong_simulated_ns: check.pingpong.simulated_ns,
            pingpong_off_percent: check.pingpong.deviation_percent,
            scatter_ns: check.scatter.measured_ns,
            scatter_simulated_ns: check.scatter.simulated_ns,
            scatter_off_percent: check.scatter.deviation_percent,
        }
    }
}

fn checks(checks: &[Check]) -> String {
    rows(&checks.iter().map(CheckRow::new).collect::<Vec<_>>())
}
