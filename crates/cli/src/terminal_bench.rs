//! Benchmarks under MPI as text for a terminal.

use quell_analysis::bench::bsp::{Bsp, RankRow, Slowdown};
use quell_analysis::bench::job::RunFacts;
use quell_analysis::bench::spread::Spread;

use crate::printer::one_line;
use crate::terminal::{table, time};

/// Up to so many ranks get a row each.
const MOST_RANKS: usize = 32;

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
    text
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
