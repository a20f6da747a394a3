//! The document that an emulation is.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Warning;
use crate::predict::{NoiseSource, SyncName};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.emulate/2";

/// Phases that really ran, with noise that was really burned, for more ranks than the machine has CPUs. All lengths are as if the scale
/// were 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Emulation {
    /// Always `quell.emulate/2`.
    pub schema: String,
    /// Noise-free work per phase and rank, in nanoseconds.
    pub quantum_ns: u64,
    /// How the nodes' noise lines up.
    pub sync: SyncName,
    /// Nodes start up to this many nanoseconds later than the first.
    pub skew_ns: u64,
    /// Node clocks run fast or slow by up to this many parts per million.
    #[serde(default)]
    pub drift_ppm: f64,
    /// Phases asked for per scale; each point says how many it ran.
    pub phases: u64,
    /// Where nodes stand is drawn with it, as in a prediction with the same seed.
    pub seed: u64,
    /// Noise and work were stretched by this factor while they ran; every length here is divided by it again.
    pub scale: f64,
    /// The share of its trace after which a rank's run ended; null for none.
    pub share: Option<f64>,
    /// The traces that the noise is drawn from, in the order in which nodes take them.
    pub noise: Vec<NoiseSource>,
    /// The share of detours, in percent, that are long enough at this scale to be burned one by one.
    pub coverage_percent: f64,
    /// The machine that ran it.
    pub machine: Machine,
    /// How long it was expected to take without the machine's own noise, in nanoseconds.
    pub expected_ns: u64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// One per scale that ran, in the order asked for.
    pub points: Vec<Point>,
    /// What limits the emulation.
    pub warnings: Vec<Warning>,
}

/// The machine that ran it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Its name, if it has one.
    pub host: Option<String>,
    /// Its processor, if it says.
    pub processor: Option<String>,
    /// The CPUs that ran the phases, a thread bound to each.
    pub cpus: Vec<u32>,
    /// The clock that measured them.
    pub clock: String,
    /// A run with more of the machine's own noise is done again, in nanoseconds as it ran.
    pub limit_ns: u64,
    /// A run is done at most so often.
    pub tries: u32,
}

/// One scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Point {
    /// Virtual ranks.
    #[column]
    pub ranks: u64,
    /// Phases run, over all independent runs.
    pub phases: u64,
    /// AvgMaxQT with noise: the mean over phases of the slowest rank's compute time, in nanoseconds.
    #[column(title = "mean MaxQT")]
    pub mean_max_qt_ns: f64,
    /// The longest of them, in nanoseconds.
    pub longest_max_qt_ns: f64,
    /// AvgMaxQT without noise, in nanoseconds: the mean largest of so many quanta that ran without noise in between.
    pub base_ns: f64,
    /// How many such quanta there were.
    pub references: u64,
    /// Their median, in nanoseconds.
    pub reference_p50_ns: f64,
    /// Their 99.9 % point above their median, in nanoseconds: how far a maximum over ranks is off at most for what measuring alone does.
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
    /// 100 × (emulated − predicted) / predicted. A phase that is measured some nanoseconds longer than it is predicted moves all ranks on by
    /// them, and where a detour is then met or missed both go different ways through the trace: this difference holds that chance too.
    #[column(plus)]
    pub difference_percent: Option<f64>,
    /// The slowdown by the progress clock for the very places at which the emulation's ranks stood in each phase, in percent.
    pub in_place_percent: Option<f64>,
    /// 100 × (emulated − that) / that: what burning and measuring alone make.
    #[column(title = "in place %", plus)]
    pub difference_in_place_percent: Option<f64>,
    /// How long the phases took to run, in nanoseconds.
    pub wall_ns: u64,
    /// What the machine's own noise did.
    #[column(title = "again", percent, precision = 1, suffix = " %", with = OwnNoise::again_percent)]
    pub own: OwnNoise,
}

/// What the noise of the machine itself did to the emulation, and what was done about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnNoise {
    /// Phases of single ranks that count.
    pub runs: u64,
    /// How many of them were run more than once, for the machine's own noise or a change of the core's speed.
    pub runs_again: u64,
    /// How many runs were thrown away for it.
    pub thrown_away: u64,
    /// Runs that count although they were disturbed on every try.
    pub disturbed: u64,
    /// Runs with own noise that was taken out of their time.
    pub with_own: u64,
    /// How much that was in all, in nanoseconds.
    pub own_ns: f64,
    /// By how much a run's time was changed in the mean for the speed at which the core ran, in nanoseconds, up or down.
    pub mean_speed_correction_ns: f64,
}

impl OwnNoise {
    fn again_percent(&self) -> f64 {
        100.0 * self.runs_again as f64 / self.runs.max(1) as f64
    }
}
