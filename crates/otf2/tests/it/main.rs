//! Archives of our own: read again whole, and survived when damaged.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod hostile;
mod round_trip;
