//! Archives that quell writes: they round-trip, and damaged ones are survived.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod hostile;
mod round_trip;
