//! The document of noise that was replayed into a program.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Warning;
use crate::interleaved::Interleaved;
use crate::stats::{ascending, median, nearest_rank_in_counts};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.replay/2";

/// A command under replayed noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Replay {
    /// Always `quell.replay/2`.
    pub schema: String,
    /// The command; empty if the request was only what could be injected.
    pub command: Vec<String>,
    /// The noise to inject, and how to inject it.
    pub plan: Plan,
    /// The command's exit code, 128 and more for a signal; null if it did not run.
    pub exit_code: Option<u8>,
    /// Each run of the command, in order.
    pub runs: Vec<Run>,
    /// The cost of the noise; null without runs to compare with.
    pub slowdown: Option<Slowdown>,
    /// The cost of the noise by blocks of one run; null if the run was not interleaved, or gave no slowdown.
    pub interleaved: Option<Interleaved>,
    /// The report of each process of the last run.
    pub processes: Vec<Process>,
    /// Limits of the results.
    pub warnings: Vec<Warning>,
}

/// The noise to inject, and how to inject it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// `boundary`, `timer` or `process`.
    pub context: String,
    /// `none`, `start` or `phase`.
    pub sync: String,
    /// The factor by which detours and the time between them are scaled.
    pub scale: f64,
    /// The seed of the places in their traces at which nodes start.
    pub seed: u64,
    /// Overhead of one detour, in addition to the time that is burned.
    pub overhead_ns: u64,
    /// How much earlier than its detour a timer is set.
    pub early_ns: u64,
    /// Minimum time between two detours for the second one to begin separately.
    pub smallest_gap_ns: u64,
    /// Time after which a rank gets no more noise; null for no limit.
    pub limit_ns: Option<u64>,
    /// The nodes whose noise is replayed.
    pub noise: Vec<Noise>,
    /// Number of detours in the traces.
    pub detours: u64,
    /// Number of detours that are injected.
    pub kept: u64,
    /// Number of these that follow the previous one at once, because the gap between them is too small.
    pub merged: u64,
    /// Number of detours that are too short to be injected.
    pub dropped: u64,
    /// Number of injected detours that are cut, because the context injects none that is as long.
    pub cut: u64,
    /// Share of the detours that are injected, in percent.
    pub detours_percent: f64,
    /// Share of their time, in percent.
    pub time_percent: f64,
}

/// One node's noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Noise {
    /// The recording's or the model's name.
    pub name: String,
    /// Its CPUs; ranks use them in turn.
    pub cpus: Vec<u32>,
    /// Time after which it repeats, scaled.
    pub period_ns: u64,
    /// Time of the injected detours over all time, in percent.
    pub overhead_percent: f64,
}

/// One run of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// Whether noise was injected.
    pub noise: bool,
    /// Time from its start to its end.
    pub wall_ns: u64,
    /// The longest time between MPI's initialization and finalization on any rank; null if none was seen.
    pub mpi_ns: Option<u64>,
}

/// How much longer runs with noise took than runs without, pair by pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Slowdown {
    /// `mpi`: between MPI's initialization and finalization; `wall`: from start to end.
    pub of: String,
    /// The slowdown of each pair, in percent.
    pub pairs_percent: Vec<f64>,
    /// Their median.
    pub median_percent: f64,
    /// The smallest.
    pub least_percent: f64,
    /// The largest.
    pub most_percent: f64,
}

/// The noise that one process suffered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Process {
    /// Its rank; null if no launcher gave it one.
    pub rank: Option<u64>,
    /// Its host.
    #[column]
    pub host: String,
    /// Its process id.
    pub pid: u64,
    /// Its program's name in the kernel.
    pub name: String,
    /// The node whose noise it replayed.
    pub node: u64,
    /// The CPU whose trace it replayed.
    #[column(title = "trace", id)]
    pub cpu: u32,
    /// Number of its threads that suffered noise.
    pub threads: u64,
    /// Number of MPI calls, of timers that struck, or of detours that a separate process began.
    #[column]
    pub calls: u64,
    /// Number of these at which time was burned.
    #[column(title = "burned")]
    pub burns: u64,
    /// Noise that the schedule requested.
    #[column]
    pub asked_ns: u64,
    /// Noise that was actually injected.
    #[column]
    pub took_ns: u64,
    /// Noise of the trace during its run: the requested and the absorbed noise.
    pub trace_ns: u64,
    /// Noise that passed while it waited.
    #[column]
    pub absorbed_ns: u64,
    /// Time within MPI calls.
    pub within_ns: u64,
    /// Time from its first action to its last.
    pub span_ns: u64,
    /// Median excess of the burns over the requested time, as an upper bound (powers of two).
    pub over_p50_ns: u64,
    /// 99th percentile of their excess, as an upper bound (powers of two).
    pub over_p99_ns: u64,
    /// The largest excess of a burn.
    pub most_over_ns: u64,
    /// Number of phases that it saw.
    pub phases: u64,
    /// Whether it had used up its share of the trace before its end.
    pub used_up: bool,
    /// Number of threads that could not be reached.
    pub missed: u64,
}

impl Process {
    /// The share of its time outside of MPI that the noise took, in percent.
    pub fn overhead_percent(&self) -> f64 {
        let computed = self.span_ns.saturating_sub(self.within_ns);
        if computed == 0 { 0.0 } else { 100.0 * self.took_ns as f64 / computed as f64 }
    }
}

impl Slowdown {
    /// The slowdown from runs with and without noise, in the order in which they ran, paired. `None` if there are none without.
    pub fn from_runs(runs: &[Run]) -> Option<Self> {
        let side = |noise: bool| runs.iter().filter(move |run| run.noise == noise);
        let mpi = runs.iter().all(|run| run.mpi_ns.is_some_and(|ns| ns > 0));
        let time = |run: &Run| if mpi { run.mpi_ns.unwrap_or(0) } else { run.wall_ns } as f64;
        let pairs = side(true).zip(side(false)).filter(|(_, without)| time(without) > 0.0);
        let pairs_percent: Vec<f64> =
            pairs.map(|(with, without)| 100.0 * (time(with) - time(without)) / time(without)).collect();
        let percent = ascending(pairs_percent.iter().copied());
        Some(Self {
            of: if mpi { "mpi" } else { "wall" }.into(),
            pairs_percent,
            least_percent: *percent.first()?,
            most_percent: *percent.last()?,
            median_percent: median(&percent)?,
        })
    }
}

/// The upper end of the bucket that holds the `p`-quantile of a histogram of powers of two: bucket `n` is 2ⁿ⁻¹ to 2ⁿ, bucket 0 is 0.
pub fn quantile_of_powers(histogram: &[u64], p: f64) -> u64 {
    let all = histogram.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    match nearest_rank_in_counts(histogram.iter().copied(), all, p) {
        None | Some((0, _)) => 0,
        Some((bucket, _)) => 1 << bucket.min(63),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn run(noise: bool, wall_ns: u64, mpi_ns: Option<u64>) -> Run {
        Run { noise, wall_ns, mpi_ns }
    }

    #[test]
    fn slowdowns_are_of_pairs() {
        assert_eq!(Slowdown::from_runs(&[run(true, 5, None)]), None);
        let runs = [
            run(false, 100, None),
            run(true, 110, None),
            run(true, 130, None),
            run(false, 100, None),
            run(false, 200, None),
            run(true, 240, None),
        ];
        let found = Slowdown::from_runs(&runs).unwrap();
        assert_eq!((found.median_percent, found.least_percent, found.most_percent), (20.0, 10.0, 30.0));
        let mpi = Slowdown::from_runs(&[run(false, 100, Some(50)), run(true, 110, Some(60))]).unwrap();
        assert_eq!((mpi.of.as_str(), mpi.median_percent), ("mpi", 20.0));
    }

    #[test]
    fn quantiles_of_powers_are_upper_ends() {
        assert_eq!(quantile_of_powers(&[90, 9, 0, 1], 0.5), 0);
        assert_eq!(quantile_of_powers(&[90, 9, 0, 1], 0.99), 2);
        assert_eq!(quantile_of_powers(&[90, 9, 0, 1], 1.0), 8);
        assert_eq!(quantile_of_powers(&[0, 0], 0.5), 0);
    }
}
