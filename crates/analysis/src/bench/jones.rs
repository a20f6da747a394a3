//! Jones et al.'s estimates ("Impact of Operating System Interference on Parallel Application Scalability", LLNL): from the time that the
//! kernel took on the ranks' CPUs to its possible cost for a synchronising operation.

use std::collections::BTreeSet;

use quell_recording::columns::{Columns, describe};
use quell_recording::{Cpu, Interval, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::culprit::Busy;
use super::job::{HostRun, Job};
use crate::stats::{mean, median_high};
use crate::time_range::TimeRange;

/// Estimates from the kernel's intervals, over all operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimates {
    /// The timer ticks on the ranks' CPUs, one entry per CPU.
    pub ticks: Vec<TickRow>,
    /// Mean net time of a tick, in ns; 0 if there are none.
    pub tick_ns: f64,
    /// §4.4.1: the number of consecutive ticks that would make the median operation as long as the mean one.
    pub ticks_in_mean: Option<f64>,
    /// The share of the ranks' CPU time that the operating system and its other tasks took, in percent (Table 3 lists the rest).
    pub os_percent: f64,
    /// The share of time in which the operating system worked on at least one CPU of a host, in percent; the mean over hosts.
    pub os_any_percent: f64,
    /// §4.4: Amdahl's bound on the speed-up if the interference of no two CPUs overlaps: 1 over the OS share.
    pub bound_without_overlap: Option<f64>,
    /// The same bound with the measured overlap: that bound times [`Self::overlap`].
    pub bound_with_overlap: Option<f64>,
    /// The OS's time on all CPUs over the time in which it worked on any: 1 without overlap, the number of CPUs if all
    /// are always struck together.
    pub overlap: Option<f64>,
}

/// The timer tick of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TickRow {
    /// The host.
    #[column]
    pub host: String,
    /// The CPU.
    #[column(title = "CPU", id)]
    pub cpu: u32,
    /// Number of ticks while the benchmark ran.
    #[column(title = "ticks")]
    pub count: u64,
    /// Median time from one tick to the next, in ns.
    #[column(title = "every")]
    pub period_ns: u64,
    /// Mean net time, in ns.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// The stagger: delay of its ticks after those of the first of these CPUs, in ns; negative if earlier. The median over its ticks.
    #[column(title = "after first CPU's")]
    pub stagger_ns: i64,
}

/// Estimates from the kernel's intervals while the benchmark ran; `None` if none were recorded. `typical_ns` is the median operation,
/// `mean_ns` the mean one.
pub fn estimates(job: &Job, hosts: &[HostRun], typical_ns: f64, mean_ns: f64) -> Option<Estimates> {
    let (begin, end) = job.span()?;
    let mut ticks: Vec<TickRow> = Vec::new();
    let (mut taken, mut any, mut watched, mut hosts_time) = (0u64, 0u64, 0u64, 0u64);
    for (index, host) in hosts.iter().enumerate() {
        let ranks: Vec<usize> = (0..job.ranks.len()).filter(|&r| job.ranks[r].host == index).collect();
        let Some(&first) = ranks.first() else { continue };
        let span = TimeRange { start: job.on_host(first, begin), end: job.on_host(first, end) };
        let pids: Vec<u32> = ranks.iter().map(|&r| job.ranks[r].pid).collect();
        let cpus: BTreeSet<Cpu> =
            ranks.iter().flat_map(|&r| job.cells_of_rank(r).map(|cell| cell.cpu)).collect();
        let sides = host.recording.intervals.iter().filter(|side| cpus.contains(&side.cpu));
        let sides: Vec<_> = sides.collect();
        let busy: Vec<Vec<TimeRange>> = sides
            .iter()
            .map(|side| Busy::from_intervals(side, &|pid| pids.contains(&pid)).time_ranges(span))
            .collect();
        watched = watched.saturating_add(span.length().saturating_mul(busy.len() as u64));
        hosts_time = hosts_time.saturating_add(if busy.is_empty() { 0 } else { span.length() });
        taken = busy.iter().fold(taken, |sum, time_ranges| sum.saturating_add(length(time_ranges)));
        any = any.saturating_add(length(&union(busy)));
        let per_cpu = sides.iter().map(|side| (side.cpu, ticks_in(&side.intervals, span)));
        let per_cpu: Vec<_> = per_cpu.filter(|(_, ticks)| !ticks.is_empty()).collect();
        let first = per_cpu.first().map(|(_, ticks)| ticks.clone()).unwrap_or_default();
        ticks.extend(per_cpu.iter().map(|(cpu, ticks)| tick_row(&host.name(), *cpu, ticks, &first)));
    }
    if watched == 0 {
        return None;
    }
    let count = ticks.iter().map(|row| row.count).sum::<u64>();
    let tick_ns = ticks.iter().map(|row| row.mean_ns * row.count as f64).sum::<f64>() / count.max(1) as f64;
    let share = taken as f64 / watched as f64;
    let overlap = (any > 0).then(|| taken as f64 / any as f64);
    let bound = (share > 0.0).then(|| 1.0 / share);
    Some(Estimates {
        ticks,
        tick_ns,
        ticks_in_mean: (tick_ns > 0.0).then(|| (mean_ns - typical_ns).max(0.0) / tick_ns),
        os_percent: 100.0 * share,
        os_any_percent: 100.0 * any as f64 / hosts_time.max(1) as f64,
        bound_without_overlap: bound,
        bound_with_overlap: bound.zip(overlap).map(|(bound, overlap)| bound * overlap),
        overlap,
    })
}

fn length(time_ranges: &[TimeRange]) -> u64 {
    time_ranges.iter().fold(0, |sum, time_range| sum.saturating_add(time_range.length()))
}

fn ticks_in(intervals: &[Interval], span: TimeRange) -> Vec<&Interval> {
    let within = |one: &&Interval| {
        one.source == Source::Tick && (span.start..span.end).contains(&one.start.as_nanos())
    };
    intervals.iter().filter(within).collect()
}

fn tick_row(host: &str, cpu: Cpu, ticks: &[&Interval], first: &[&Interval]) -> TickRow {
    let starts: Vec<u64> = ticks.iter().map(|tick| tick.start.as_nanos()).collect();
    let mut periods: Vec<u64> = starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let references: Vec<u64> = first.iter().map(|tick| tick.start.as_nanos()).collect();
    let late = |&start: &u64| {
        let after = references.partition_point(|&reference| reference <= start);
        let near = [after.checked_sub(1), Some(after)].into_iter().flatten();
        let late = near.filter_map(|at| references.get(at)).map(|&one| start as i64 - one as i64);
        late.min_by_key(|late| late.abs())
    };
    let mut late: Vec<i64> = starts.iter().filter_map(late).collect();
    TickRow {
        host: host.to_owned(),
        cpu: cpu.0,
        count: ticks.len() as u64,
        period_ns: median_high(&mut periods, u64::cmp).unwrap_or(0),
        stagger_ns: median_high(&mut late, i64::cmp).unwrap_or(0),
        mean_ns: mean(ticks.iter().map(|tick| tick.net.as_nanos() as f64)).unwrap_or(0.0),
    }
}

/// The ranges in which at least one CPU is busy.
fn union(sides: Vec<Vec<TimeRange>>) -> Vec<TimeRange> {
    let mut all: Vec<TimeRange> = sides.into_iter().flatten().collect();
    all.sort_unstable();
    let mut union: Vec<TimeRange> = Vec::new();
    for time_range in all {
        match union.last_mut() {
            Some(last) if last.end >= time_range.start => last.end = last.end.max(time_range.end),
            _ => union.push(time_range),
        }
    }
    union
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::super::fixture::{host, job_of, phase};
    use super::*;
    use crate::attribution::fixture::{task, tick};
    use quell_recording::Intervals;

    #[test]
    fn what_overlaps_is_counted_once() {
        let phases = vec![(0, phase(0, 0, 0, 1_000, 9_000)), (1, phase(1, 0, 0, 1_000, 9_000))];
        let cpu0 = vec![tick(1_000, 100), tick(5_000, 100)];
        let cpu1 = vec![tick(1_050, 100), tick(5_050, 100), task("daemon", 9, 8_000, 200)];
        let side = |cpu, intervals| Intervals { cpu: Cpu(cpu), intervals };
        let hosts = vec![host(&[(0, 70), (1, 71)], phases, vec![side(0, cpu0), side(1, cpu1)])];
        let found = estimates(&job_of(&hosts), &hosts, 500.0, 1_000.0).unwrap();
        assert_eq!(found.ticks.len(), 2);
        assert_eq!((found.ticks[1].stagger_ns, found.ticks[1].period_ns), (50, 4_000));
        assert_eq!((found.tick_ns, found.ticks_in_mean), (100.0, Some(5.0)));
        // 600 ns of 2 × 10,000; on at least one CPU for 150 + 150 + 200 of 10,000.
        assert!((found.os_percent - 3.0).abs() < 1e-9 && (found.os_any_percent - 5.0).abs() < 1e-9);
        assert!((found.overlap.unwrap() - 1.2).abs() < 1e-9);
        assert!((found.bound_without_overlap.unwrap() - 1.0 / 0.03).abs() < 1e-6);
        assert!((found.bound_with_overlap.unwrap() - 40.0).abs() < 1e-6);
    }

    #[test]
    fn without_intervals_there_is_nothing_to_estimate() {
        let hosts = vec![host(&[(0, 70)], vec![(0, phase(0, 0, 0, 10, 10))], Vec::new())];
        assert_eq!(estimates(&job_of(&hosts), &hosts, 1.0, 1.0), None);
    }
}
