//! Findings on a fleet: the document of `quell.fleet/2`.

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Warning;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.fleet/2";

/// A fleet of recorded nodes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fleet {
    /// `quell.fleet/2`.
    pub schema: &'static str,
    /// The folder of the recordings.
    pub folder: String,
    /// Number of nodes that were read.
    pub nodes: u64,
    /// Number of nodes whose sources of noise are known.
    pub nodes_with_sources: u64,
    /// Recordings that could not be read.
    pub unread: Vec<Unread>,
    /// Nodes with more noise than the rest, by some source. By cost, or if no cost was requested, by noise in excess of the
    /// typical value.
    pub unlike: Vec<UnlikeNode>,
    /// The typical values by source; most time first.
    pub typical: Vec<TypicalSource>,
    /// Other differences of some nodes from most. They are not faults.
    pub differences: Vec<Difference>,
    /// The cost of the mixture of nodes; null if it was not requested, or no node holds detours.
    pub cost: Option<Cost>,
    /// Warnings for the reader of the figures.
    pub warnings: Vec<Warning>,
}

/// A node that is an outlier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UnlikeNode {
    /// The recording's name.
    pub node: String,
    /// Its host.
    pub host: Option<String>,
    /// The sources that make it an outlier, by time in excess of the typical value.
    pub why: Vec<OutlierCause>,
    /// Its share in the loss of the mixture at the scale of the whole fleet, as in [`SlowNode`]; null if no cost is known.
    pub delay_share_percent: Option<f64>,
}

/// The figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Events per second of a CPU.
    Rate,
    /// Nanoseconds per second of a CPU.
    Time,
    /// Events per second on the CPU with most.
    WorstCpuRate,
    /// Nanoseconds per second on the CPU with most, without its two longest events.
    WorstCpuTime,
    /// The longest event, in nanoseconds.
    Longest,
}

/// Why a node is an outlier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OutlierCause {
    /// The source, without the numbers of workers (`task:kworker`): untrusted text. `all noise`; `unattributed`; or, if sources
    /// are unknown, a band of durations, `detours around 1ms`.
    pub source: String,
    /// The figure that is high.
    pub figure: Figure,
    /// The node's value.
    pub value: f64,
    /// The median of all nodes.
    pub typical: f64,
    /// The ratio of the value to the median; null if the median is zero.
    pub times_typical: Option<f64>,
    /// Number of nodes on which this source was seen at all.
    pub seen_on: u64,
    /// The source's time in excess of the typical value, in ns per second of a CPU.
    pub excess_ns_per_s: f64,
    /// All this in a sentence.
    pub says: String,
}

/// A source on the median node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TypicalSource {
    /// The source, as in `OutlierCause`.
    #[column(title = "typical source", name)]
    pub source: String,
    /// Number of nodes on which it was seen.
    #[column]
    pub nodes: u64,
    /// Events per second of a CPU, median of all nodes.
    #[column(title = "per s and CPU")]
    pub per_s: f64,
    /// Time per second of a CPU, median of all nodes.
    #[column(title = "per s of CPU", time)]
    pub ns_per_s: f64,
    /// The longest event of a node, median of all nodes.
    #[column]
    pub longest_ns: u64,
}

/// A property in which some nodes differ from most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// `method`, `CPUs`, `span`, `kernel`, `clock`, `state` or `lost rows`.
    pub what: String,
    /// The value on most nodes.
    pub usual: String,
    /// The value on these nodes.
    pub value: String,
    /// Number of these nodes.
    pub nodes: u64,
    /// The names of the first few.
    pub names: Vec<String>,
}

/// The cost of the nodes' noise for a bulk-synchronous program whose nodes are not synchronised.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    /// Noise-free work per phase and rank.
    pub quantum_ns: u64,
    /// The seed of the places at which quanta begin.
    pub seed: u64,
    /// Number of nodes whose detours are known; the others are in none of these figures.
    pub nodes: u64,
    /// Number of ranks that fill them once.
    pub ranks: u64,
    /// The node whose own cost is the median.
    pub median_node: String,
    /// One entry per scale.
    pub scales: Vec<Scale>,
    /// The share of the worst nodes in the slowdown.
    pub worst_share: Vec<WorstShare>,
    /// The nodes that delay the others most, at the scale of the whole fleet.
    pub slowest: Vec<SlowNode>,
}

/// A number of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Scale {
    /// Number of ranks, one per CPU.
    #[column]
    pub ranks: u64,
    /// Number of nodes that they fill. If that is less than were recorded, they are neighbours by name, and the result is the mean over
    /// where they begin; if more, they use the recorded ones in turn.
    #[column]
    pub nodes: u64,
    /// Slowdown with the nodes as they are.
    #[column(title = "nodes as they are", suffix = " %")]
    pub mixture_percent: f64,
    /// Slowdown if all nodes were like the median node.
    #[column(title = "all as the median node", suffix = " %")]
    pub median_percent: f64,
    /// Slowdown if the outliers were like the mean of the other nodes.
    #[column(title = "without outliers", suffix = " %")]
    pub without_unlike_percent: f64,
}

/// The effect of the worst nodes on a job that runs on the whole fleet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorstShare {
    /// Number of the slowest nodes.
    pub nodes: u64,
    /// Their share in the slowdown: the part that disappears if the median node replaces them.
    pub share_percent: f64,
}

/// A node that delays the others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SlowNode {
    /// The recording's name.
    pub node: String,
    /// Its host.
    pub host: Option<String>,
    /// Slowdown of a program on this node alone.
    #[column(title = "alone", suffix = " %")]
    pub own_percent: f64,
    /// The share of all phases in which it is last.
    #[column(title = "share of phases", precision = 1, suffix = " %")]
    pub holds_up_percent: f64,
    /// The share of all lost time that was lost in those phases.
    #[column(title = "share of lost time", precision = 1, suffix = " %")]
    pub delay_share_percent: f64,
}

/// A recording that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unread {
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: String,
}
