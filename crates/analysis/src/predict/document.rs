//! The document that a prediction is.

use quell_recording::columns::{Columns, describe};
use quell_recording::warning::typed_or_sentences;
use quell_sim::SyncMode;
use quell_sim::loggops::Net;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NodeNoise;
use crate::Warning;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.predict/2";

/// A predicted curve: what the noise costs at each scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Always `quell.predict/2`.
    pub schema: String,
    /// Noise-free work per phase and rank, in nanoseconds.
    pub quantum_ns: u64,
    /// What ends a phase: `max`, the slowest rank at no cost of its own (De et al. 2008, eq. 3), or the name of the pattern of
    /// messages that follows the work.
    pub op: String,
    /// The network that these messages take; null for `max`.
    pub network: Option<NetworkFacts>,
    /// How the nodes' noise lines up.
    pub sync: SyncName,
    /// Phases asked for per scale; each point says how many it ran.
    pub phases: u64,
    /// Run again with it for the same bits.
    pub seed: u64,
    /// Nodes start up to this many nanoseconds later than the first.
    pub skew_ns: u64,
    /// Node clocks run fast or slow by up to this many parts per million.
    pub drift_ppm: f64,
    /// The most resampled runs behind a confidence interval; huge traces and scales get fewer, as their points say.
    pub replicates: u64,
    /// How the noise is otherwise than it was recorded, in words; empty where it is not.
    #[serde(default)]
    pub what_if: Vec<String>,
    /// The traces that the noise is drawn from, in the order in which nodes take them.
    pub noise: Vec<NoiseSource>,
    /// Up to so many ranks the traces hold ten quanta for each; beyond, the prediction extrapolates.
    pub supported_ranks: u64,
    /// The curve, in the order of the scales asked for.
    pub points: Vec<Point>,
    /// What limits the prediction.
    #[serde(deserialize_with = "typed_or_sentences")]
    pub warnings: Vec<Warning>,
}

/// How the nodes' noise lines up; the CPUs of one node always stay as they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncName {
    /// Each node starts at its own place in the trace.
    None,
    /// All nodes start at the same place; skew and drift then part them.
    Start,
    /// All nodes are at the same place, a new one in every phase.
    Phase,
}

impl SyncName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Start, Self::Phase];

    /// As it is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Start => "start",
            Self::Phase => "phase",
        }
    }
}

impl std::str::FromStr for SyncName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|name| name.as_str() == text);
        known.ok_or_else(|| format!("`{text}` is none of none, start and phase"))
    }
}

impl From<SyncMode> for SyncName {
    fn from(mode: SyncMode) -> Self {
        match mode {
            SyncMode::None => Self::None,
            SyncMode::Start { .. } => Self::Start,
            SyncMode::Phase => Self::Phase,
        }
    }
}

/// One node's traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseSource {
    /// The recording's or the model's name.
    pub name: String,
    /// How many CPUs were recorded together.
    pub cpus: u64,
    /// How long all of them were observed, in nanoseconds.
    pub span_ns: u64,
    /// Detours of all its CPUs, quell's own left out.
    pub detours: u64,
    /// Time lost to detours over time observed, in percent, over all its CPUs.
    pub overhead_percent: f64,
}

/// The prediction for one scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Point {
    /// Ranks, one per CPU.
    #[column(key)]
    pub ranks: u64,
    /// Phases simulated, over all independent runs.
    #[column(data, sweep = "phases_run")]
    pub phases: u64,
    /// Runs on resampled traces behind the confidence interval.
    #[column(data, sweep = "replicates_run")]
    pub replicates: u64,
    /// A phase without noise, in nanoseconds: the quantum, and with messages the mean of what both take.
    #[column(title = "without noise", minor, sweep)]
    pub base_phase_ns: u64,
    /// The mean phase, in nanoseconds.
    #[column(sweep)]
    pub mean_phase_ns: f64,
    /// 100 × (mean phase − base) / base (De et al. 2008, eq. 3).
    #[column(key, sweep)]
    pub slowdown_percent: f64,
    /// 95 % confidence interval of the slowdown, low and high, in percent.
    #[column(title = "95 % interval", absent = "not resampled", sweep)]
    pub ci95_percent: Option<[f64; 2]>,
    /// The longest phase, in nanoseconds. With messages, where phases overlap, the longest mean phase of one of the runs.
    #[column(title = "longest phase", page, sweep)]
    pub max_phase_ns: u64,
    /// Whether the traces speak for so many ranks.
    #[column(title = "within the trace", yes = "yes", no = "no: extrapolated", sweep)]
    pub supported: bool,
}

/// The messages that end a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkFacts {
    /// Bytes of a message, of the vector that is reduced, or of each rank's block, as the pattern says.
    pub bytes: u64,
    /// What a message costs.
    pub net: NetFacts,
}

/// LogGOPS parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetFacts {
    /// The name of the preset, if it is one.
    pub preset: Option<String>,
    /// L, in nanoseconds.
    pub latency_ns: u64,
    /// o, in nanoseconds.
    pub overhead_ns: u64,
    /// g, in nanoseconds.
    pub gap_ns: u64,
    /// G, in nanoseconds per byte.
    pub gap_per_byte_ns: f64,
    /// O, in nanoseconds per byte.
    pub overhead_per_byte_ns: f64,
    /// S: messages of more bytes are sent by rendezvous.
    pub eager_limit_bytes: u64,
}

impl NetFacts {
    /// Of a network, and its preset's name.
    pub fn of(net: &Net, preset: Option<&str>) -> Self {
        Self {
            preset: preset.map(str::to_owned),
            latency_ns: net.latency,
            overhead_ns: net.overhead,
            gap_ns: net.gap,
            gap_per_byte_ns: net.gap_per_byte.as_nanos(),
            overhead_per_byte_ns: net.overhead_per_byte.as_nanos(),
            eager_limit_bytes: net.eager_limit,
        }
    }
}

impl NoiseSource {
    /// What there is to say of a node's noise.
    pub fn of(node: &NodeNoise) -> Self {
        Self {
            name: node.name.clone(),
            cpus: node.traces.len() as u64,
            span_ns: node.span().map_or(0, |span| span.length().as_nanos()),
            detours: node.detours(),
            overhead_percent: node.overhead_percent(),
        }
    }
}
