//! Predictions, comparisons and periods through the public interface, on traces with known properties.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compare;
mod periods;
mod predict;
mod predict_de_2008;
