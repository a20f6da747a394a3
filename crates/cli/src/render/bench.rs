//! Renders benchmarks under MPI as text for a terminal.

use quell_analysis::bench::allreduce::{Allreduce, AllreduceRun, Fit, TimeLine};
use quell_analysis::bench::anomalies::{Anomalies, Anomaly, SourceRow};
use quell_analysis::bench::bsp::{Bsp, RankRow, Slowdown};
use quell_analysis::bench::halo::{Halo, LayoutRow};
use quell_analysis::bench::job::RunFacts;
use quell_analysis::bench::jones::Estimates;
use quell_analysis::bench::spread::Spread;
use quell_recording::columns::Columns;

use super::plots;
use super::rows::rows;
use super::table::time;
use super::warnings;
use crate::printer::{one_line, width};

/// Maximum number of ranks for which each rank has a row.
const MOST_RANKS: usize = 32;
/// Maximum number of rows for culprits, and for single phases.
const MOST_SOURCES: usize = 12;
const MOST_LISTED: usize = 8;

/// The times of all ranks in a benchmark with phases.
#[derive(Debug, Columns)]
struct AllRanks<'a> {
    #[column(title = "all ranks")]
    ranks: String,
    #[column(flatten)]
    spread: &'a Spread,
}

/// The Parallel Benchmark: times, what noise cost, and the prediction next to them.
pub fn bsp(bsp: &Bsp) -> String {
    let mut text = heading(&bsp.run, bsp.phases);
    text += &warnings::lines(&bsp.warnings);
    text.push('\n');
    let row = |ranks: String, spread| AllRanks { ranks, spread };
    let mut times = vec![row("compute (qt)".into(), &bsp.compute)];
    if bsp.run.operation != "none" {
        times.push(row(format!("{} (bt)", bsp.run.operation), &bsp.wait));
        times.push(row("both (qtb)".into(), &bsp.total));
    }
    text += &rows(&times);
    text.push('\n');
    text += &ranks(&bsp.by_rank);
    text += &format!("reading the clock adds {} to a phase\n", time(bsp.timing_ns));
    text.push('\n');
    text += &costs(bsp);
    text += &anomalies(&bsp.anomalies, bsp.phases);
    text
}

/// Anomalous phases: their culprits, and the longest ones.
pub fn anomalies(anomalies: &Anomalies, phases: u64) -> String {
    let percent = 100.0 * anomalies.count as f64 / phases.max(1) as f64;
    let mut text = format!(
        "\n{} of {phases} phases ({percent:.2} %) took more than {} (typical: {}); the cause of {} of them is known\n",
        anomalies.count,
        time(anomalies.threshold_ns as f64),
        time(anomalies.typical_ns as f64),
        anomalies.explained
    );
    if anomalies.count == 0 {
        return text;
    }
    let culprits = anomalies.by_source.iter().take(MOST_SOURCES).map(CulpritRow::new);
    text += &rows(&culprits.collect::<Vec<_>>());
    text.push('\n');
    let mut longest: Vec<&Anomaly> = anomalies.listed.iter().collect();
    longest.sort_by_key(|anomaly| std::cmp::Reverse(anomaly.excess_ns));
    longest.truncate(MOST_LISTED);
    text + &rows(&longest.into_iter().map(AnomalyRow::new).collect::<Vec<_>>())
}

/// What one source did to the anomalous phases.
#[derive(Debug, Columns)]
struct CulpritRow<'a> {
    #[column(title = "main source")]
    source: &'a str,
    #[column(title = "phases")]
    count: u64,
    #[column(title = "excess")]
    excess_ns: u64,
    #[column(title = "of all", percent, precision = 1, suffix = " %")]
    percent: f64,
    #[column]
    each_ns: f64,
    #[column(title = "source's time")]
    taken_ns: u64,
}

impl<'a> CulpritRow<'a> {
    fn new(row: &'a SourceRow) -> Self {
        let &SourceRow { ref source, count, excess_ns, percent, taken_ns } = row;
        Self { source, count, excess_ns, percent, each_ns: excess_ns as f64 / count.max(1) as f64, taken_ns }
    }
}

/// A phase that took longer than its threshold.
#[derive(Debug, Columns)]
struct AnomalyRow<'a> {
    #[column(title = "longest", id)]
    phase: u64,
    #[column]
    who: String,
    #[column(absent = "mostly unknown")]
    held_by: Option<&'a str>,
    #[column(title = "took")]
    total_ns: u64,
    #[column(title = "excess")]
    excess_ns: u64,
    #[column(title = "attributed")]
    explained_ns: u64,
}

impl<'a> AnomalyRow<'a> {
    fn new(anomaly: &'a Anomaly) -> Self {
        let came = if anomaly.came_late { "came late" } else { "held within" };
        Self {
            phase: anomaly.phase,
            who: format!("rank {} on CPU {} {came}", anomaly.rank, anomaly.cpu),
            held_by: anomaly.culprit.as_ref().map(|culprit| culprit.source.as_str()),
            total_ns: anomaly.total_ns,
            excess_ns: anomaly.excess_ns,
            explained_ns: anomaly.explained_ns,
        }
    }
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

/// A rank, and how often it was the last to finish.
#[derive(Debug, Columns)]
struct RankLine<'a> {
    #[column(flatten)]
    row: &'a RankRow,
    #[column(title = "last", precision = 1, suffix = " %")]
    last_percent: f64,
}

fn ranks(ranks: &[RankRow]) -> String {
    let phases = ranks.iter().map(|row| row.last).sum::<u64>().max(1);
    let shown = ranks.iter().take(MOST_RANKS);
    let lines: Vec<RankLine<'_>> =
        shown.map(|row| RankLine { row, last_percent: 100.0 * row.last as f64 / phases as f64 }).collect();
    let mut text = rows(&lines);
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
            "{name:34}{}{}: the slowest rank takes {} on average, {} without noise\n",
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

/// Allreduces: their times, by number of ranks, what made them slow, and what that can cost.
pub fn allreduce(all: &Allreduce) -> String {
    let runs: Vec<String> = all.runs.iter().map(allreduce_run).collect();
    runs.join("\n") + &all.fit.as_ref().map_or_else(String::new, fit)
}

/// The times of an allreduce.
#[derive(Debug, Columns)]
struct Times<'a> {
    #[column(title = "")]
    what: &'static str,
    #[column(flatten)]
    spread: &'a Spread,
}

fn allreduce_run(run: &AllreduceRun) -> String {
    let mut text = heading(&run.run, run.operations);
    text += &warnings::lines(&run.warnings);
    if run.clock_error_ns > 0 {
        text +=
            &format!("clock offsets of the hosts are known to within {}\n", time(run.clock_error_ns as f64));
    }
    text.push('\n');
    let row = |what, spread| Times { what, spread };
    text += &rows(&[row("allreduce, all ranks", &run.times), row("longest of all ranks", &run.longest)]);
    text.push('\n');
    let edges = run.histogram.edges_ns.windows(2).zip(&run.histogram.counts);
    let bars: Vec<(String, u64)> =
        edges.map(|(edge, &count)| (format!("{:>8} – {:>8}", time(edge[0]), time(edge[1])), count)).collect();
    text += &plots::bars("The longest of all ranks, each operation (bars on a log scale)", width(), &bars);
    text += &anomalies(&run.anomalies, run.operations);
    text.extend(run.time_lines.iter().take(2).map(time_line));
    text + &run.estimates.as_ref().map_or_else(String::new, |found| estimates(found, run))
}

/// Width of a timeline in columns.
const COLUMNS: u64 = 64;

/// One operation, a row per rank: work, waiting, and where the culprit ran.
fn time_line(line: &TimeLine) -> String {
    let begin = line.ranks.iter().map(|rank| rank.start_ns).min().unwrap_or(0);
    let end = line.ranks.iter().map(|rank| rank.end_ns).max().unwrap_or(0).max(begin + 1);
    let column =
        |at: u64| (at.clamp(begin, end) - begin) as u128 * u128::from(COLUMNS) / u128::from(end - begin);
    // For steal, only the window is known, not when in it the hypervisor took the CPU.
    let known = line.culprit.as_ref().filter(|culprit| culprit.source != "steal");
    let held = known.map(|culprit| {
        let from = culprit.interval_start_ns;
        (column(from), column(from.saturating_add(culprit.taken_ns)))
    });
    let mut text = format!(
        "\noperation {}, {} from end to end ({} work, {} in the operation, {} of delay)\n",
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
        "\nThe system took {:.3} % of these CPUs. At least one CPU was interrupted for {:.3} % of the time.\n",
        found.os_percent, found.os_any_percent
    );
    if let (Some(alone), Some(together), Some(overlap)) =
        (found.bound_without_overlap, found.bound_with_overlap, found.overlap)
    {
        text += &format!(
            "Amdahl's bound on the speed-up: {alone:.0} if no two CPUs are interrupted at the same time, {together:.0} with the observed overlap \
             ({overlap:.2} CPUs at a time)\n"
        );
    }
    if let Some(ticks) = found.ticks_in_mean {
        text += &format!(
            "{ticks:.2} ticks of {} in a row would make the typical operation ({}) as long as the mean one ({})\n",
            time(found.tick_ns),
            time(run.longest.p50_ns as f64),
            time(run.longest.mean_ns)
        );
    }
    if found.ticks.is_empty() {
        return text;
    }
    text + &rows(found.ticks.iter().take(MOST_RANKS))
}

/// Formats a time that may be negative.
fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", time(-ns)) } else { time(ns) }
}

fn fit(fit: &Fit) -> String {
    let mut text =
        format!("\nfit of the typical times: {} + {} · log2 P\n", signed(fit.a_ns), signed(fit.b_ns));
    text += &rows(&fit.points);
    text
}

/// A layout of ranks on nodes.
#[derive(Debug, Columns)]
struct LayoutLine {
    #[column]
    layout: String,
    #[column(title = "runs")]
    rounds: u32,
    #[column(title = "min")]
    min_ns: u64,
    #[column(title = "mean")]
    mean_ns: f64,
    #[column(title = "max")]
    max_ns: u64,
    #[column(title = "σ")]
    sigma_ns: f64,
    #[column(title = "means of runs", number)]
    means: String,
}

impl LayoutLine {
    fn new(layout: &LayoutRow) -> Self {
        let least = layout.means_ns.iter().copied().fold(f64::MAX, f64::min);
        let most = layout.means_ns.iter().copied().fold(0.0, f64::max);
        Self {
            layout: format!("{} ranks, {} a node", layout.run.ranks, layout.per_node),
            rounds: layout.rounds,
            min_ns: layout.times.min_ns,
            mean_ns: layout.times.mean_ns,
            max_ns: layout.times.max_ns,
            sigma_ns: layout.times.sigma_ns,
            means: format!("{} to {}", time(least), time(most)),
        }
    }
}

/// The halo exchange, one row per layout.
pub fn halo(halo: &Halo) -> String {
    let run = halo.layouts.first().map(|layout| layout.run.clone()).unwrap_or_default();
    let exchanges = halo.layouts.iter().map(|layout| layout.times.count).sum();
    let mut text = heading(&run, exchanges);
    text += &warnings::lines(&halo.warnings);
    text += &format!("grid of {} dimensions\n\n", halo.dims);
    text += &rows(&halo.layouts.iter().map(LayoutLine::new).collect::<Vec<_>>());
    if let Some(ratios) = halo.full_over_left {
        text += &format!(
            "\nfull nodes relative to the others: min {:.2}, mean {:.2}, max {:.2}, σ {:.2}\n",
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
