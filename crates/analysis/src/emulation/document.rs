//! The document of an emulation.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Warning;
use crate::predict::{NoiseSource, SyncName};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.emulate/2";

/// An emulation: phases that actually ran, with burned noise, for more ranks than the machine has CPUs. All lengths are as if the scale
/// were 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Emulation {
    /// Always `quell.emulate/2`.
    pub schema: String,
    /// Noise-free work per phase and rank, in nanoseconds.
    pub quantum_ns: u64,
    /// How the nodes' noise lines up.
    pub sync: SyncName,
    /// Maximum delay of a node's start after the first node's, in nanoseconds.
    pub skew_ns: u64,
    /// Maximum drift of a node's clock, fast or slow, in parts per million.
    #[serde(default)]
    pub drift_ppm: f64,
    /// Number of phases requested per scale; each point states how many it ran.
    pub phases: u64,
    /// The seed of the nodes' places, which are those of a prediction with the same seed.
    pub seed: u64,
    /// The factor by which noise and work were scaled while they ran; every length here is divided by it again.
    pub scale: f64,
    /// The share of its trace after which a rank's run ended; null if there is none.
    pub share: Option<f64>,
    /// The traces that the noise is drawn from, in the order in which nodes use them.
    pub noise: Vec<NoiseSource>,
    /// The share of detours, in percent, that are long enough at this scale to be burned individually.
    pub coverage_percent: f64,
    /// The machine on which it ran.
    pub machine: Machine,
    /// Expected duration without the machine's own noise, in nanoseconds.
    pub expected_ns: u64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// One per scale that ran, in the order of the request.
    pub points: Vec<Point>,
    /// What limits the emulation.
    pub warnings: Vec<Warning>,
}

/// The machine on which an emulation ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Its name, if it has one.
    pub host: Option<String>,
    /// Its processor, if known.
    pub processor: Option<String>,
    /// The CPUs that ran the phases, with one thread bound to each.
    pub cpus: Vec<u32>,
    /// The clock that measured them.
    pub clock: String,
    /// Maximum of the machine's own noise in a run, in nanoseconds as it ran; above it the run is repeated.
    pub limit_ns: u64,
    /// Maximum number of tries of a run.
    pub tries: u32,
}

/// One scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Point {
    /// Number of virtual ranks.
    #[column]
    pub ranks: u64,
    /// Number of phases that ran, over all independent runs.
    pub phases: u64,
    /// AvgMaxQT with noise: the mean over phases of the slowest rank's compute time, in nanoseconds.
    #[column(title = "mean MaxQT")]
    pub mean_max_qt_ns: f64,
    /// The longest MaxQT, in nanoseconds.
    pub longest_max_qt_ns: f64,
    /// AvgMaxQT without noise, in nanoseconds: the mean maximum of as many quanta as there are ranks, among those that ran without noise.
    pub base_ns: f64,
    /// Number of such quanta.
    pub references: u64,
    /// Their median, in nanoseconds.
    pub reference_p50_ns: f64,
    /// Their 99.9th percentile less their median, in nanoseconds: the maximum error of a maximum over ranks by measurement alone.
    pub reference_spread_ns: f64,
    /// 100 × (AvgMaxQT with noise − without) / without (De et al. 2008, eq. 3).
    #[column(precision = 3)]
    pub slowdown_percent: f64,
    /// 95 % confidence interval of the slowdown from batches of phases, low and high, in percent.
    #[column(title = "95 % interval", precision = 3)]
    pub ci95_percent: Option<[f64; 2]>,
    /// The slowdown that `quell predict` gives for the same phases, in percent.
    #[column(precision = 3)]
    pub predicted_percent: Option<f64>,
    /// 100 × (emulated − predicted) / predicted. A phase that takes some nanoseconds more than predicted shifts all ranks by
    /// that time. If they then hit or miss a detour, emulation and prediction take different paths through the trace, which adds to this.
    #[column(plus)]
    pub difference_percent: Option<f64>,
    /// The slowdown by the progress clock from the exact places of the emulation's ranks in each phase, in percent.
    pub in_place_percent: Option<f64>,
    /// 100 × (emulated − that) / that: the error of burning and measuring alone.
    #[column(title = "in place %", plus)]
    pub difference_in_place_percent: Option<f64>,
    /// Duration of the phases, in nanoseconds.
    pub wall_ns: u64,
    /// The effect of the machine's own noise.
    #[column(title = "repeated", percent, precision = 1, suffix = " %", with = OwnNoise::again_percent)]
    pub own: OwnNoise,
}

/// The effect of the machine's own noise on the emulation, and how it was handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnNoise {
    /// Number of phases of single ranks that count.
    pub runs: u64,
    /// Number of these that were repeated, because of the machine's own noise or a change of the core's speed.
    pub runs_again: u64,
    /// Number of runs that were discarded for that.
    pub thrown_away: u64,
    /// Number of runs that count although they were disturbed on every try.
    pub disturbed: u64,
    /// Number of runs with own noise that was subtracted from their time.
    pub with_own: u64,
    /// Sum of that noise, in nanoseconds.
    pub own_ns: f64,
    /// Mean correction of a run's time for the speed of the core, in nanoseconds, up or down.
    pub mean_speed_correction_ns: f64,
}

impl OwnNoise {
    fn again_percent(&self) -> f64 {
        100.0 * self.runs_again as f64 / self.runs.max(1) as f64
    }
}
