//! The document that `quell compare --json` prints.

use std::ops::RangeInclusive;

use quell_recording::columns::{AsValue, Column, Columns, Value, ValueKind, describe};
use schemars::JsonSchema;
use serde::Serialize;

use super::BySource;
use crate::Warning;
use crate::stats::Summary;

/// The name and version of the schema.
pub const SCHEMA: &str = "quell.compare/2";

/// A comparison of two recordings: a is the one before, b the one after.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The schema of this document: `quell.compare/2`.
    pub schema: &'static str,
    /// The recording before.
    pub a: SideDocument,
    /// The recording after.
    pub b: SideDocument,
    /// The Kullback-Leibler divergence D(b‖a) of the densities, in nats: how surprising b is given a. Null if
    /// a side has no detours.
    pub kl_nats: Option<f64>,
    /// The reverse divergence: D(a‖b), in nats.
    pub kl_reverse_nats: Option<f64>,
    /// The Wasserstein-1 distance of the durations, in nanoseconds. Null if only one side has detours.
    pub wasserstein_ns: Option<f64>,
    /// What changed, by source; null if the sides are not whole recordings.
    pub by_source: Option<BySource>,
    /// The figures over all CPUs, each with its change.
    pub changes: Changes,
    /// The same for each CPU that both sides observed.
    pub cpus: Vec<CpuComparison>,
    /// What makes the two sides hard to compare, such as lost rows or different thresholds.
    pub warnings: Vec<Warning>,
    /// The densities of the durations, for plotting. Null if a side has no detours.
    pub densities: Option<Densities>,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// Number of times that the recordings were resampled.
    pub replicates: u32,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SideDocument {
    /// Its display name.
    #[column(title = "recording", name)]
    pub name: String,
    /// The CPUs that it observed.
    #[column(title = "CPUs", words, with = in_line)]
    pub cpus: Vec<u32>,
    /// The longest time that one of its CPUs was observed, in nanoseconds.
    #[column(title = "watched")]
    pub span_ns: u64,
    /// Number and durations of the detours.
    #[column(nested)]
    pub detours: Summary,
    /// Detours per second of one CPU.
    #[column(title = "per s", precision = 1)]
    pub rate_per_s: f64,
    /// Noise overhead: time lost to detours over time observed, of all CPUs, in percent.
    #[column(title = "noise %", precision = 4)]
    pub overhead_percent: f64,
}

/// CPUs as a cell of a table.
pub(super) fn in_line(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The same CPU on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CpuComparison {
    /// The CPU.
    pub cpu: u32,
    /// The Wasserstein-1 distance of its durations, in nanoseconds. Null if only one side has detours.
    pub wasserstein_ns: Option<f64>,
    /// Its figures, each with its change.
    pub changes: Changes,
}

/// The figures of two sides. A quantile is null if a side has no detours.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Changes {
    /// Noise overhead, in percent of the time observed.
    #[column(title = "noise overhead, %", precision = 4)]
    pub overhead_percent: Change,
    /// Detours per second of one CPU.
    #[column(title = "detours per s", number)]
    pub rate_per_s: Change,
    /// The median duration, in nanoseconds.
    #[column(title = "p50")]
    pub p50_ns: Option<Change>,
    /// The duration that 90 % do not exceed, in nanoseconds.
    #[column(title = "p90")]
    pub p90_ns: Option<Change>,
    /// The duration that 99 % do not exceed, in nanoseconds.
    #[column(title = "p99")]
    pub p99_ns: Option<Change>,
    /// The duration that 99.9 % do not exceed, in nanoseconds.
    #[column(title = "p99.9")]
    pub p99_9_ns: Option<Change>,
    /// The longest duration, in nanoseconds. Its interval is only a hint: no resampling can show a detour longer
    /// than those that happened (Bickel & Freedman, Ann. Statist. 9, 1981).
    #[column(title = "max")]
    pub max_ns: Option<Change>,
}

/// One figure on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The value before.
    pub a: f64,
    /// The value after.
    pub b: f64,
    /// b − a, in the unit of the figure.
    pub difference: f64,
    /// The lower end of the 95 % confidence interval of the difference.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// The conclusion from the interval.
    pub verdict: Verdict,
}

impl AsValue for Change {
    const KIND: ValueKind = ValueKind::F64;

    fn value(&self) -> Value {
        Value::F64(self.difference)
    }
}

impl Changes {
    /// Each figure with its column, without those that are missing because a side has no detours.
    pub fn figures(&self) -> impl Iterator<Item = (Column, &Change)> {
        let durations = [&self.p50_ns, &self.p90_ns, &self.p99_ns, &self.p99_9_ns, &self.max_ns];
        let first = [Some(&self.overhead_percent), Some(&self.rate_per_s)];
        let changes = first.into_iter().chain(durations.map(Option::as_ref));
        Self::columns().into_iter().zip(changes).filter_map(|(column, change)| Some((column, change?)))
    }
}

/// The conclusion from a confidence interval of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Verdict {
    /// b is lower than a by more than chance explains.
    #[serde(rename = "lower")]
    Lower,
    /// b is higher than a by more than chance explains.
    #[serde(rename = "higher")]
    Higher,
    /// The interval holds zero.
    #[serde(rename = "no measurable difference")]
    NoMeasurableDifference,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::NoMeasurableDifference => "not resolved",
        })
    }
}

impl Change {
    /// A change from `a` to `b`, with the range of its error.
    pub(super) fn new(a: f64, b: f64, error: RangeInclusive<f64>) -> Self {
        let difference = b - a;
        let (low, high) = (difference + error.start(), difference + error.end());
        let verdict = if high < 0.0 {
            Verdict::Lower
        } else if low > 0.0 {
            Verdict::Higher
        } else {
            Verdict::NoMeasurableDifference
        };
        Self { a, b, difference, low, high, verdict }
    }

    /// Whether the difference is at least twice as far from zero as its interval reaches: so far that one in many CPUs does not get there by
    /// chance.
    pub fn is_sure(&self) -> bool {
        let half_width = (self.high - self.difference).max(self.difference - self.low);
        self.verdict != Verdict::NoMeasurableDifference && self.difference.abs() > 2.0 * half_width
    }

    /// The change in percent of a; `None` if a is zero.
    pub fn percent(&self) -> Option<f64> {
        (self.a > 0.0).then(|| 100.0 * self.difference / self.a)
    }
}

/// Two densities on one grid: Parzen windows of one width over log10(duration in ns), as De et al. 2008 plot them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Densities {
    /// The grid: evenly spaced values of log10(duration in ns).
    pub log10_ns: Vec<f64>,
    /// The density before, per decade.
    pub a: Vec<f64>,
    /// The density after, per decade.
    pub b: Vec<f64>,
    /// The width of the windows, in decades.
    pub bandwidth_decades: f64,
}

#[cfg(test)]
mod tests;
