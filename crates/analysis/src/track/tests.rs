#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archives;
mod goals;
mod hostile;
mod paper;
mod simulated;
