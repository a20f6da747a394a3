//! The document that `quell compare --json` prints.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Warning;
use crate::stats::Summary;

/// The name of the document's form.
pub const SCHEMA: &str = "quell.compare/2";

/// Two recordings, a before and b after, compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The form of this document: `quell.compare/2`.
    pub schema: &'static str,
    /// The recording before.
    pub a: SideDocument,
    /// The recording after.
    pub b: SideDocument,
    /// The Kullback-Leibler divergence D(b‖a) of the densities, in nats: how much b surprises who knows a. Null if
    /// a side has no detours.
    pub kl_nats: Option<f64>,
    /// The other way: D(a‖b), in nats.
    pub kl_reverse_nats: Option<f64>,
    /// The Wasserstein-1 distance of the durations, in nanoseconds. Null if only one side has detours.
    pub wasserstein_ns: Option<f64>,
    /// The figures of all CPUs together, each with its change.
    pub changes: Changes,
    /// The same for each CPU that both sides observed.
    pub cpus: Vec<CpuComparison>,
    /// What makes the two hard to compare, such as lost rows or different thresholds.
    pub warnings: Vec<Warning>,
    /// The densities of the durations, to plot. Null if a side has no detours.
    pub densities: Option<Densities>,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// How many times the recordings were resampled.
    pub replicates: u32,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SideDocument {
    /// How people know it.
    pub name: String,
    /// The CPUs that it observed.
    pub cpus: Vec<u32>,
    /// The longest time that one of them was observed, in nanoseconds.
    pub span_ns: u64,
    /// Noise overhead: time lost to detours over time observed, of all CPUs, in percent.
    pub overhead_percent: f64,
    /// Detours per second of one CPU.
    pub rate_per_s: f64,
    /// How many detours there were, and how long.
    pub detours: Summary,
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Changes {
    /// Noise overhead, in percent of the time observed.
    pub overhead_percent: Change,
    /// Detours per second of one CPU.
    pub rate_per_s: Change,
    /// The median duration, in nanoseconds.
    pub p50_ns: Option<Change>,
    /// The duration that 90 % do not exceed, in nanoseconds.
    pub p90_ns: Option<Change>,
    /// The duration that 99 % do not exceed, in nanoseconds.
    pub p99_ns: Option<Change>,
    /// The duration that 99.9 % do not exceed, in nanoseconds.
    pub p99_9_ns: Option<Change>,
    /// The longest duration, in nanoseconds. Its interval is only a hint: no resampling can show a detour longer
    /// than those that happened (Bickel & Freedman, Ann. Statist. 9, 1981).
    pub max_ns: Option<Change>,
}

/// One figure on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Before.
    pub a: f64,
    /// After.
    pub b: f64,
    /// b − a, in the unit of the figure.
    pub difference: f64,
    /// The lower end of the 95 % confidence interval of the difference.
    pub low: f64,
    /// The upper end of it.
    pub high: f64,
    /// What the interval says.
    pub verdict: Verdict,
}

/// What a confidence interval says of a change.
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
            Self::NoMeasurableDifference => "no measurable difference",
        })
    }
}

impl Change {
    /// A change from `a` to `b`, with the range that its error is in.
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
