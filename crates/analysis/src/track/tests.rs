#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archives;
mod both;
mod goals;
mod hostile;
mod paper;
mod simulated;
