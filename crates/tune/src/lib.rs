//! Mitigations: which of them this node has on, what can be changed, and how to change it, verify it and revert it.
//!
//! `catalogue` has the known mitigations. `audit` compares it with a machine. `plan` turns the differences into a list of writes, without
//! writing. `apply` makes them, recorded in a `journal`; `revert` undoes them; `verify` checks whether they are still in force. `serve` keeps a
//! plan applied while CPUs, devices and threads come and go.

pub mod apply;
pub mod audit;
mod built_in;
pub mod catalogue;
pub mod copy;
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
pub mod place;
pub mod plan;
pub mod profile;
pub mod revert;
mod root;
pub mod serve;
pub mod status;
pub mod store;
mod suggestions;
mod sysctl;
pub mod verify;

pub use root::Root;

#[cfg(test)]
mod tests;
