//! The engines and the noise, through the public interface: golden cases, our own reference engines, effects from papers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../reference/mod.rs"]
mod reference;
#[path = "../schedules/mod.rs"]
mod schedules;

mod culprits;
mod differences;
mod effects;
mod golden;
mod random;
