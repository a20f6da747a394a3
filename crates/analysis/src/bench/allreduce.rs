//! Many small allreduces (Jones et al., LLNL, §3): how long each took, how long it should take for the number of ranks, and why some
//! took longer.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::anomalies::{self, Anomalies};
use super::job::{Cell, HostRun, Job, RunFacts};
use super::jones::{self, Estimates};
use super::spread::Spread;
use crate::Warning;
use crate::density::LogHistogram;
use crate::stats::{Durations, mean};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.bench-allreduce/2";
/// Maximum number of operations whose timelines are kept: the longest.
const LINES: usize = 5;
/// Maximum number of ranks on a timeline.
const MOST_ON_LINE: usize = 8;
/// Bins per decade of the histogram.
const PER_DECADE: u32 = 5;

/// Runs on one or more numbers of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Allreduce {
    /// Always `quell.bench-allreduce/2`.
    pub schema: String,
    /// One for each number of ranks.
    pub runs: Vec<AllreduceRun>,
    /// How the time of the operation grows with the ranks; absent if fewer than two numbers of ranks ran.
    pub fit: Option<Fit>,
}

/// The run on one number of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllreduceRun {
    /// What ran.
    pub run: RunFacts,
    /// Number of operations that every rank finished.
    pub operations: u64,
    /// Maximum error between the hosts' clocks, in ns; 0 for a single host.
    pub clock_error_ns: u64,
    /// Times of all ranks in the operation.
    pub times: Spread,
    /// The longest time of any rank, per operation.
    pub longest: Spread,
    /// These longest times, in five bins per decade.
    pub histogram: LogHistogram,
    /// Operations that took too long, including the work before them, and what delayed them.
    pub anomalies: Anomalies,
    /// The longest of them as timelines.
    pub time_lines: Vec<TimeLine>,
    /// Jones et al.'s estimates; absent if the kernel was not recorded.
    pub estimates: Option<Estimates>,
    /// Whether a host had more ranks than CPUs: its times then depend on the scheduler, and the fit leaves the run out.
    pub shares_cpus: bool,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
}

/// The timeline of one operation on several ranks. Times are on CLOCK_MONOTONIC of rank 0's host, in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeLine {
    /// Number of the operation.
    pub phase: u64,
    /// The rank that delayed it, and some of those that waited.
    pub ranks: Vec<LineOfRank>,
    /// What delayed it, as in the list of anomalies.
    pub culprit: Option<anomalies::Culprit>,
    /// The rank that was delayed.
    pub late: u32,
}

/// One rank on a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineOfRank {
    /// The rank.
    pub rank: u32,
    /// When its work began.
    pub start_ns: u64,
    /// When it reached the operation.
    pub computed_ns: u64,
    /// When it left the operation.
    pub end_ns: u64,
}

/// The fit a + b · log₂ P through the median times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// The constant, in ns.
    pub a_ns: f64,
    /// The slope, in ns per doubling of the ranks.
    pub b_ns: f64,
    /// The points, one per number of ranks.
    pub points: Vec<FitPoint>,
}

/// One number of ranks and the fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct FitPoint {
    /// Number of ranks.
    #[column]
    pub ranks: u32,
    /// Median of the longest times, in ns; the fit uses these.
    #[column(title = "usual")]
    pub typical_ns: u64,
    /// The value of the fit, in ns.
    #[column(title = "fit")]
    pub fitted_ns: f64,
    /// Mean of the longest times, in ns.
    #[column(title = "mean")]
    pub mean_ns: f64,
    /// Mean over fit, less one, in percent: the effect of noise.
    #[column(title = "mean over fit", precision = 1, suffix = " %", plus)]
    pub excess_percent: f64,
}

/// Combines the runs.
pub fn together(runs: Vec<AllreduceRun>) -> Allreduce {
    Allreduce { schema: SCHEMA.into(), fit: fit(&runs), runs }
}

/// Analyses one run.
pub fn analyse(job: &Job, run: &RunFacts, hosts: &[HostRun]) -> AllreduceRun {
    let longest: Vec<u64> =
        job.iter().map(|cells| cells.iter().map(|cell| cell.wait).max().unwrap_or(0)).collect();
    let histogram = LogHistogram::from_sample(&Durations::new(longest.clone()), PER_DECADE);
    let longest = Spread::from_times(longest);
    let anomalies = anomalies::find(job, hosts);
    AllreduceRun {
        run: run.clone(),
        operations: job.phases() as u64,
        clock_error_ns: job.clock_error_ns,
        times: Spread::from_times(job.iter().flatten().map(|cell| cell.wait).collect()),
        estimates: jones::estimates(job, hosts, longest.p50_ns as f64, longest.mean_ns),
        longest,
        histogram,
        time_lines: time_lines(job, &anomalies),
        anomalies,
        shares_cpus: !super::job::crowded(hosts).is_empty(),
        warnings: super::job::crowded(hosts),
    }
}

fn time_lines(job: &Job, anomalies: &Anomalies) -> Vec<TimeLine> {
    let mut longest: Vec<_> = anomalies.listed.iter().collect();
    longest.sort_by_key(|anomaly| std::cmp::Reverse(anomaly.excess_ns));
    let line = |anomaly: &&anomalies::Anomaly| {
        let cells = job.iter().nth(anomaly.phase as usize)?;
        let late = anomaly.rank as usize;
        let others = (0..cells.len()).filter(|&rank| rank != late).take(MOST_ON_LINE - 1);
        let mut shown: Vec<usize> = others.chain([late]).collect();
        shown.sort_unstable();
        let ranks = shown.into_iter().map(|rank| line_of(rank, &cells[rank])).collect();
        Some(TimeLine { phase: anomaly.phase, ranks, culprit: anomaly.culprit.clone(), late: anomaly.rank })
    };
    longest.iter().take(LINES).filter_map(line).collect()
}

fn line_of(rank: usize, cell: &Cell) -> LineOfRank {
    let ns = |at: i64| u64::try_from(at).unwrap_or(0);
    LineOfRank {
        rank: rank as u32,
        start_ns: ns(cell.start),
        computed_ns: ns(cell.computed()),
        end_ns: ns(cell.end()),
    }
}

/// Least-squares fit. Uses medians, because noise has already raised the means.
fn fit(runs: &[AllreduceRun]) -> Option<Fit> {
    let runs: Vec<&AllreduceRun> = runs.iter().filter(|run| !run.shares_cpus).collect();
    let points: Vec<(f64, f64)> = runs
        .iter()
        .filter(|run| run.operations > 0)
        .map(|run| (f64::from(run.run.ranks.max(1)).log2(), run.longest.p50_ns as f64))
        .collect();
    let (mean_x, mean_y) = (mean(points.iter().map(|p| p.0))?, mean(points.iter().map(|p| p.1))?);
    let spread = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum::<f64>();
    if points.len() < 2 || spread == 0.0 {
        return None;
    }
    let b = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>() / spread;
    let a = mean_y - b * mean_x;
    let point = |run: &&AllreduceRun| {
        let fitted = a + b * f64::from(run.run.ranks.max(1)).log2();
        FitPoint {
            ranks: run.run.ranks,
            typical_ns: run.longest.p50_ns,
            mean_ns: run.longest.mean_ns,
            fitted_ns: fitted,
            excess_percent: if fitted > 0.0 { 100.0 * (run.longest.mean_ns / fitted - 1.0) } else { 0.0 },
        }
    };
    Some(Fit { a_ns: a, b_ns: b, points: runs.iter().map(point).collect() })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{host, job_of, phase};
    use super::*;
    use crate::attribution::fixture::{task, tick};
    use quell_recording::{Cpu, Intervals};

    /// A daemon on rank 1's CPU delays it before operation 2, and within operation 5.
    fn run(ranks: u32) -> AllreduceRun {
        let mut phases = Vec::new();
        for index in 0..20 {
            let start = index * 10_000;
            let (late, held) = (2_000 * u64::from(index == 2), 3_000 * u64::from(index == 5));
            phases.push((0, phase(0, index, start, 1_000, 500 + late)));
            phases.push((1, phase(1, index, start, 1_000 + late, 500 + held)));
        }
        let cpu1 = vec![task("daemon", 9, 20_500, 2_000), task("daemon", 9, 51_200, 3_000)];
        // Absorbed: rank 0 waits at that time.
        let cpu0 = vec![tick(21_500, 1_400), task("quell-bench", 70, 0, 200_000)];
        let side = |cpu, intervals| Intervals { cpu: Cpu(cpu), intervals };
        let hosts = vec![host(&[(0, 70), (1, 71)], phases, vec![side(0, cpu0), side(1, cpu1)])];
        analyse(&job_of(&hosts), &RunFacts { ranks, ..RunFacts::default() }, &hosts)
    }

    #[test]
    fn the_late_rank_and_the_held_one_are_found_with_their_culprit() {
        let run = run(2);
        let found: Vec<_> = run.anomalies.listed.iter().map(|a| (a.phase, a.rank, a.came_late)).collect();
        assert_eq!(found, [(2, 1, true), (5, 1, false)]);
        assert_eq!((run.anomalies.explained, run.anomalies.excess_ns), (2, 5_000));
        assert_eq!(run.anomalies.by_source[0].source, "task:daemon");
        assert_eq!(run.time_lines[0].phase, 5);
        assert_eq!(run.histogram.counts.iter().sum::<u64>(), 20);
    }

    #[test]
    fn the_fit_goes_through_the_usual_times() {
        let mut runs = vec![run(2), run(8)];
        runs[1].longest.p50_ns = 900;
        let all = together(runs);
        let Some(fit) = all.fit else { panic!("two numbers of ranks make a fit") };
        assert!((fit.a_ns - 300.0).abs() < 1e-6 && (fit.b_ns - 200.0).abs() < 1e-6);
        assert_eq!(together(vec![run(2)]).fit, None);
    }
}
