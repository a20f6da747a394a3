//! What tests of several crates need from the machine: exclusive use, how quiet it is, and how a test reports that it was
//! skipped or inconclusive. It is only a dev-dependency; nothing of it ships with quell.

mod conditions;
mod measure;
mod outcome;
mod turn;

pub use conditions::{Conditions, Pace, Watch, cpu_seconds};
pub use measure::measure;
pub use outcome::{inconclusive, is_ci, skip, skip_for_hardware};
pub use turn::{Turn, machine};
