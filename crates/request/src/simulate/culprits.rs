//! The sources of the noise files, by the progress clocks that the engine reports, to name which noise delayed the program.

use quell_sim::Node;

use super::{SimulateArgs, noise};
use quell_analysis::whatif::culprits::ClockSources;

/// The sources of every clock, in the order in which the files assign clocks to the ranks.
///
/// # Errors
/// If a file cannot be read.
pub fn clocks(args: &SimulateArgs, ranks: u32) -> anyhow::Result<Vec<ClockSources>> {
    let mut clocks = Vec::new();
    for path in &args.noise {
        let node = noise::attributed(path, args, ranks)?;
        let span = Node::shared_span(&node.noise().traces)?;
        clocks.extend(ClockSources::from_node(&node, span.start.as_nanos(), span.end.as_nanos()));
    }
    Ok(clocks)
}
