//! De, Kothari & Mann's Parallel Benchmark ("A Trace-driven Emulation Framework to Predict Scalability of Large Clusters in Presence
//! of OS Jitter", IEEE Cluster 2008): the times of its phases, and the cost of noise.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::anomalies::{self, Anomalies};
use super::job::{Cell, HostRun, Job, RunFacts, crowded};
use super::spread::{Spread, mean_with_interval};
use crate::Warning;
use crate::predict::Prediction;
use crate::stats::mean;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.bench-bsp/2";

/// Result of a run of the benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bsp {
    /// Always `quell.bench-bsp/2`.
    pub schema: String,
    /// What ran.
    pub run: RunFacts,
    /// Number of phases that every rank finished.
    pub phases: u64,
    /// Maximum error between the hosts' clocks, in ns; 0 for a single host.
    pub clock_error_ns: u64,
    /// qt of all ranks: compute time.
    pub compute: Spread,
    /// bt of all ranks: time in the operation.
    pub wait: Spread,
    /// qtb of all ranks: the sum of both.
    pub total: Spread,
    /// Time that reading the clock adds to a phase, on the rank where it is largest, in ns.
    pub timing_ns: f64,
    /// One row per rank.
    pub by_rank: Vec<RankRow>,
    /// Duration of the operation itself: the median over phases of the time from the last rank's arrival to the last rank's
    /// departure, in ns.
    pub operation_ns: f64,
    /// Eq. 3: the longest qt of each phase relative to the quantum.
    pub compute_slowdown: Option<Slowdown>,
    /// Eq. 2: the longest qtb of each phase relative to the quantum plus the operation. Absent if ranks do not wait.
    pub total_slowdown: Option<Slowdown>,
    /// Phases that took too long, and what delayed them.
    pub anomalies: Anomalies,
    /// The prediction of the same run, if it was requested.
    pub predicted: Option<Predicted>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
}

/// One rank's compute times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct RankRow {
    /// The rank.
    #[column(id)]
    pub rank: u32,
    /// Its host.
    #[column(number)]
    pub host: String,
    /// CPUs that it ran on, as in `0,2-5`.
    #[column(title = "CPU", number)]
    pub cpus: String,
    /// Its compute time qt.
    #[column(title = "quiet qt", time, with = quiet)]
    #[column(title = "mean qt", time, with = mean_of)]
    #[column(title = "max qt", time, with = longest)]
    pub compute: Spread,
    /// Mean qt over the quantum, less one, in percent.
    #[column(title = "slowdown", suffix = " %")]
    pub slowdown_percent: f64,
    /// Number of phases in which the rank finished computing last; 0 if ranks do not wait.
    pub last: u64,
}

fn quiet(times: &Spread) -> u64 {
    times.quiet_ns
}

fn mean_of(times: &Spread) -> f64 {
    times.mean_ns
}

fn longest(times: &Spread) -> u64 {
    times.max_ns
}

/// A mean of maxima relative to its value without noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowdown {
    /// Mean over phases of the longest time of any rank, in ns.
    pub mean_max_ns: f64,
    /// Its 95 % interval.
    pub mean_max_ci95_ns: Option<[f64; 2]>,
    /// The value without noise, in ns.
    pub base_ns: f64,
    /// 100 × (mean − base) / base.
    pub percent: f64,
    /// Its 95 % interval.
    pub ci95_percent: Option<[f64; 2]>,
}

/// A prediction to compare with the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// Names of the recordings that it was made from.
    pub from: Vec<String>,
    /// Mean phase: the predicted slowest rank plus the operation, in ns.
    pub mean_phase_ns: f64,
    /// Its 95 % interval.
    pub ci95_ns: Option<[f64; 2]>,
    /// Slowdown relative to the quantum plus the operation, in percent.
    pub slowdown_percent: f64,
    /// Its 95 % interval.
    pub ci95_percent: Option<[f64; 2]>,
    /// Measured mean phase over the predicted, less one, in percent.
    pub difference_percent: f64,
    /// Whether the measured mean lies in the interval.
    pub inside: Option<bool>,
}

/// Analyses a run, without a prediction.
pub fn analyse(job: &Job, run: &RunFacts, hosts: &[HostRun], seed: u64) -> Bsp {
    let all = |value: fn(&Cell) -> u64| Spread::from_times(job.iter().flatten().map(value).collect());
    let waits = run.operation != "none";
    let operation_ns = if waits { operation(job) } else { 0.0 };
    let quantum = run.quantum_ns as f64;
    let longest = |value: fn(&Cell) -> u64, base: f64| slowdown(job, value, base, seed);
    let by_rank = by_rank(job, hosts, quantum, waits);
    Bsp {
        schema: SCHEMA.into(),
        run: run.clone(),
        phases: job.phases() as u64,
        clock_error_ns: job.clock_error_ns,
        compute: all(|cell| cell.compute),
        wait: all(|cell| cell.wait),
        total: all(Cell::total),
        timing_ns: timing(hosts),
        operation_ns,
        compute_slowdown: longest(|cell| cell.compute, quantum),
        total_slowdown: longest(Cell::total, quantum + operation_ns).filter(|_| waits),
        anomalies: anomalies::find(job, hosts),
        predicted: None,
        warnings: [crowded(hosts), warnings(run, &by_rank)].concat(),
        by_rank,
    }
}

fn timing(hosts: &[HostRun]) -> f64 {
    let ranks =
        hosts.iter().filter_map(|host| host.recording.manifest.mpi.as_ref()).flat_map(|mpi| &mpi.here);
    ranks.map(|rank| rank.timing_ns).fold(0.0, f64::max)
}

/// Median time from the last arrival to the last departure.
fn operation(job: &Job) -> f64 {
    let own = job.iter().filter_map(|cells| {
        let came = cells.iter().map(Cell::computed).max()?;
        u64::try_from(cells.iter().map(Cell::end).max()? - came).ok()
    });
    Spread::from_times(own.collect()).p50_ns as f64
}

fn slowdown(job: &Job, value: fn(&Cell) -> u64, base_ns: f64, seed: u64) -> Option<Slowdown> {
    if base_ns <= 0.0 || job.phases() == 0 {
        return None;
    }
    let maxima: Vec<f64> =
        job.iter().map(|cells| cells.iter().map(value).max().unwrap_or(0) as f64).collect();
    let (mean, interval) = mean_with_interval(&maxima, seed);
    let percent = |ns: f64| 100.0 * (ns - base_ns) / base_ns;
    Some(Slowdown {
        mean_max_ns: mean,
        mean_max_ci95_ns: interval,
        base_ns,
        percent: percent(mean),
        ci95_percent: interval.map(|ends| ends.map(percent)),
    })
}

fn by_rank(job: &Job, hosts: &[HostRun], quantum: f64, waits: bool) -> Vec<RankRow> {
    let mut last = vec![0; job.ranks.len()];
    // A rank that waits for no other is not late.
    for cells in job.iter().filter(|_| waits) {
        let at = (0..cells.len()).max_by_key(|&rank| cells[rank].computed());
        last[at.unwrap_or(0)] += 1;
    }
    let row = |(index, rank): (usize, &super::job::Rank)| {
        let compute = Spread::from_times(job.cells_of_rank(index).map(|cell| cell.compute).collect());
        let mut cpus: Vec<_> = job.cells_of_rank(index).map(|cell| cell.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        RankRow {
            rank: rank.rank,
            host: hosts.get(rank.host).map(HostRun::name).unwrap_or_default(),
            cpus: quell_recording::format_cpu_list(&cpus),
            // Each phase's work was calibrated to fill the quantum.
            slowdown_percent: if quantum > 0.0 { 100.0 * (compute.mean_ns / quantum - 1.0) } else { 0.0 },
            compute,
            last: last[index],
        }
    };
    job.ranks.iter().enumerate().map(row).collect()
}

fn warnings(run: &RunFacts, ranks: &[RankRow]) -> Vec<Warning> {
    let off = |row: &RankRow| 100.0 * (row.compute.quiet_ns as f64 / run.quantum_ns as f64 - 1.0);
    let worst = ranks.iter().max_by(|a, b| off(a).abs().total_cmp(&off(b).abs()));
    let worst = worst.filter(|row| run.quantum_ns > 0 && off(row).abs() > 1.0);
    let warning = worst.map(|row| Warning::QuickestTenthOff { rank: row.rank, percent: off(row) });
    warning.into_iter().collect()
}

/// Compares a run with predictions for its number of ranks. With several (the noise before and after it), their mean is used,
/// and the interval covers all of theirs. Does nothing if there is no prediction to compare.
pub fn compare(bsp: &mut Bsp, predictions: &[Prediction]) {
    let ranks = bsp.by_rank.len() as u64;
    let points = predictions.iter().filter_map(|p| p.points.iter().find(|point| point.ranks == ranks));
    let points: Vec<_> = points.collect();
    let (Some(measured), false) = (bsp.total_slowdown.or(bsp.compute_slowdown), points.is_empty()) else {
        return;
    };
    // Each point is relative to its own base, the quantum; the operation is added to both.
    let phases = points.iter().map(|point| point.mean_phase_ns + bsp.operation_ns);
    let predicted = mean(phases).unwrap_or(0.0);
    let ends = points.iter().map(|point| {
        let base = point.base_phase_ns as f64;
        point.ci95_percent.map(|ends| ends.map(|percent| base * (1.0 + percent / 100.0) + bsp.operation_ns))
    });
    let interval = ends.reduce(|a, b| {
        a.zip(b).map(|([low, high], [lower, higher])| [f64::min(low, lower), f64::max(high, higher)])
    });
    let interval = interval.flatten();
    let percent = |ns: f64| 100.0 * (ns - measured.base_ns) / measured.base_ns;
    bsp.predicted = Some(Predicted {
        from: predictions.iter().flat_map(|p| p.noise.iter().map(|noise| noise.name.clone())).collect(),
        mean_phase_ns: predicted,
        ci95_ns: interval,
        slowdown_percent: percent(predicted),
        ci95_percent: interval.map(|ends| ends.map(percent)),
        difference_percent: 100.0 * (measured.mean_max_ns / predicted - 1.0),
        inside: interval.map(|[low, high]| (low..=high).contains(&measured.mean_max_ns)),
    });
}
