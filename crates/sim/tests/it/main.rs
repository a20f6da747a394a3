//! The engines and the noise from outside: golden cases, references of our own, effects of the papers.
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
