//! Who made the program late: the sources of the noise files, for the clocks that the engine names.

use quell_sim::Node;

use super::{Asked, noise};
use crate::culprits::ClockSources;

/// The sources of every clock, in the order in which the files give clocks to the ranks.
///
/// # Errors
/// Where a file cannot be read.
pub fn clocks(asked: &Asked, ranks: u32) -> anyhow::Result<Vec<ClockSources>> {
    let mut clocks = Vec::new();
    for path in &asked.noise {
        let node = noise::sourced(path, asked, ranks)?;
        let span = Node::shared_span(&node.noise().traces)?;
        clocks.extend(ClockSources::of(&node, span.start.as_nanos(), span.end.as_nanos()));
    }
    Ok(clocks)
}
