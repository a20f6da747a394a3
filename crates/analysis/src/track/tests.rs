#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archives;
mod both;
mod defects;
mod eager;
mod extrapolated;
mod goals;
mod hostile;
mod own_work;
mod paper;
mod probes;
mod simulated;
mod teams;
mod waits;
mod watched;
