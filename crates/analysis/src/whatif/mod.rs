//! What a prediction would be with a node's noise otherwise: sources gone, alone, scaled, moved, in step or out of it.

mod change;
mod costs;
pub mod culprits;
mod job;
mod sourced;
mod switches;
#[cfg(test)]
mod tests;
mod which;

pub use change::{Change, Changed};
pub use costs::{Costs, OTHERS, OnNode, Scale, Source, SourceCost, costs};
pub(crate) use costs::{on_node, run_with};
pub(crate) use job::Ran;
pub use job::{Application, Cost, Job};
pub use sourced::{Kind, Sourced, UNATTRIBUTED, family};
pub use switches::Switches;
pub(crate) use switches::switches;
pub use which::{Chosen, Which};
