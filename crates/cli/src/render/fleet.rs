//! Renders a fleet as text for a terminal.

pub mod hosts;

use quell_analysis::fleet::{Cost, Difference, Fleet, SlowNode, TypicalSource, UnlikeNode};
use quell_recording::Nanos;
use quell_recording::columns::Columns;

use super::rows::{name, rows};
use super::warnings;
use crate::printer::one_line;

/// Maximum number of outlier nodes to show.
const MOST_UNLIKE: usize = 20;
/// Maximum number of causes to show for each of them.
const MOST_CAUSES: usize = 3;
/// Maximum number of the slowest nodes to show.
const MOST_SLOWEST: usize = 10;
/// Maximum number of sources to show as typical.
const MOST_SOURCES: usize = 8;

/// What the nodes cost together, and what to look at next.
pub fn advise(fleet: &Fleet) -> String {
    let mut text = format!("{} · {} nodes", one_line(&fleet.folder), fleet.nodes);
    if !fleet.unread.is_empty() {
        text += &format!(" · {} left out", fleet.unread.len());
    }
    text.push('\n');
    text += &warnings::lines(&fleet.warnings);
    text += "\n";
    text += &unlike(fleet, MOST_UNLIKE);
    if let Some(cost) = &fleet.cost {
        text += &costs(cost);
    }
    text += &usual(&fleet.typical);
    text += &differences(&fleet.differences);
    text + &next(fleet)
}

/// The outlier nodes, at most `most` of them.
pub fn unlike(fleet: &Fleet, most: usize) -> String {
    // Nothing was compared, as of recordings of memory without sources.
    if fleet.typical.is_empty() {
        return String::new();
    }
    if fleet.unlike.is_empty() {
        return format!("No node of {} stands out by any {}.\n", fleet.nodes, noun(fleet));
    }
    let mut text = format!("{} of {} nodes are outliers:\n", fleet.unlike.len(), fleet.nodes);
    if fleet.nodes_with_sources == 0 {
        text += "(sources unknown: how long detours last is compared instead)\n";
    }
    text.extend(fleet.unlike.iter().take(most).map(one_unlike));
    if fleet.unlike.len() > most {
        text += &format!("  ... and {} more (--json has them all)\n", fleet.unlike.len() - most);
    }
    text
}

fn noun(fleet: &Fleet) -> &'static str {
    if fleet.nodes_with_sources == 0 { "length of detours (sources unknown)" } else { "source" }
}

fn one_unlike(node: &UnlikeNode) -> String {
    let share = node.delay_share_percent.filter(|share| *share >= 0.1);
    let share = share.map_or_else(String::new, |share| format!(" (makes {share:.1} % of the lost time)"));
    let mut text = format!("  {}{share}\n", label(&node.node, node.host.as_deref()));
    text.extend(node.why.iter().take(MOST_CAUSES).map(|why| format!("      {}\n", one_line(&why.says))));
    text
}

fn label(node: &str, host: Option<&str>) -> String {
    match host {
        Some(host) if host != node => format!("{} ({})", name(host), name(node)),
        _ => name(node),
    }
}

fn costs(cost: &Cost) -> String {
    let quantum = Nanos::from_nanos(cost.quantum_ns);
    let mut text = format!(
        "\nWhat a phase of {quantum} loses to noise, nodes not synchronised (median node: {}):\n",
        one_line(&cost.median_node)
    );
    text += &rows(&cost.scales);
    let shares: Vec<String> = cost
        .worst_share
        .iter()
        .filter(|share| share.nodes <= 100)
        .map(|share| format!("{}: {:.0} %", share.nodes, share.share_percent))
        .collect();
    if !shares.is_empty() {
        let all = format!("with all {} nodes", cost.nodes);
        text += &format!(
            "Part of that loss, {all}, that goes if the slowest become like the median node: {}\n",
            shares.join(", ")
        );
    }
    text += "\nSlowest nodes (with all nodes):\n";
    let slowest = cost.slowest.iter().take(MOST_SLOWEST);
    let shown = slowest.map(|slow| SlowRow { node: label(&slow.node, slow.host.as_deref()), slow });
    text + &rows(&shown.collect::<Vec<_>>())
}

/// A node that delays the others.
#[derive(Debug, Columns)]
struct SlowRow<'a> {
    #[column]
    node: String,
    #[column(flatten)]
    slow: &'a SlowNode,
}

fn usual(typical: &[TypicalSource]) -> String {
    let seen: Vec<&TypicalSource> =
        typical.iter().filter(|one| one.ns_per_s > 0.0).take(MOST_SOURCES).collect();
    if seen.is_empty() { String::new() } else { format!("\n{}", rows(seen)) }
}

/// Other differences between nodes.
pub fn differences(differences: &[Difference]) -> String {
    let line = |one: &Difference| {
        let more = if one.nodes > one.names.len() as u64 { ", ..." } else { "" };
        let names: Vec<String> = one.names.iter().map(|name| one_line(name)).collect();
        format!(
            "  {}: {} have {}, most {} ({}{more})\n",
            one.what,
            one.nodes,
            one_line(&one.value),
            one_line(&one.usual),
            names.join(", ")
        )
    };
    if differences.is_empty() {
        return String::new();
    }
    "\nDifferences between nodes (not faults):\n".to_owned()
        + &differences.iter().map(line).collect::<String>()
}

/// What to look at next.
fn next(fleet: &Fleet) -> String {
    let Some(first) = fleet.unlike.first() else {
        return String::new();
    };
    let folder = one_line(&fleet.folder);
    let worst = one_line(&first.node);
    let by = if fleet.nodes_with_sources > 0 { " --by source" } else { "" };
    let mut text = format!("\nNext:\n  quell show {folder}/{worst}.quell{by}\n");
    if let Some(cost) = &fleet.cost {
        let median = one_line(&cost.median_node);
        text += &format!("  quell compare {folder}/{median}.quell {folder}/{worst}.quell\n");
    }
    text
}
