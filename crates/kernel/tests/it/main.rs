//! The container's C headers and the eBPF programs, compiled with the compilers that build the workspace.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod metrics_header;
mod programs;
