//! Predictions, comparisons and periods from outside, on traces whose truth is known.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compare;
mod periods;
mod predict;
mod predict_de_2008;
