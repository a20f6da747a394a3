//! Renders the fixed work quantum benchmark as text for a terminal.

use quell_analysis::bench::fwq::{Fwq, RankQuanta, Spike};
use quell_recording::columns::Columns;

use super::plots;
use super::rows::rows;
use super::table::time;
use super::warnings;
use crate::printer::width;

/// Maximum number of ranks with a row; of more ranks, the noisiest.
const MOST_RANKS: usize = 16;
/// Maximum number of spikes to show, the longest first.
const MOST_SPIKES: usize = 10;
/// Maximum number of sources to show.
const MOST_SOURCES: usize = 10;

/// The noise overhead, a row per rank, the distribution of quanta, and the sources of spikes.
pub fn fwq(fwq: &Fwq) -> String {
    let mut text = heading(fwq);
    text += &warnings::lines(&fwq.warnings);
    if fwq.histogram.is_empty() {
        return text + "\nThere are no quanta.\n";
    }
    text.push('\n');
    text += &format!("Times are above the quantum of {}.\n", time(fwq.quantum_ns as f64));
    text += &ranks(fwq);
    text.push('\n');
    text += &histogram(fwq);
    text + &spikes(fwq)
}

fn heading(fwq: &Fwq) -> String {
    let known = if fwq.quantum_is_shortest { " (the shortest of all: none was given)" } else { "" };
    let quantum = time(fwq.quantum_ns as f64);
    let mut text =
        format!("fixed work quanta · {} · quantum {quantum}{known}\n", count(fwq.ranks.len() as u64, "rank"));
    if let Some(percent) = fwq.mean_slowdown_percent {
        text += &format!(
            "mean slowdown {percent:.3} %: mean excess over the quantum of the slowest rank of each of {}\n",
            count(fwq.iterations, "iteration")
        );
    }
    text
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn ranks(fwq: &Fwq) -> String {
    let mut shown: Vec<&RankQuanta> = fwq.ranks.iter().collect();
    shown.sort_by(|a, b| b.overhead_percent.total_cmp(&a.overhead_percent).then(a.rank.cmp(&b.rank)));
    shown.truncate(MOST_RANKS);
    shown.sort_by_key(|rank| rank.rank);
    let lines = shown.into_iter().map(|rank| RankLine::new(rank, fwq.quantum_ns));
    let mut text = rows(&lines.collect::<Vec<_>>());
    if fwq.ranks.len() > MOST_RANKS {
        text += &format!("the {MOST_RANKS} noisiest of {} ranks; --json has all\n", fwq.ranks.len());
    }
    text
}

/// A row for a rank. Times are excesses over the quantum: a quantum that is only slightly longer would not differ in four digits.
#[derive(Debug, Columns)]
struct RankLine {
    #[column(id)]
    rank: u32,
    #[column(title = "noise %", precision = 4)]
    overhead_percent: f64,
    #[column]
    quanta: u64,
    #[column(title = "min")]
    min_ns: i64,
    #[column(title = "p10")]
    p10_ns: i64,
    #[column(title = "p50")]
    p50_ns: i64,
    #[column(title = "mean")]
    mean_ns: i64,
    #[column(title = "p99")]
    p99_ns: i64,
    #[column(title = "p99.9")]
    p99_9_ns: i64,
    #[column(title = "max")]
    max_ns: i64,
    #[column(title = "σ")]
    stddev_ns: f64,
    #[column]
    spikes: u64,
}

impl RankLine {
    fn new(rank: &RankQuanta, quantum_ns: u64) -> Self {
        let above = |ns: u64| ns.cast_signed().saturating_sub_unsigned(quantum_ns);
        Self {
            rank: rank.rank,
            overhead_percent: rank.overhead_percent,
            quanta: rank.quanta,
            min_ns: above(rank.min_ns),
            p10_ns: above(rank.p10_ns),
            p50_ns: above(rank.p50_ns),
            mean_ns: above(rank.mean_ns.round() as u64),
            p99_ns: above(rank.p99_ns),
            p99_9_ns: above(rank.p99_9_ns),
            max_ns: above(rank.max_ns),
            stddev_ns: rank.stddev_ns.round(),
            spikes: rank.spikes,
        }
    }
}

/// A histogram of quanta by their excess over the noise-free quantum, in steps of 1, 2 and 5.
fn histogram(fwq: &Fwq) -> String {
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for bin in &fwq.histogram {
        let edge = edge_below(bin.from_ns.saturating_sub(fwq.quantum_ns));
        match rows.last_mut() {
            Some(last) if last.0 == edge => last.1 += bin.count,
            _ => rows.push((edge, bin.count)),
        }
    }
    let label = |edge: u64| match edge {
        0 => format!("up to {:>5}", time(1e3)),
        edge => format!("from {:>6}", time(edge as f64)),
    };
    let bars: Vec<(String, u64)> = rows.into_iter().map(|(edge, count)| (label(edge), count)).collect();
    let title =
        format!("Excess of quanta over {}, all ranks (bars on a log scale)", time(fwq.quantum_ns as f64));
    plots::bars(&title, width(), &bars)
}

/// The largest of 1, 2, 5, 10, 20, 50 us and so on that is not above `ns`; 0 below 1 us.
fn edge_below(ns: u64) -> u64 {
    let Some(decade) = ns.checked_ilog10().filter(|decade| *decade >= 3) else { return 0 };
    let one = 10u64.pow(decade);
    let step = match ns / one {
        1 => 1,
        2..=4 => 2,
        _ => 5,
    };
    step * one
}

fn spikes(fwq: &Fwq) -> String {
    if fwq.spikes_total == 0 {
        return "\nNo quantum was much longer than the typical ones.\n".into();
    }
    let mut text = format!(
        "\n{}: {} above the quantum in all",
        count(fwq.spikes_total, "spike"),
        time(fwq.spikes_excess_ns as f64)
    );
    text += &match fwq.spikes_explained_ns {
        Some(ns) => format!(", {} of it explained\n", time(ns as f64)),
        None => "; the sources are unknown, because the kernel was not recorded\n".into(),
    };
    if !fwq.spike_sources.is_empty() {
        text += &rows(fwq.spike_sources.iter().take(MOST_SOURCES));
    }
    if !fwq.spikes.is_empty() {
        text.push('\n');
        text += &rows(&fwq.spikes.iter().take(MOST_SPIKES).map(SpikeRow::new).collect::<Vec<_>>());
    }
    text
}

/// A quantum that took too long.
#[derive(Debug, Columns)]
struct SpikeRow<'a> {
    #[column(title = "longest, mostly", name)]
    taker: Option<&'a str>,
    #[column(id)]
    rank: u32,
    #[column(title = "CPU", id)]
    cpu: u32,
    #[column(id)]
    iteration: u64,
    #[column(number)]
    at: String,
    #[column(title = "took")]
    compute_ns: u64,
    #[column(title = "above")]
    excess_ns: u64,
    #[column]
    explained_ns: Option<u64>,
}

impl<'a> SpikeRow<'a> {
    fn new(spike: &'a Spike) -> Self {
        Self {
            taker: spike.takers.first().map(|taker| taker.source.as_str()),
            rank: spike.rank,
            cpu: spike.cpu,
            iteration: spike.iteration,
            at: spike.start_unix_ns.map_or_else(|| time(spike.start_ns as f64), time_of_day),
            compute_ns: spike.compute_ns,
            excess_ns: spike.excess_ns,
            explained_ns: spike.explained_ns,
        }
    }
}

/// `HH:MM:SS.mmm UTC`, as in logs.
fn time_of_day(unix_ns: u64) -> String {
    let ms = unix_ns / 1_000_000 % 86_400_000;
    let (s, ms) = (ms / 1_000, ms % 1_000);
    format!("{:02}:{:02}:{:02}.{ms:03} UTC", s / 3_600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use quell_analysis::bench::fwq::{RankSide, analyse};
    use quell_recording::{Cpu, Interval, Intervals, Nanos, Phase, Source};

    const HOSTILE: &str = "\u{1b}]0;owned\u{7}";

    fn phases(rank: u32) -> Vec<(Cpu, Phase)> {
        let mut at = 0;
        let phase = |index: u64| {
            let late = if index % 250 == 7 { 80_000 * u64::from(rank + 1) } else { (index * 7919) % 900 };
            let [start, compute] = [at, 1_000_000 + late].map(Nanos::from_nanos);
            at += 1_000_000 + late;
            (Cpu(rank), Phase { rank, index, start, work: 1, compute, wait: Nanos::ZERO })
        };
        (0..1_000).map(phase).collect()
    }

    /// Of a rank's first two spikes, one is caused by a task alone, the other in part by the tick.
    fn intervals(rank: u32) -> Intervals {
        let phases = phases(rank);
        let interval = |(source, index, length): (Source, usize, u64)| {
            let (start, duration) = (phases[index].1.start, Nanos::from_nanos(length));
            Interval { start, duration, net: duration, source, pid: 3, victim: 0, detail: None, cause: None }
        };
        let rows = [(Source::Task(HOSTILE.into()), 7, 160_000), (Source::Tick, 257, 60_000)];
        Intervals { cpu: Cpu(rank), intervals: rows.map(interval).to_vec() }
    }

    fn document(ranks: u32, sources: bool) -> Fwq {
        let rows: Vec<_> = (0..ranks).map(phases).collect();
        let node: Vec<_> = (0..ranks).filter(|_| sources).map(intervals).collect();
        let side = |(rank, phases)| RankSide {
            rank,
            host: None,
            pid: 9,
            zero_unix_ns: Some(1_700_000_000_000_000_000),
            ordered: true,
            phases,
            intervals: &node,
        };
        let sides: Vec<RankSide<'_>> = (0..ranks).zip(rows.iter().map(Vec::as_slice)).map(side).collect();
        analyse(&sides, Some(1_000_000))
    }

    #[test]
    fn what_it_cost_and_who_made_the_spikes() {
        let text = fwq(&document(2, true));
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_snapshot!(text);
    }

    #[test]
    fn of_many_ranks_the_noisiest_are_shown_and_unknown_sources_are_reported() {
        let text = fwq(&document(20, false));
        assert!(text.contains("the 16 noisiest of 20 ranks") && text.contains("are unknown"), "{text}");
        let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
        assert_eq!(text.lines().nth(6).and_then(first), Some("4".into()), "{text}");
        assert!(fwq(&analyse(&[], None)).contains("There are no quanta"));
    }

    #[test]
    fn edges_go_in_steps_of_1_2_5() {
        let edges = [0, 999, 1_000, 1_999, 4_999, 5_000, 99_999, 200_000].map(edge_below);
        assert_eq!(edges, [0, 0, 1_000, 1_000, 2_000, 5_000, 50_000, 200_000]);
        assert_eq!(edge_below(u64::MAX), 10_000_000_000_000_000_000);
        assert_eq!(time_of_day(1_700_000_000_123_000_000), "22:13:20.123 UTC");
    }
}
