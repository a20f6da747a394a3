//! Benchmarks under MPI as text for a terminal.

use quell_analysis::bench::allreduce::{Allreduce, AllreduceRun, Fit, FitPoint, TimeLine};
use quell_analysis::bench::anomalies::{Anomalies, Anomaly, SourceRow};
use quell_analysis::bench::bsp::{Bsp, RankRow, Slowdown};
use quell_analysis::bench::halo::{Halo, LayoutRow};
use quell_analysis::bench::job::RunFacts;
use quell_analysis::bench::jones::{Estimates, TickRow};
use quell_analysis::bench::spread::Spread;

use super::plots;
use super::table::{table, table_with_words, time};
use super::warnings;
use crate::printer::{one_line, width};

/// Up to so many ranks get a row each.
const MOST_RANKS: usize = 32;
/// Culprits, and single phases, that get a row.
const MOST_SOURCES: usize = 12;
const MOST_LISTED: usize = 8;

/// The Parallel Benchmark: times, what noise cost, the prediction beside it.
pub fn bsp(bsp: &Bsp) -> String {
    let mut text = heading(&bsp.run, bsp.phases);
    text += &warnings::lines(&bsp.warnings);
    text.push('\n');
    let mut rows = vec![spread("compute (qt)", &bsp.compute)];
    if bsp.run.operation != "none" {
        rows.push(spread(&format!("{} (bt)", bsp.run.operation), &bsp.wait));
        rows.push(spread("both (qtb)", &bsp.total));
    }
    text += &table(&["all ranks", "min", "quiet", "p50", "mean", "p99", "p99.9", "max"], rows.into_iter());
    text.push('\n');
    text += &ranks(&bsp.by_rank);
    text += &format!("taking the time adds {} to a phase\n", time(bsp.timing_ns));
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
        let excess = [
            time(row.excess_ns as f64),
            format!("{:.1} %", row.percent),
            time(each),
            time(row.taken_ns as f64),
        ];
        [one_line(&row.source), row.count.to_string()].into_iter().chain(excess).collect()
    };
    let rows = anomalies.by_source.iter().take(MOST_SOURCES).map(row);
    text += &table(&["culprit, mostly", "phases", "too long by", "of all", "each", "it took itself"], rows);
    text.push('\n');
    let mut longest: Vec<&Anomaly> = anomalies.listed.iter().collect();
    longest.sort_by_key(|anomaly| std::cmp::Reverse(anomaly.excess_ns));
    let row = |anomaly: &&Anomaly| {
        let by = anomaly.culprit.as_ref();
        let came = if anomaly.came_late { "came late" } else { "held within" };
        vec![
            anomaly.phase.to_string(),
            format!("rank {} on CPU {} {came}", anomaly.rank, anomaly.cpu),
            by.map_or_else(|| "mostly unknown".into(), |culprit| one_line(&culprit.source)),
            time(anomaly.total_ns as f64),
            time(anomaly.excess_ns as f64),
            time(anomaly.explained_ns as f64),
        ]
    };
    let header = ["the longest", "who", "held by", "took", "too long by", "of it known"];
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

/// Allreduces: how long, by number of ranks, what made them slow, and what that can cost.
pub fn allreduce(all: &Allreduce) -> String {
    let runs: Vec<String> = all.runs.iter().map(allreduce_run).collect();
    runs.join("\n") + &all.fit.as_ref().map_or_else(String::new, fit)
}

fn allreduce_run(run: &AllreduceRun) -> String {
    let mut text = heading(&run.run, run.operations);
    text += &warnings::lines(&run.warnings);
    if run.clock_error_ns > 0 {
        text += &format!("clocks of the hosts are known to {}\n", time(run.clock_error_ns as f64));
    }
    text.push('\n');
    let rows = [spread("allreduce, all ranks", &run.times), spread("longest of all ranks", &run.longest)];
    text += &table(&["", "min", "quiet", "p50", "mean", "p99", "p99.9", "max"], rows.into_iter());
    text.push('\n');
    let edges = run.histogram.edges_ns.windows(2).zip(&run.histogram.counts);
    let bars: Vec<(String, u64)> =
        edges.map(|(edge, &count)| (format!("{:>8} – {:>8}", time(edge[0]), time(edge[1])), count)).collect();
    text += &plots::bars("The longest of all ranks, each operation (bars on a log scale)", width(), &bars);
    text += &anomalies(&run.anomalies, run.operations);
    text.extend(run.time_lines.iter().take(2).map(time_line));
    text + &run.estimates.as_ref().map_or_else(String::new, |found| estimates(found, run))
}

/// Columns of a time line.
const COLUMNS: u64 = 64;

/// One operation, a row a rank: work, waiting, and where the culprit was.
fn time_line(line: &TimeLine) -> String {
    let begin = line.ranks.iter().map(|rank| rank.start_ns).min().unwrap_or(0);
    let end = line.ranks.iter().map(|rank| rank.end_ns).max().unwrap_or(0).max(begin + 1);
    let column =
        |at: u64| (at.clamp(begin, end) - begin) as u128 * u128::from(COLUMNS) / u128::from(end - begin);
    // Where in its window the hypervisor took the CPU is not known.
    let known = line.culprit.as_ref().filter(|culprit| culprit.source != "steal");
    let held = known.map(|culprit| {
        let from = culprit.interval_start_ns;
        (column(from), column(from.saturating_add(culprit.taken_ns)))
    });
    let mut text = format!(
        "\noperation {}, {} from end to end ({} work, {} in the operation, {} held)\n",
        line.phase,
        time((end - begin) as f64),
        '─',
        '·',
        '█'
    );
    for rank in &line.ranks {
        let (start, computed, stop) = (column(rank.start_ns), column(rank.computed_ns), column(rank.end_ns));
        let mark = |at: u128| match held {
            Some((from, to)) if rank.rank == line.late && (from..to.max(from + 1)).contains(&at) => '█',
            _ if at < start || at > stop => ' ',
            _ if at < computed => '─',
            _ => '·',
        };
        let marks: String = (0..u128::from(COLUMNS)).map(mark).collect();
        let by = line.culprit.as_ref().filter(|_| rank.rank == line.late);
        let by = by.map_or_else(String::new, |culprit| format!("  {}", one_line(&culprit.source)));
        text += &format!("  rank {:<5} {}{by}\n", rank.rank, marks.trim_end());
    }
    text
}

fn estimates(found: &Estimates, run: &AllreduceRun) -> String {
    let mut text = format!(
        "\nThe system took {:.3} % of these CPUs, and was at work on one at least for {:.3} % of the time.\n",
        found.os_percent, found.os_any_percent
    );
    if let (Some(alone), Some(together), Some(overlap)) =
        (found.bound_without_overlap, found.bound_with_overlap, found.overlap)
    {
        text += &format!(
            "Amdahl's bound on the speed-up: {alone:.0} if no two CPUs are ever struck together, {together:.0} with the overlap that was seen \
             ({overlap:.2} CPUs at a time)\n"
        );
    }
    if let Some(ticks) = found.ticks_in_mean {
        text += &format!(
            "{ticks:.2} ticks of {} one after another would make the usual operation ({}) as long as the mean one ({})\n",
            time(found.tick_ns),
            time(run.longest.p50_ns as f64),
            time(run.longest.mean_ns)
        );
    }
    if found.ticks.is_empty() {
        return text;
    }
    let row = |row: &TickRow| {
        vec![
            one_line(&row.host),
            row.cpu.to_string(),
            row.count.to_string(),
            time(row.period_ns as f64),
            time(row.mean_ns),
            signed(row.stagger_ns as f64),
        ]
    };
    let header = ["host", "CPU", "ticks", "every", "mean", "after the first's"];
    text + &table(&header, found.ticks.iter().take(MOST_RANKS).map(row))
}

/// A time that may be below zero.
fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", time(-ns)) } else { time(ns) }
}

fn fit(fit: &Fit) -> String {
    let mut text =
        format!("\nfit of the usual times: {} + {} · log2 P\n", signed(fit.a_ns), signed(fit.b_ns));
    let row = |point: &FitPoint| {
        vec![
            point.ranks.to_string(),
            time(point.typical_ns as f64),
            signed(point.fitted_ns),
            time(point.mean_ns),
            format!("{:+.1} %", point.excess_percent),
        ]
    };
    text += &table(&["ranks", "usual", "fit", "mean", "mean over fit"], fit.points.iter().map(row));
    text
}

/// The exchange on a grid, one row a layout.
pub fn halo(halo: &Halo) -> String {
    let run = halo.layouts.first().map(|layout| layout.run.clone()).unwrap_or_default();
    let exchanges = halo.layouts.iter().map(|layout| layout.times.count).sum();
    let mut text = heading(&run, exchanges);
    text += &warnings::lines(&halo.warnings);
    text += &format!("grid of {} dimensions\n\n", halo.dims);
    let row = |layout: &LayoutRow| {
        let (least, most) = layout
            .means_ns
            .iter()
            .fold((f64::MAX, 0.0), |(least, most), &mean| (f64::min(least, mean), f64::max(most, mean)));
        vec![
            format!("{} ranks, {} a node", layout.run.ranks, layout.per_node),
            layout.rounds.to_string(),
            time(layout.times.min_ns as f64),
            time(layout.times.mean_ns),
            time(layout.times.max_ns as f64),
            time(layout.times.sigma_ns),
            format!("{} to {}", time(least), time(most)),
        ]
    };
    let header = ["layout", "runs", "min", "mean", "max", "σ", "means of runs"];
    text += &table(&header, halo.layouts.iter().map(row));
    if let Some(ratios) = halo.full_over_left {
        text += &format!(
            "\nfull nodes over the others: min {:.2}, mean {:.2}, max {:.2}, σ {:.2}\n",
            ratios.min, ratios.mean, ratios.max, ratios.sigma
        );
    }
    for layout in &halo.layouts {
        let phases = layout.anomalies.listed.last().map_or(0, |last| last.phase + 1);
        let phases =
            phases.max(layout.times.count / u64::from(layout.run.ranks.max(1) * layout.rounds.max(1)));
        text += &format!("\n{} ranks, the last run:", layout.run.ranks);
        text += &anomalies(&layout.anomalies, phases);
    }
    text
}
