//! Tests that run the program and need nothing of the machine: no privilege, no MPI, no network.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod advise;
mod convert;
mod example;
mod fleet;
mod goal;
mod hosts;
mod replay;
mod replay_schedule;
mod simulate;
mod simulate_timeline;
mod sources;
mod sweep;
mod timeline;
mod track;
mod track_goal;
mod track_paper;
mod tune;
mod tune_serve;
mod words;
