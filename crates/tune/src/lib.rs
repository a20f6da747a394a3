//! Mitigations: what this node has on, what could be changed, changing it, proving it, and giving it back.
//!
//! `catalogue` is what is known; `audit` sets it beside a machine; `plan` makes a list of writes of that, without writing; `apply` does
//! them under a `journal`, and `revert` takes them back; `verify` looks whether they stand.

pub mod apply;
pub mod audit;
mod built_in;
pub mod catalogue;
mod deny;
pub mod export;
pub mod facts;
#[cfg(test)]
#[path = "../../cli/tests/support/fake_machine.rs"]
mod fake_machine;
pub mod fault;
mod groups;
pub mod guard;
pub mod journal;
pub mod keeper;
mod keeper_process;
pub mod masks;
mod moment;
mod nearest;
pub mod place;
pub mod plan;
pub mod revert;
mod root;
pub mod status;
pub mod store;
mod sysctl;
pub mod verify;

pub use root::Root;

#[cfg(test)]
mod tests;
