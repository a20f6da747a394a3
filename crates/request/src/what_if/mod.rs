//! Applies the what-if options to a node's noise.

mod args;

use quell_recording::one_line;

pub use args::WhatIfArgs;

use crate::Usage;
use quell_analysis::whatif::{AttributedNoise, Change, SelectedSources, SourceSelector};

/// The nodes after all changes.
#[derive(Debug)]
pub struct Changed {
    /// Each node's own noise.
    pub nodes: Vec<AttributedNoise>,
    /// The noise that strikes all nodes at the same time.
    pub common: Option<AttributedNoise>,
    /// A description of each change.
    pub words: Vec<String>,
}

/// Maximum number of sources that an error lists for a name that matches none.
const MOST_NAMED: usize = 20;

/// Applies the changes, one after the other.
///
/// # Errors
/// [`Usage`] for a name that matches no noise, or a change that cannot be applied to it.
pub fn apply(mut nodes: Vec<AttributedNoise>, what_if: &WhatIfArgs) -> anyhow::Result<Changed> {
    let mut words = Vec::new();
    if let Some(count) = what_if.leave {
        nodes = nodes.iter().map(|node| leaving(node, count)).collect::<Result<_, _>>()?;
        words.push(format!("the first {count} CPUs of each node are left to the system"));
    }
    let listed = [
        (&what_if.without, Change::Without, "without"),
        (&what_if.only, Change::Only, "only"),
        (&what_if.stagger, Change::Staggered, "staggered over the CPUs of a node:"),
        (&what_if.align, Change::Aligned, "at the same time on all CPUs of a node:"),
    ];
    for (which, change, word) in listed.into_iter().filter(|one| !one.0.is_empty()) {
        nodes = changed(&nodes, which, change)?;
        words.push(format!("{word} {}", names(which)));
    }
    for (which, factor) in &what_if.scaled {
        nodes = changed(&nodes, std::slice::from_ref(which), Change::Scaled(*factor))?;
        words.push(format!("{which} takes {factor} times as long"));
    }
    for (which, cpu) in &what_if.on_cpu {
        nodes = changed(&nodes, std::slice::from_ref(which), Change::OnCpu(*cpu))?;
        words.push(format!("{which} on CPU {cpu} alone"));
    }
    let mut common = None;
    if !what_if.coschedule.is_empty() {
        let [node] = nodes.as_slice() else {
            let text = "--coschedule needs one recording: what several nodes do at the same time is in none of theirs";
            return Err(Usage(text.into()).into());
        };
        named(&nodes, &what_if.coschedule)?;
        let after = Change::Coscheduled.apply(node, &SelectedSources::select(node, &what_if.coschedule));
        let after = after.map_err(Usage)?;
        common = after.common;
        nodes = vec![after.node];
        words.push(format!("at the same time on all nodes: {}", names(&what_if.coschedule)));
    }
    Ok(Changed { nodes, common, words })
}

fn names(which: &[SourceSelector]) -> String {
    which.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn leaving(node: &AttributedNoise, count: usize) -> Result<AttributedNoise, Usage> {
    let all = node.cpus().count();
    if count >= all {
        return Err(Usage(format!("--leave {count} leaves no CPU of {}, which has {all}", node.name)));
    }
    Ok(node.leaving_first(count))
}

fn changed(
    nodes: &[AttributedNoise],
    which: &[SourceSelector],
    change: Change,
) -> anyhow::Result<Vec<AttributedNoise>> {
    named(nodes, which)?;
    let each = |node: &AttributedNoise| {
        Ok(change.apply(node, &SelectedSources::select(node, which)).map_err(Usage)?.node)
    };
    nodes.iter().map(each).collect()
}

/// Checks that each name matches some noise of some node.
fn named(nodes: &[AttributedNoise], which: &[SourceSelector]) -> Result<(), Usage> {
    let missing = |one: &&SourceSelector| {
        nodes.iter().all(|node| SelectedSources::select(node, std::slice::from_ref(*one)).is_empty())
    };
    let Some(one) = which.iter().find(missing) else { return Ok(()) };
    let kinds = nodes.iter().flat_map(AttributedNoise::kinds);
    let mut families: Vec<String> = kinds.map(|kind| one_line(&kind.family)).collect();
    families.sort();
    families.dedup();
    let rest = families.len().saturating_sub(MOST_NAMED);
    families.truncate(MOST_NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let names: Vec<String> = nodes.iter().map(|node| one_line(&node.name)).collect();
    Err(Usage(format!("no noise of {} is `{one}`: it has {}{more}", names.join(", "), families.join(", "))))
}
