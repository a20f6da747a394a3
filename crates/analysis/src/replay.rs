//! What came of noise that was replayed into a program, as a document.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Warning;
use crate::stats::{ascending, median, nearest_rank_in_counts};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.replay/2";

/// A command under replayed noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Replay {
    /// Always `quell.replay/2`.
    pub schema: String,
    /// The command; empty where only asked what could be injected.
    pub command: Vec<String>,
    /// What was to be injected, and how.
    pub plan: Plan,
    /// The command's exit code, 128 and more for a signal; null where it did not run.
    pub exit_code: Option<u8>,
    /// Each run of the command, in order.
    pub runs: Vec<Run>,
    /// What the noise cost; null without runs to compare with.
    pub slowdown: Option<Slowdown>,
    /// What each process of the last run said.
    pub processes: Vec<Process>,
    /// What limits all this.
    pub warnings: Vec<Warning>,
}

/// What is to be injected, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// `boundary`, `timer` or `process`.
    pub context: String,
    /// `none`, `start` or `phase`.
    pub sync: String,
    /// By what detours and the time between them are stretched.
    pub scale: f64,
    /// The seed of where in their traces nodes start.
    pub seed: u64,
    /// What one detour costs beside the time that is burned.
    pub overhead_ns: u64,
    /// So much earlier a timer is set than it is to strike.
    pub early_ns: u64,
    /// The time between two detours that is needed to begin the second.
    pub smallest_gap_ns: u64,
    /// After so much time a rank is left alone; null for never.
    pub limit_ns: Option<u64>,
    /// The nodes whose noise it is.
    pub noise: Vec<Noise>,
    /// Detours in the traces.
    pub detours: u64,
    /// Those that are injected.
    pub kept: u64,
    /// Of these, those that come at once after the one before, for the gap between them is too small.
    pub merged: u64,
    /// Those too short to be injected.
    pub dropped: u64,
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
    /// Its CPUs; ranks take them in turn.
    pub cpus: Vec<u32>,
    /// After so much time it repeats, stretched.
    pub period_ns: u64,
    /// Time of what is injected over all time, in percent.
    pub overhead_percent: f64,
}

/// One run of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// Whether noise was injected.
    pub noise: bool,
    /// From start to end.
    pub wall_ns: u64,
    /// The longest time that any rank was between MPI's beginning and its end; null where none was seen.
    pub mpi_ns: Option<u64>,
}

/// How much longer runs with noise took than those without, pair by pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Slowdown {
    /// `mpi`: between MPI's beginning and its end; `wall`: from start to end.
    pub of: String,
    /// Each pair's, in percent.
    pub pairs_percent: Vec<f64>,
    /// Their median.
    pub median_percent: f64,
    /// The least.
    pub least_percent: f64,
    /// The most.
    pub most_percent: f64,
}

/// What one process suffered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Process {
    /// Its rank; null where no launcher gave it one.
    pub rank: Option<u64>,
    /// Its host.
    #[column]
    pub host: String,
    /// Its process id.
    pub pid: u64,
    /// Its program's name, as the kernel has it.
    pub name: String,
    /// The node that it stood for.
    pub node: u64,
    /// The CPU whose trace it replayed.
    #[column(title = "trace", id)]
    pub cpu: u32,
    /// Its threads that suffered.
    pub threads: u64,
    /// MPI calls, or timers that struck, or detours that a process beside it began.
    #[column]
    pub calls: u64,
    /// Those at which something was burned.
    #[column(title = "burned")]
    pub burns: u64,
    /// What the schedule asked for.
    #[column]
    pub asked_ns: u64,
    /// What it took.
    #[column]
    pub took_ns: u64,
    /// Noise of the trace in the time that it ran: what it was asked for and what it absorbed.
    pub trace_ns: u64,
    /// Noise that passed while it waited.
    #[column]
    pub absorbed_ns: u64,
    /// Time within MPI calls.
    pub within_ns: u64,
    /// From its first act to its last.
    pub span_ns: u64,
    /// What half of the burns took too long, at most (powers of two).
    pub over_p50_ns: u64,
    /// What 99 % of them took too long, at most (powers of two).
    pub over_p99_ns: u64,
    /// What one took too long, at most.
    pub most_over_ns: u64,
    /// Phases that it saw.
    pub phases: u64,
    /// Whether its share of the trace was used up before its end.
    pub used_up: bool,
    /// Threads that could not be reached.
    pub missed: u64,
}

impl Process {
    /// What the noise took of its time outside of MPI, in percent.
    pub fn overhead_percent(&self) -> f64 {
        let computed = self.span_ns.saturating_sub(self.within_ns);
        if computed == 0 { 0.0 } else { 100.0 * self.took_ns as f64 / computed as f64 }
    }
}

impl Slowdown {
    /// Of runs with and without noise, in the order in which they ran: each with its partner. `None` where there are none without.
    pub fn of(runs: &[Run]) -> Option<Self> {
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

/// The upper end of the bucket in which the `p`-quantile of a histogram of powers of two lies: bucket `n` is 2ⁿ⁻¹ to 2ⁿ, bucket 0 is 0.
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
        assert_eq!(Slowdown::of(&[run(true, 5, None)]), None);
        let runs = [
            run(false, 100, None),
            run(true, 110, None),
            run(true, 130, None),
            run(false, 100, None),
            run(false, 200, None),
            run(true, 240, None),
        ];
        let found = Slowdown::of(&runs).unwrap();
        assert_eq!((found.median_percent, found.least_percent, found.most_percent), (20.0, 10.0, 30.0));
        let mpi = Slowdown::of(&[run(false, 100, Some(50)), run(true, 110, Some(60))]).unwrap();
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
