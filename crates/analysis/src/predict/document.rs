//! The document of a prediction.

use quell_recording::columns::{Columns, describe};
use quell_recording::warning::typed_or_sentences;
use quell_sim::SyncMode;
use quell_sim::loggops::{NamedNetwork, Rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NodeNoise;
use crate::Warning;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.predict/2";

/// A predicted curve: the cost of the noise at each scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Always `quell.predict/2`.
    pub schema: String,
    /// Noise-free work per phase and rank, in nanoseconds.
    pub quantum_ns: u64,
    /// The operation that ends a phase: `max`, the slowest rank at no cost of its own (De et al. 2008, eq. 3), or the name of the pattern of
    /// messages that follows the work.
    pub op: String,
    /// The network of these messages; null for `max`.
    pub network: Option<MessageFacts>,
    /// How the nodes' noise lines up.
    pub sync: SyncName,
    /// Number of phases requested per scale; each point states how many it ran.
    pub phases: u64,
    /// The random seed: the same seed reproduces the result bit for bit.
    pub seed: u64,
    /// Maximum delay of a node's start after the first node's, in nanoseconds.
    pub skew_ns: u64,
    /// Maximum drift of a node's clock, fast or slow, in parts per million.
    pub drift_ppm: f64,
    /// Maximum number of resampled runs for a confidence interval; huge traces and scales get fewer, as their points state.
    pub replicates: u64,
    /// How the noise differs from the recorded noise, in words; empty if it does not.
    #[serde(default)]
    pub what_if: Vec<String>,
    /// The traces that the noise is drawn from, in the order in which nodes use them.
    pub noise: Vec<NoiseSource>,
    /// Maximum number of ranks for which the traces hold ten windows each, of a quantum and the longest detour; beyond, the prediction extrapolates.
    pub supported_ranks: u64,
    /// The curve, in the order of the requested scales.
    pub points: Vec<Point>,
    /// What limits the prediction.
    #[serde(deserialize_with = "typed_or_sentences")]
    pub warnings: Vec<Warning>,
}

/// How the nodes' noise lines up; the CPUs of one node always stay as they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncName {
    /// Each node starts at its own offset in the trace.
    None,
    /// All nodes start at the same place; skew and drift then separate them.
    Start,
    /// All nodes are at the same place, with a new place in every phase.
    Phase,
}

impl SyncName {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::None, Self::Start, Self::Phase];

    /// Its name as an argument.
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
    /// Number of CPUs that were recorded together.
    pub cpus: u64,
    /// The time for which all of them were observed, in nanoseconds.
    pub span_ns: u64,
    /// Number of detours of all its CPUs, without quell's own.
    pub detours: u64,
    /// Time lost to detours over time observed, in percent, over all its CPUs.
    pub overhead_percent: f64,
}

/// The prediction for one scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Point {
    /// Number of ranks, one per CPU.
    #[column(key)]
    pub ranks: u64,
    /// Number of phases simulated, over all independent runs.
    #[column(data, sweep = "phases_run")]
    pub phases: u64,
    /// Number of runs on resampled traces for the confidence interval.
    #[column(data, sweep = "replicates_run")]
    pub replicates: u64,
    /// The length of a phase without noise, in nanoseconds: the quantum, or with messages the mean of quantum and messages together.
    #[column(title = "without noise", minor, sweep)]
    pub base_phase_ns: u64,
    /// The mean phase, in nanoseconds.
    #[column(sweep)]
    pub mean_phase_ns: f64,
    /// 100 × (mean phase − base) / base (De et al. 2008, eq. 3).
    #[column(key, sweep)]
    pub slowdown_percent: f64,
    /// 95 % confidence interval of the slowdown, low and high, in percent; absent where the traces do not resolve it.
    #[column(title = "95 % interval", absent = "not resolved", sweep)]
    pub ci95_percent: Option<[f64; 2]>,
    /// The longest phase, in nanoseconds. With messages, where phases overlap, the longest mean phase of one of the runs.
    #[column(title = "longest phase", page, sweep)]
    pub max_phase_ns: u64,
    /// Whether the traces support this number of ranks.
    #[column(title = "within the trace", yes = "yes", no = "no: extrapolated", sweep)]
    pub supported: bool,
}

/// The messages that end a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageFacts {
    /// Bytes of a message, of the vector that is reduced, or of each rank's block, depending on the pattern.
    pub bytes: u64,
    /// The cost of a message.
    pub net: NamedNetwork,
    /// When a message is handled.
    #[serde(default)]
    pub progress: MessageProgress,
}

/// When a message that has arrived is handled by its rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MessageProgress {
    /// When it arrives, as by an MPI with a progress thread.
    #[default]
    Async,
    /// Once its receive is posted, in the call that waits for it.
    Call,
}

impl From<Rules> for MessageProgress {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::Call => Self::Call,
            Rules::Physical | Rules::Compatible => Self::Async,
        }
    }
}

impl NoiseSource {
    /// The facts about a node's noise.
    pub fn from_node(node: &NodeNoise) -> Self {
        Self {
            name: node.name.clone(),
            cpus: node.traces.len() as u64,
            span_ns: node.span().map_or(0, |span| span.length().as_nanos()),
            detours: node.detours(),
            overhead_percent: node.overhead_percent(),
        }
    }
}
