//! What is found in a fleet: the document of `quell.fleet/2`.

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
    /// The folder.
    pub folder: String,
    /// Nodes that were read.
    pub nodes: u64,
    /// Nodes of which the sources of noise are known.
    pub nodes_with_sources: u64,
    /// Recordings that could not be read.
    pub unread: Vec<Unread>,
    /// Nodes with more noise than the rest, by some source; those that cost most first, or where no cost was asked for those with most
    /// noise above what is usual.
    pub unlike: Vec<UnlikeNode>,
    /// What is usual, by source; most time first.
    pub typical: Vec<TypicalSource>,
    /// In what else some nodes differ from most. No fault of theirs.
    pub differences: Vec<Difference>,
    /// What the mixture of nodes costs; null where that was not asked for, or no node holds detours.
    pub cost: Option<Cost>,
    /// What a reader of the figures must know.
    pub warnings: Vec<Warning>,
}

/// A node that is unlike the rest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UnlikeNode {
    /// The recording's name.
    pub node: String,
    /// Its host.
    pub host: Option<String>,
    /// By which sources, the one with most time above what is usual first.
    pub why: Vec<Why>,
    /// Its part of what the mixture loses at the scale of the whole fleet, as in [`SlowNode`]; null where no cost is known.
    pub delay_share_percent: Option<f64>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Events for each second of a CPU.
    Rate,
    /// Nanoseconds for each second of a CPU.
    Time,
    /// Events a second on the CPU with most.
    WorstCpuRate,
    /// Nanoseconds a second on the CPU with most, its two longest events left out.
    WorstCpuTime,
    /// The longest event, in nanoseconds.
    Longest,
}

/// By what a node is unlike the rest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Why {
    /// The source, with the numbers of workers left out (`task:kworker`): hostile input. `all noise`; `unattributed`; or, where sources
    /// are unknown, a band of durations, `detours around 1ms`.
    pub source: String,
    /// What is high.
    pub figure: Figure,
    /// The node's value.
    pub value: f64,
    /// The median of all nodes.
    pub typical: f64,
    /// How many times that it is; null where that is nothing.
    pub times_typical: Option<f64>,
    /// Nodes on which this source was seen at all.
    pub seen_on: u64,
    /// The source's time above what is usual, in ns for each second of a CPU.
    pub excess_ns_per_s: f64,
    /// All this in a sentence.
    pub says: String,
}

/// A source on the median node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct TypicalSource {
    /// The source, as in [`Why`].
    #[column(title = "usual", name)]
    pub source: String,
    /// Nodes on which it was seen.
    #[column]
    pub nodes: u64,
    /// Events for each second of a CPU, median of all nodes.
    #[column(title = "per s and CPU")]
    pub per_s: f64,
    /// Time for each second of a CPU, median of all nodes.
    #[column(title = "of each s", time)]
    pub ns_per_s: f64,
    /// The longest event of a node, median of all nodes.
    #[column]
    pub longest_ns: u64,
}

/// Something in which some nodes are not as most are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// `method`, `CPUs`, `span`, `kernel`, `clock`, `state` or `lost rows`.
    pub what: String,
    /// As most nodes have it.
    pub usual: String,
    /// As these have it.
    pub value: String,
    /// How many.
    pub nodes: u64,
    /// The first of them.
    pub names: Vec<String>,
}

/// What the nodes cost a bulk-synchronous program whose nodes are not synchronised.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    /// Work per phase and rank.
    pub quantum_ns: u64,
    /// The seed of the places at which quanta begin.
    pub seed: u64,
    /// Nodes whose detours are known; the others are in none of these figures.
    pub nodes: u64,
    /// Ranks that fill them once.
    pub ranks: u64,
    /// The node whose own cost is in the middle.
    pub median_node: String,
    /// One entry a scale.
    pub scales: Vec<Scale>,
    /// What goes with the worst nodes.
    pub worst_share: Vec<WorstShare>,
    /// The nodes that hold up most, at the scale of the whole fleet.
    pub slowest: Vec<SlowNode>,
}

/// A number of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Scale {
    /// Ranks, one a CPU.
    #[column]
    pub ranks: u64,
    /// Nodes that they fill. Fewer than were recorded are neighbours by name, the mean over where they begin; more take the recorded
    /// ones in turn.
    #[column]
    pub nodes: u64,
    /// Slowdown on the nodes as they are.
    #[column(title = "as they are", suffix = " %")]
    pub mixture_percent: f64,
    /// Slowdown if all were like the median node.
    #[column(title = "all as the median node", suffix = " %")]
    pub median_percent: f64,
    /// Slowdown if the nodes that are unlike the rest were like the mean of the others.
    #[column(title = "without the unlike", suffix = " %")]
    pub without_unlike_percent: f64,
}

/// What the worst nodes do to a job on the whole fleet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorstShare {
    /// So many of the slowest nodes …
    pub nodes: u64,
    /// … make so much of the slowdown: this part of it goes when they are replaced by the median node.
    pub share_percent: f64,
}

/// A node that holds up the others.
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
    /// The share of all phases in which it is the last.
    #[column(title = "of phases", precision = 1, suffix = " %")]
    pub holds_up_percent: f64,
    /// The share of all lost time that was lost in those.
    #[column(title = "of lost time", precision = 1, suffix = " %")]
    pub delay_share_percent: f64,
}

/// A recording that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unread {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}
