//! Mitigations: what this node has on, what could be changed, changing it, proving it, and giving it back.

pub mod catalogue;
mod deny;
