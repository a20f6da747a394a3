//! The document of the fixed work quantum benchmark.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Warning;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.bench-fwq/2";

/// The quanta of all ranks in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fwq {
    /// Always `quell.bench-fwq/2`.
    pub schema: String,
    /// Duration of a quantum without noise.
    pub quantum_ns: u64,
    /// Whether that is the shortest quantum of all ranks, because none was given.
    pub quantum_is_shortest: bool,
    /// Number of iterations that all ranks finished.
    pub iterations: u64,
    /// Mean over these iterations of the longest quantum of any rank, over the noise-free quantum, less one, in percent: the loss of
    /// a program that waits for its slowest rank after each quantum. vpsum ends each quantum with a barrier and reports a
    /// "mean slow down" whose formula IBM does not state; this is the one that the barrier gives (the `max` of De et al. 2008, eq. 3).
    /// Null if there is no such iteration, or if the order of the quanta is not known.
    pub mean_slowdown_percent: Option<f64>,
    /// One entry per rank.
    pub ranks: Vec<RankQuanta>,
    /// All ranks' quanta in bins of 1 us, as in PSNAP, without empty bins.
    pub histogram: Vec<Bin>,
    /// Number of spikes on all ranks: quanta far above the rank's median.
    pub spikes_total: u64,
    /// Sum of their excess over the noise-free quantum.
    pub spikes_excess_ns: u64,
    /// The part of that excess that sources explain; null if no rank's sources are known.
    pub spikes_explained_ns: Option<u64>,
    /// The sources that took it, by time.
    pub spike_sources: Vec<SpikeSource>,
    /// The longest spikes, longest first; at most 1,000, and none of ranks whose quanta have no known order.
    pub spikes: Vec<Spike>,
    /// What limits the figures.
    pub warnings: Vec<Warning>,
}

/// The quanta of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankQuanta {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: Option<String>,
    /// Number of quanta. If it is zero, all that follows is zero.
    pub quanta: u64,
    /// Shortest.
    pub min_ns: u64,
    /// The 10th percentile: a tenth of the quanta are at most this.
    pub p10_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Standard deviation of the sample.
    pub stddev_ns: f64,
    /// Noise overhead: time above the noise-free quantum / all time, in percent. Negative if the rank was faster than
    /// when its work was calibrated.
    pub overhead_percent: f64,
    /// Mean over the noise-free quantum, less one, in percent: the loss of the rank on its own.
    pub slowdown_percent: f64,
    /// Quanta above this are spikes: the median plus six times the spread of the undisturbed half (standard deviations of a
    /// normal distribution, from the distance of the 10th percentile to the median), and at least one hundredth of the quantum.
    pub spike_above_ns: u64,
    /// Number of spikes.
    pub spikes: u64,
}

/// A bin of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bin {
    /// Lower bound; the bin is 1 us wide.
    pub from_ns: u64,
    /// Number of quanta in it.
    pub count: u64,
}

/// A quantum far above the median.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spike {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: Option<String>,
    /// The CPU.
    pub cpu: u32,
    /// Number of the quantum.
    pub iteration: u64,
    /// When it began, relative to the zero of the host's recording.
    pub start_ns: u64,
    /// When it began by the host's wall clock, in ns since 1970: for comparison with logs.
    pub start_unix_ns: Option<u64>,
    /// Its duration.
    pub compute_ns: u64,
    /// Its excess over the noise-free quantum.
    pub excess_ns: u64,
    /// The part of the excess that sources explain; null if they are not known.
    pub explained_ns: Option<u64>,
    /// What took the CPU during the spike, by time; at most 5.
    pub takers: Vec<Taker>,
}

/// What one source took in a spike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taker {
    /// The source: untrusted text.
    pub source: String,
    /// The task's id if the source is a task; 0 otherwise.
    pub pid: u32,
    /// Time that it took, net of what interrupted it.
    pub net_ns: u64,
    /// When its longest interval in the spike began.
    pub longest_start_ns: u64,
}

/// What one source took in all spikes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SpikeSource {
    /// The source: untrusted text. Tasks of one name count as one.
    #[column(name)]
    pub source: String,
    /// Number of spikes of which it took the most time.
    #[column(title = "spikes, as main source")]
    pub spikes: u64,
    /// Time that it took in all spikes.
    #[column(title = "took")]
    pub net_ns: u64,
    /// That time, in percent of the excess of the spikes whose sources are known.
    #[column(title = "share of excess", percent, precision = 1, suffix = " %")]
    pub percent: f64,
}
