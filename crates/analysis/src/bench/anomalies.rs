//! Phases that took longer than the others: which rank was late, and what delayed it.
//!
//! A phase ends for all when the last rank has arrived and the operation is complete. So noise matters if it delayed the last arrival,
//! or if it struck between that arrival and the end. Noise on a rank that waits anyway is absorbed, and is not blamed
//! (Jones et al. 2003, §4.1, examined such operations one by one).

use std::collections::HashMap;

use quell_recording::Cpu;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::culprit::{Blamed, Busy};
use super::job::{Cell, HostRun, Job};
use crate::stats::{Durations, MAD_TO_SIGMA};

/// Number of robust deviations above the median from which on a phase is an anomaly.
const DEVIATIONS: f64 = 6.0;
/// Minimum distance from the median, as a share of it.
const LEAST: f64 = 0.02;
/// Maximum number of anomalies that are listed: the longest.
const LISTED: usize = 1_000;
/// A phase is explained if the kernel's intervals hold at least this share of its excess.
const CONVICTS: f64 = 0.5;

/// The phases that took too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Anomalies {
    /// The median phase, longest rank, in ns.
    pub typical_ns: u64,
    /// Phases above this are anomalies, in ns: six robust deviations over the median (1.4826 × the median distance from it), and at
    /// least 2 % of it.
    pub threshold_ns: u64,
    /// Number of anomalies.
    pub count: u64,
    /// Sum of their excess, in ns. If ranks do not start together, one that is delayed in a phase is late for the next,
    /// which is too long as well: then the sum may exceed the time lost.
    pub excess_ns: u64,
    /// Number of anomalies of which the kernel's intervals hold at least half of the excess.
    pub explained: u64,
    /// The culprits, by cost.
    pub by_source: Vec<SourceRow>,
    /// The longest anomalies, at most 1,000, in order of time.
    pub listed: Vec<Anomaly>,
}

/// The anomalies that one source caused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRow {
    /// The source, or `unattributed` for phases that the kernel's intervals do not explain.
    pub source: String,
    /// Number of phases whose culprit it is.
    pub count: u64,
    /// Sum of the excess of those phases, in ns.
    pub excess_ns: u64,
    /// Its share of the excess of all anomalies, in percent.
    pub percent: f64,
    /// Time that it took itself in those phases, in ns; other sources took the rest, or it is not attributed.
    pub taken_ns: u64,
}

/// One phase that took too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Anomaly {
    /// Number of the phase.
    pub phase: u64,
    /// When it began, on CLOCK_MONOTONIC of rank 0's host, in ns.
    pub start_ns: u64,
    /// The longest time that a rank took for it, in ns.
    pub total_ns: u64,
    /// Excess over the median phase, in ns.
    pub excess_ns: u64,
    /// The rank that was late: the one that the culprit delayed, or else the last to arrive.
    pub rank: u32,
    /// The CPU of that rank.
    pub cpu: u32,
    /// Whether the rank arrived late at the operation; otherwise it was delayed within it.
    pub came_late: bool,
    /// The part of the excess that the kernel's intervals hold, in ns.
    pub explained_ns: u64,
    /// The source that took most of that; absent if it is less than half of the excess.
    pub culprit: Option<Culprit>,
}

/// What delayed a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Culprit {
    /// The source.
    pub source: String,
    /// The task's id if the source is a task; 0 otherwise.
    pub pid: u32,
    /// Time that it took in the phase, in ns.
    pub taken_ns: u64,
    /// When its longest interval began, on CLOCK_MONOTONIC of rank 0's host, in ns.
    pub interval_start_ns: u64,
    /// Time that this interval took in the phase, in ns.
    pub interval_ns: u64,
}

/// Finds the phases that took too long, and what delayed them.
pub fn find(job: &Job, hosts: &[HostRun]) -> Anomalies {
    let length = |cells: &[Cell]| cells.iter().map(Cell::total).max().unwrap_or(0);
    let lengths = Durations::new(job.iter().map(length).collect());
    let typical = lengths.quantile(0.5).unwrap_or(0);
    let threshold = threshold(&lengths, typical);
    let mut sides = Sides::split(job, hosts);
    let mut found = Vec::new();
    for (phase, cells) in job.iter().enumerate() {
        let total_ns = length(cells);
        if total_ns > threshold {
            found.push(sides.explain(phase, cells, total_ns, total_ns - typical));
        }
    }
    let by_source = by_source(&found);
    let explained = found.iter().filter(|anomaly| anomaly.culprit.is_some()).count() as u64;
    let (count, excess_ns) = (found.len() as u64, excess(&found));
    found.sort_by_key(|anomaly| std::cmp::Reverse(anomaly.excess_ns));
    found.truncate(LISTED);
    found.sort_by_key(|anomaly| anomaly.phase);
    let (typical_ns, threshold_ns) = (typical, threshold);
    Anomalies { typical_ns, threshold_ns, count, excess_ns, explained, by_source, listed: found }
}

fn excess(found: &[Anomaly]) -> u64 {
    found.iter().fold(0, |sum, anomaly| sum.saturating_add(anomaly.excess_ns))
}

fn threshold(lengths: &Durations, typical: u64) -> u64 {
    let distances = lengths.as_slice().iter().map(|&ns| ns.abs_diff(typical)).collect();
    let deviation = MAD_TO_SIGMA * Durations::new(distances).quantile(0.5).unwrap_or(0) as f64;
    typical.saturating_add(f64::max(DEVIATIONS * deviation, LEAST * typical as f64).ceil() as u64)
}

fn by_source(found: &[Anomaly]) -> Vec<SourceRow> {
    let all = excess(found).max(1);
    let mut rows: HashMap<&str, (u64, u64, u64)> = HashMap::new();
    for anomaly in found {
        let name = anomaly.culprit.as_ref().map_or("unattributed", |culprit| &culprit.source);
        let row = rows.entry(name).or_default();
        row.0 += 1;
        row.1 = row.1.saturating_add(anomaly.excess_ns);
        row.2 = row.2.saturating_add(anomaly.culprit.as_ref().map_or(0, |culprit| culprit.taken_ns));
    }
    let row = |(source, (count, excess_ns, taken_ns)): (&str, (u64, u64, u64))| SourceRow {
        source: source.into(),
        count,
        excess_ns,
        percent: 100.0 * excess_ns as f64 / all as f64,
        taken_ns,
    };
    let mut rows: Vec<SourceRow> = rows.into_iter().map(row).collect();
    rows.sort_by(|a, b| (b.excess_ns, &a.source).cmp(&(a.excess_ns, &b.source)));
    rows
}

/// The kernel's intervals for each rank on each of its CPUs.
struct Sides<'a> {
    job: &'a Job,
    hosts: &'a [HostRun],
    busy: HashMap<(usize, Cpu), Option<Busy<'a>>>,
}

/// A rank that may have been delayed, and by what.
struct Suspect {
    rank: usize,
    came_late: bool,
    blamed: Blamed,
}

impl<'a> Sides<'a> {
    fn split(job: &'a Job, hosts: &'a [HostRun]) -> Self {
        Self { job, hosts, busy: HashMap::new() }
    }

    fn explain(&mut self, phase: usize, cells: &[Cell], total_ns: u64, excess_ns: u64) -> Anomaly {
        let begin = cells.iter().map(|cell| cell.start).min().unwrap_or(0);
        let suspect = self.suspect(cells, begin, excess_ns);
        let rank = &self.job.ranks[suspect.rank];
        let explained_ns = suspect.blamed.explained_ns;
        let convicted = explained_ns as f64 >= CONVICTS * excess_ns as f64;
        let most = suspect.blamed.shares.first().filter(|_| convicted);
        let culprit = most.map(|share| Culprit {
            source: share.source.to_string(),
            pid: share.pid,
            taken_ns: share.net_ns,
            interval_start_ns: self.job.from_host(suspect.rank, share.longest_start_ns),
            interval_ns: share.longest_ns,
        });
        Anomaly {
            phase: phase as u64,
            start_ns: u64::try_from(begin).unwrap_or(0),
            total_ns,
            excess_ns,
            rank: rank.rank,
            cpu: cells[suspect.rank].cpu.0,
            came_late: suspect.came_late,
            explained_ns,
            culprit,
        }
    }

    /// The rank that delayed the phase: the last to arrive, unless another one lost more time after that.
    fn suspect(&mut self, cells: &[Cell], begin: i64, excess_ns: u64) -> Suspect {
        // If no rank waits, ranks drift apart, and each can be delayed only in its own work.
        if cells.iter().all(|cell| cell.wait == 0) {
            let rank = (0..cells.len()).max_by_key(|&rank| cells[rank].compute).unwrap_or(0);
            let Cell { cpu, start, .. } = cells[rank];
            let blamed = self.blame(rank, cpu, start, cells[rank].computed(), excess_ns);
            return Suspect { rank, came_late: true, blamed };
        }
        let last = (0..cells.len()).max_by_key(|&rank| cells[rank].computed()).unwrap_or(0);
        let arrival = cells[last].computed();
        let blamed = self.blame(last, cells[last].cpu, begin, arrival, excess_ns);
        let mut worst = Suspect { rank: last, came_late: true, blamed };
        for (rank, cell) in cells.iter().enumerate() {
            let blamed = self.blame(rank, cell.cpu, arrival, cell.end(), excess_ns);
            if blamed.explained_ns > worst.blamed.explained_ns {
                worst = Suspect { rank, came_late: false, blamed };
            }
        }
        worst
    }

    /// What took time from a rank in a range of rank 0's clock.
    fn blame(&mut self, rank: usize, cpu: Cpu, from: i64, to: i64, excess_ns: u64) -> Blamed {
        if to <= from {
            return Blamed::default();
        }
        let (from, to) = (self.job.on_host(rank, from), self.job.on_host(rank, to));
        self.busy(rank, cpu).map_or_else(Blamed::default, |busy| busy.explain(from, to, excess_ns))
    }

    fn busy(&mut self, rank: usize, cpu: Cpu) -> Option<&Busy<'a>> {
        let (job, hosts) = (self.job, self.hosts);
        let side = self.busy.entry((rank, cpu)).or_insert_with(|| {
            let known = &job.ranks[rank];
            let intervals = &hosts[known.host].recording.intervals;
            let of_cpu = intervals.iter().find(|side| side.cpu == cpu)?;
            Some(Busy::from_intervals(of_cpu, &|pid| pid == known.pid))
        });
        side.as_ref()
    }
}
