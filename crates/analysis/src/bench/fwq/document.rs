//! What the fixed work quantum benchmark says, as a document.

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
    /// What a quantum takes without noise.
    pub quantum_ns: u64,
    /// Whether that is only the shortest quantum of all ranks, as none was given.
    pub quantum_is_shortest: bool,
    /// Iterations that all ranks did.
    pub iterations: u64,
    /// Mean over these iterations of the longest quantum of any rank, over the noise-free quantum, less one, in percent: what a
    /// program that waits for its slowest rank after each quantum loses. vpsum ends each quantum with a barrier and reports a
    /// "mean slow down" whose formula IBM does not state; this is the one that the barrier gives (the `max` of De et al. 2008, eq. 3).
    /// Null where there is no such iteration, or the order of the quanta is not known.
    pub mean_slowdown_percent: Option<f64>,
    /// One entry a rank.
    pub ranks: Vec<RankQuanta>,
    /// All ranks' quanta in bins of 1 us, as PSNAP has them; empty bins are left out.
    pub histogram: Vec<Bin>,
    /// Spikes on all ranks: quanta far above the rank's usual ones.
    pub spikes_total: u64,
    /// What they took above the noise-free quantum, all together.
    pub spikes_excess_ns: u64,
    /// What of that sources explain; null where no rank's sources are known.
    pub spikes_explained_ns: Option<u64>,
    /// Who took it, most time first.
    pub spike_sources: Vec<SpikeSource>,
    /// The longest spikes, longest first; 1,000 at most, and none of ranks whose quanta have no known order.
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
    /// How many quanta. With none, all that follows is zero.
    pub quanta: u64,
    /// Shortest.
    pub min_ns: u64,
    /// The quiet tenth: a tenth of the quanta are at most this.
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
    /// Noise overhead: time above the noise-free quantum / all time, in percent. Below zero where the rank was faster than
    /// when its work was calibrated.
    pub overhead_percent: f64,
    /// Mean over the noise-free quantum, less one, in percent: what the rank loses on its own.
    pub slowdown_percent: f64,
    /// Quanta above this are spikes: the median and six times the spread of the undisturbed half (standard deviations of a
    /// normal law, from the distance of the 10th percentile to the median), one hundredth of the quantum at least.
    pub spike_above_ns: u64,
    /// Spikes.
    pub spikes: u64,
}

/// A bin of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bin {
    /// Where it begins; it is 1 us wide.
    pub from_ns: u64,
    /// Quanta in it.
    pub count: u64,
}

/// A quantum far above the usual ones.
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
    /// When it began, from the zero of the host's recording.
    pub start_ns: u64,
    /// When it began by the host's wall clock, ns since 1970: to look it up in the logs.
    pub start_unix_ns: Option<u64>,
    /// How long it took.
    pub compute_ns: u64,
    /// How far that is above the noise-free quantum.
    pub excess_ns: u64,
    /// What of the excess the sources explain; null where they are not known.
    pub explained_ns: Option<u64>,
    /// Who took the CPU meanwhile, most time first; 5 at most.
    pub takers: Vec<Taker>,
}

/// What one source took of a spike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taker {
    /// The source: hostile input.
    pub source: String,
    /// The task's id where it is a task; 0 otherwise.
    pub pid: u32,
    /// Time that it took, net of what interrupted it.
    pub net_ns: u64,
    /// When its longest interval in the spike began.
    pub longest_start_ns: u64,
}

/// What one source did to all spikes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SpikeSource {
    /// The source: hostile input. Tasks of one name count as one.
    #[column(name)]
    pub source: String,
    /// Spikes of which it took most.
    #[column(title = "made most of")]
    pub spikes: u64,
    /// Time that it took of all spikes.
    #[column(title = "took")]
    pub net_ns: u64,
    /// That time, in percent of the excess of the spikes whose sources are known.
    #[column(title = "of the excess", percent, precision = 1, suffix = " %")]
    pub percent: f64,
}
