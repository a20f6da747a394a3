//! The container's C face, by the compilers that build the workspace.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod metrics_header;
