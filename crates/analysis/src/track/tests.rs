#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archives;
mod goals;
mod paper;
mod simulated;
