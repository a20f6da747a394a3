//! The file formats through the public interface: what is written is read again, samples of other tools, and hostile files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod formats_details;
mod formats_hostile;
mod formats_phases;
mod formats_samples;
mod kernel_tables;
mod recordings;
