//! What a prediction would be with a node's noise otherwise: sources gone, alone, scaled, moved, in step or out of it.

mod attributed_noise;
mod change;
mod costs;
pub mod culprits;
mod job;
mod switches;
#[cfg(test)]
mod tests;
mod which;

pub use crate::attribution::{Kind, UNATTRIBUTED, family};
pub use attributed_noise::AttributedNoise;
pub use change::{Change, Changed};
pub use costs::{Costs, OTHERS, OnNode, Scale, Source, SourceCost, costs};
pub(crate) use costs::{on_node, run_with};
pub(crate) use job::Ran;
pub use job::{Application, Cost, Job};
pub use switches::Switches;
pub(crate) use switches::switches;
pub use which::{Chosen, Which};
