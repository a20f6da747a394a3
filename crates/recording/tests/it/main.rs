//! Files from outside: what is written is read again, samples of other tools, and whatever else may come.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod formats_hostile;
mod formats_phases;
mod formats_samples;
mod kernel_tables;
mod recordings;
