//! What the tests of several crates need of the machine: whose turn it is, how quiet it is, and how a test says that it was
//! skipped or could not tell. Only a dev-dependency; nothing of it is in what quell ships.

mod conditions;
mod measure;
mod outcome;
mod turn;

pub use conditions::{Conditions, Watch, cpu_seconds};
pub use measure::measure;
pub use outcome::{is_ci, skip, skip_for_hardware};
pub use turn::{Turn, machine};
