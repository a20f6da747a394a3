//! GOAL schedules: what each rank of a parallel program sends, receives and computes, and the dependencies between these
//! operations (Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language", 2009).
//!
//! LogGOPSim's two forms are read and written: text ([`read_text`], [`read_text_in_parts`], [`write_text`]), and the binary form of its
//! `txt2bin` ([`read_binary`], [`write_binary`]); [`Format::detect`] distinguishes them. [`ScheduleBuilder`] builds a schedule
//! from anything else. [`check()`], [`check_text`] and [`check_binary`] find what is wrong with one before it runs,
//! and [`locate`] finds the position of an operation in a text. Nothing here opens a file.
//!
//! Files are untrusted. Whatever a file claims, no reader or check takes more than 16 bytes of memory
//! per byte of the file, plus half a megabyte; measured are at most 10 for text and 4 for the binary form.

mod binary;
mod builder;
mod check;
mod cycle;
mod defect;
mod finding;
mod intern;
mod rank_part;
mod schedule;
mod steps;
#[cfg(test)]
mod tests;
mod text;

pub use binary::{BinaryError, Damage, Part, read_binary, write_binary};
pub use builder::ScheduleBuilder;
pub use check::{Checked, check, check_binary, check_text, place_findings};
pub use defect::{BuildError, Defect};
pub use finding::{Finding, Findings, Place, Problem, Severity};
pub use schedule::{Operation, RankOps, Schedule, Waiting};
pub use text::{MAX_LINE, ReadAt, Reason, TextError, locate, read_text, read_text_in_parts, write_text};

/// Maximum number of bytes of a message, and of nanoseconds of work, of one operation: 2^62.
pub const MAX_SIZE: u64 = 1 << 62;

/// Maximum number of operations of a rank, and of dependencies: 2^31.
pub const MAX_OPS: u32 = 1 << 31;

/// The form of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, or anything unknown; reading it as text reports what is wrong.
    Text,
    /// The binary form that `txt2bin` writes, also when LogGOPSim has used it up.
    Binary,
}

impl Format {
    /// The form of a schedule that begins with these bytes. Eight are enough.
    pub fn detect(head: &[u8]) -> Self {
        if binary::has_magic(head) { Self::Binary } else { Self::Text }
    }
}
