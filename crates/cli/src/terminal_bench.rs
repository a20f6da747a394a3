//! Benchmarks under MPI as text for a terminal.

use quell_analysis::bench::anomalies::{Anomalies, Anomaly, SourceRow};
use quell_analysis::bench::bsp::{Bsp, RankRow, Slowdown};
use quell_analysis::bench::job::RunFacts;
use quell_analysis::bench::spread::Spread;

use crate::printer::one_line;
use crate::terminal::{table, table_with_words, time};

/// Up to so many ranks get a row each.
const MOST_RANKS: usize = 32;
/// Culprits, and single phases, that get a row.
const MOST_SOURCES: usize = 12;
const MOST_LISTED: usize = 8;

/// The Parallel Benchmark: times, what noise cost, the prediction beside it.
pub fn bsp(bsp: &Bsp) -> String {
    let mut text = heading(&bsp.run, bsp.phases);
    text.extend(bsp.warnings.iter().map(|warning| format!("warning: {}\n", one_line(warning))));
    text.push('\n');
    let mut rows = vec![spread("compute (qt)", &bsp.compute)];
    if bsp.run.operation != "none" {
        rows.push(spread(&format!("{} (bt)", bsp.run.operation), &bsp.wait));
        rows.push(spread("both (qtb)", &bsp.total));
    }
    text += &table(&["all ranks", "min", "quiet", "p50", "mean", "p99", "p99.9", "max"], rows.into_iter());
    text.push('\n');
    text += &ranks(&bsp.by_rank);
    text.push('\n');
    text += &costs(bsp);
    text += &anomalies(&bsp.anomalies, bsp.phases);
    text
}

/// Phases that took too long: culprits, and the longest.
pub fn anomalies(anomalies: &Anomalies, phases: u64) -> String {
    let percent = 100.0 * anomalies.count as f64 / phases.max(1) as f64;
    let mut text = format!(
        "\n{} of {phases} phases ({percent:.2} %) took more than {}, where {} is usual; what held {} of them is known\n",
        anomalies.count,
        time(anomalies.threshold_ns as f64),
        time(anomalies.typical_ns as f64),
        anomalies.explained
    );
    if anomalies.count == 0 {
        return text;
    }
    let row = |row: &SourceRow| {
        let each = row.excess_ns as f64 / row.count.max(1) as f64;
        let excess = [time(row.excess_ns as f64), format!("{:.1} %", row.percent), time(each)];
        [one_line(&row.source), row.count.to_string()].into_iter().chain(excess).collect()
    };
    let rows = anomalies.by_source.iter().take(MOST_SOURCES).map(row);
    text += &table(&["culprit", "phases", "excess", "of all", "of each"], rows);
    text.push('\n');
    let mut longest: Vec<&Anomaly> = anomalies.listed.iter().collect();
    longest.sort_by_key(|anomaly| std::cmp::Reverse(anomaly.excess_ns));
    let row = |anomaly: &&Anomaly| {
        let by = anomaly.culprit.as_ref();
        let came = if anomaly.came_late { "came late" } else { "held within" };
        vec![
            anomaly.phase.to_string(),
            format!("rank {} on CPU {} {came}", anomaly.rank, anomaly.cpu),
            by.map_or_else(|| "nothing that the kernel saw".into(), |culprit| one_line(&culprit.source)),
            time(anomaly.total_ns as f64),
            time(anomaly.excess_ns as f64),
            by.map_or_else(String::new, |culprit| time(culprit.taken_ns as f64)),
        ]
    };
    let header = ["the longest", "who", "held by", "took", "too long by", "of it taken"];
    text + &table_with_words(3, &header, longest.iter().take(MOST_LISTED).map(row))
}

fn heading(run: &RunFacts, phases: u64) -> String {
    let mut facts = vec![
        format!("bench {}", run.bench),
        run.mpi.clone(),
        format!("{} ranks", run.ranks),
        format!("{phases} phases"),
    ];
    if run.quantum_ns > 0 {
        facts.push(format!("quantum {}", time(run.quantum_ns as f64)));
    }
    facts.push(match run.operation.as_str() {
        "none" => "no operation".into(),
        op => format!("{op} of {} bytes", run.bytes),
    });
    let mut text = facts.iter().map(|fact| one_line(fact)).collect::<Vec<_>>().join(" · ") + "\n";
    if run.state != "complete" {
        text += &format!("state: {}\n", run.state);
    }
    text.extend(run.errors.iter().map(|error| format!("error: {}\n", one_line(error))));
    text
}

fn spread(name: &str, times: &Spread) -> Vec<String> {
    let at = |ns: u64| time(ns as f64);
    vec![
        name.to_owned(),
        at(times.min_ns),
        at(times.quiet_ns),
        at(times.p50_ns),
        time(times.mean_ns),
        at(times.p99_ns),
        at(times.p99_9_ns),
        at(times.max_ns),
    ]
}

fn ranks(ranks: &[RankRow]) -> String {
    let phases = ranks.iter().map(|row| row.last).sum::<u64>().max(1);
    let row = |row: &RankRow| {
        vec![
            row.rank.to_string(),
            one_line(&row.host),
            row.cpus.clone(),
            time(row.compute.quiet_ns as f64),
            time(row.compute.mean_ns),
            time(row.compute.max_ns as f64),
            format!("{:.2} %", row.slowdown_percent),
            format!("{:.1} %", 100.0 * row.last as f64 / phases as f64),
        ]
    };
    let mut text = table(
        &["rank", "host", "CPU", "quiet qt", "mean qt", "max qt", "slowdown", "last"],
        ranks.iter().take(MOST_RANKS).map(row),
    );
    if ranks.len() > MOST_RANKS {
        text += &format!("and {} more ranks (--json has them all)\n", ranks.len() - MOST_RANKS);
    }
    text
}

fn costs(bsp: &Bsp) -> String {
    let interval = |ends: Option<[f64; 2]>, unit: &dyn Fn(f64) -> String| {
        ends.map_or_else(String::new, |[low, high]| format!(" ({} to {})", unit(low), unit(high)))
    };
    let percent = |value: f64| format!("{value:.2} %");
    let line = |name: &str, slowdown: &Slowdown| {
        format!(
            "{name:34}{}{}: the slowest rank takes {} in the mean, {} without noise\n",
            percent(slowdown.percent),
            interval(slowdown.ci95_percent, &percent),
            time(slowdown.mean_max_ns),
            time(slowdown.base_ns)
        )
    };
    let mut text = String::new();
    text.extend(bsp.compute_slowdown.iter().map(|slowdown| line("slowdown of the compute part", slowdown)));
    text.extend(bsp.total_slowdown.iter().map(|slowdown| line("slowdown of whole phases", slowdown)));
    if let Some(predicted) = &bsp.predicted {
        let verdict = match predicted.inside {
            Some(true) => ", inside the interval",
            Some(false) => ", outside the interval",
            None => "",
        };
        let names: Vec<String> = predicted.from.iter().map(|name| one_line(name)).collect();
        text += &format!(
            "{:34}{}{}: the measured mean is {:+.2} % off the predicted {}{verdict} (from {})\n",
            "predicted",
            percent(predicted.slowdown_percent),
            interval(predicted.ci95_percent, &percent),
            predicted.difference_percent,
            time(predicted.mean_phase_ns),
            names.join(", ")
        );
    }
    text
}
