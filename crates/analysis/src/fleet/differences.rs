//! Other differences between nodes: their properties, not their noise.

use std::collections::BTreeMap;

use quell_recording::Nanos;

use super::NodeSummary;
use super::document::Difference;

/// Maximum number of nodes that are named per difference.
const MOST_NAMES: usize = 8;
/// Maximum number of different values that are listed per property.
const MOST_VALUES: usize = 8;

/// The span of a node, rounded to one significant digit so that similar spans are equal.
fn span(node: &NodeSummary) -> String {
    let digits = format!("{:.0e}", node.span_ns as f64);
    format!("about {}", Nanos::from_nanos(digits.parse::<f64>().unwrap_or(0.0) as u64))
}

/// The name of a property, and how to read it from a node.
type Look = (&'static str, fn(&NodeSummary) -> String);

const LOOKS: [Look; 7] = [
    ("method", |node| node.method.to_string()),
    ("CPUs", |node| node.cpus.to_string()),
    ("span", span),
    ("kernel", |node| node.kernel.clone().unwrap_or_else(|| "unknown".into())),
    ("clock", |node| node.clock.clone().unwrap_or_else(|| "unknown".into())),
    ("state", |node| if node.whole { "whole" } else { "cut off" }.into()),
    ("lost rows", |node| if node.lost == 0 { "none" } else { "some" }.into()),
];

/// All differences, by property and value.
pub(super) fn differences(nodes: &[NodeSummary]) -> Vec<Difference> {
    LOOKS.iter().flat_map(|look| differences_in(nodes, *look)).collect()
}

fn differences_in(nodes: &[NodeSummary], (what, look): Look) -> Vec<Difference> {
    let mut values: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        values.entry(look(node)).or_default().push(&node.name);
    }
    let Some(usual) = values.iter().max_by_key(|(_, names)| names.len()).map(|(value, _)| value.clone())
    else {
        return Vec::new();
    };
    let mut others: Vec<(String, Vec<&str>)> =
        values.into_iter().filter(|(value, _)| *value != usual).collect();
    others.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let difference = |(value, names): (String, Vec<&str>)| Difference {
        what: what.to_owned(),
        usual: usual.clone(),
        value,
        nodes: names.len() as u64,
        names: names.into_iter().take(MOST_NAMES).map(str::to_owned).collect(),
    };
    others.into_iter().take(MOST_VALUES).map(difference).collect()
}
