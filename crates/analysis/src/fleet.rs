//! A fleet: which of many nodes are outliers, and the cost of the mixture of all.
//!
//! Each recording is read once and summarised in a few KiB ([`NodeSummary`]); all findings are derived from the summaries.

mod cost;
mod curve;
mod differences;
mod document;
mod duration_bands;
pub mod hosts;
mod outliers;
mod summary;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use cost::FleetJob;
pub use document::{
    Cost, Difference, Figure, Fleet, OutlierCause, SCHEMA, Scale, SlowNode, TypicalSource, UnlikeNode,
    Unread, WorstShare,
};
pub use outliers::FEWEST_NODES;
pub use summary::NodeSummary;

use crate::Warning;

/// Analyses the nodes together. With a job it includes their cost; they must have been summarised for its quantum.
pub fn fleet(
    folder: String,
    mut nodes: Vec<NodeSummary>,
    unread: Vec<Unread>,
    job: Option<FleetJob>,
) -> Fleet {
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let mut warnings = Vec::new();
    let (whys, typical) = compare(&nodes, &mut warnings);
    let ill: Vec<bool> = whys.iter().map(|whys| !whys.is_empty()).collect();
    warnings.extend(without_curve(&nodes));
    let found = job.and_then(|job| cost::cost(&nodes, &ill, job));
    let (cost, shares) = match found {
        Some((cost, shares)) => (Some(cost), shares),
        None => (None, vec![None; nodes.len()]),
    };
    let mut unlike: Vec<UnlikeNode> = Vec::new();
    for ((node, why), delay_share_percent) in nodes.iter().zip(whys).zip(shares) {
        if !why.is_empty() {
            let (node, host) = (node.name.clone(), node.host.clone());
            unlike.push(UnlikeNode { node, host, why, delay_share_percent });
        }
    }
    let excess = |node: &UnlikeNode| node.why.iter().map(|why| why.excess_ns_per_s).fold(0.0, f64::max);
    unlike.sort_by(|a, b| {
        let share = |node: &UnlikeNode| node.delay_share_percent.unwrap_or(0.0);
        share(b).total_cmp(&share(a)).then(excess(b).total_cmp(&excess(a))).then_with(|| a.node.cmp(&b.node))
    });
    Fleet {
        schema: SCHEMA,
        folder,
        nodes: nodes.len() as u64,
        nodes_with_sources: nodes.iter().filter(|node| node.sources_known).count() as u64,
        unread,
        unlike,
        typical,
        differences: differences::differences(&nodes),
        cost,
        warnings,
    }
}

/// Compares each node with those that were recorded in the same way. The typical values are those of the largest such group.
fn compare(
    nodes: &[NodeSummary],
    warnings: &mut Vec<Warning>,
) -> (Vec<Vec<OutlierCause>>, Vec<TypicalSource>) {
    let mut groups: BTreeMap<(String, bool), Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        groups.entry((node.method.to_string(), node.sources_known)).or_default().push(at);
    }
    if groups.len() > 1 {
        warnings.push(Warning::RecordedDifferently { ways: groups.len() as u64 });
    }
    let mut whys = vec![Vec::new(); nodes.len()];
    let (mut typical, mut largest) = (Vec::new(), 0);
    for ((method, known), members) in groups {
        if members.len() < FEWEST_NODES {
            let (nodes, needed) = (members.len() as u64, FEWEST_NODES as u64);
            warnings.push(Warning::FewNodes { nodes, method, with_sources: known, needed });
        }
        let of: Vec<&NodeSummary> = members.iter().map(|&at| &nodes[at]).collect();
        let found = outliers::outliers(&of);
        warnings.extend(found.warnings);
        for (&at, why) in members.iter().zip(found.whys) {
            whys[at] = why;
        }
        if members.len() > largest {
            (typical, largest) = (found.typical, members.len());
        }
    }
    (whys, typical)
}

fn without_curve(nodes: &[NodeSummary]) -> Vec<Warning> {
    let mut reasons: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for node in nodes {
        if let Some(why) = &node.no_curve_because {
            reasons.entry(why).or_insert((0, &node.name)).0 += 1;
        }
    }
    let warning = |(why, (nodes, first)): (&str, (u64, &str))| Warning::WithoutCost {
        nodes,
        first: first.to_owned(),
        because: why.to_owned(),
    };
    reasons.into_iter().map(warning).collect()
}
