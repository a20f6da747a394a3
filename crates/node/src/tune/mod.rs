//! Mitigations: what this node has on, what could be changed, changing it, proving it, and giving it back.

pub mod audit;
pub mod catalogue;
mod deny;
pub mod facts;
#[cfg(test)]
#[path = "../../../cli/tests/support/fake_machine.rs"]
mod fake_machine;
pub mod masks;
pub mod place;
pub mod plan;
mod root;

pub use root::Root;
