//! Predictions with changes to a node's noise: sources removed, alone, scaled, moved, aligned or staggered.

mod alone;
mod attributed_noise;
mod change;
mod costs;
pub mod culprits;
mod job;
mod load;
mod source_selector;
mod switches;
#[cfg(test)]
mod tests;

pub use crate::attribution::{Kind, UNATTRIBUTED, family};
pub use attributed_noise::{AttributedNoise, MainSources};
pub use change::{Change, Changed};
pub use costs::{CostRow, Costs, OTHERS, OnNode, Scale, Source, SourceCost, costs};
pub(crate) use costs::{on_node, run_with};
pub(crate) use job::Ran;
pub use job::{Application, Cost, Job};
pub use load::Load;
pub(crate) use load::is_of_user;
pub use source_selector::{SelectedSources, SourceSelector};
pub use switches::Switches;
pub(crate) use switches::switches;
