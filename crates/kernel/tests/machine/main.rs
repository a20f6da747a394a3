//! The recorder on the kernel that runs the tests.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adoption;
