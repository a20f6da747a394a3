//! GOAL schedules: what each rank of a parallel program sends, receives and computes, and what waits for what
//! (Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language", 2009).
//!
//! LogGOPSim's two forms are read and written: text ([`read_text`], [`write_text`]), and the binary form of its
//! `txt2bin` ([`read_binary`], [`write_binary`]); [`Format::of`] tells them apart. [`ScheduleBuilder`] makes one
//! from anything else. [`check()`], [`check_text`] and [`check_binary`] say what is wrong with one before it runs,
//! and [`locate`] where in a text an operation stands. Nothing here opens a file.
//!
//! Files are hostile. Whatever a file says of itself, no reader or check of one takes more than 16 bytes of memory
//! per byte that it really has, and half a megabyte; measured are at most 10 for text and 4 for the binary form.

mod binary;
mod builder;
mod check;
mod cycle;
mod defect;
mod finding;
mod intern;
mod schedule;
#[cfg(test)]
mod tests;
mod text;

pub use binary::{BinaryError, Damage, Part, read_binary, write_binary};
pub use builder::ScheduleBuilder;
pub use check::{Checked, check, check_binary, check_text, place_findings};
pub use defect::{BuildError, Defect};
pub use finding::{Finding, Findings, Place, Problem, Severity};
pub use schedule::{Operation, RankOps, Schedule, Waiting};
pub use text::{MAX_LINE, Reason, TextError, locate, read_text, write_text};

/// The most bytes of a message and the most nanoseconds of work that one operation may have: 2^62.
pub const MAX_SIZE: u64 = 1 << 62;

/// The most operations that a rank may have, and the most dependencies: 2^31.
pub const MAX_OPS: u32 = 1 << 31;

/// In which form a schedule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, or nothing that is known; reading it as text will say what is wrong.
    Text,
    /// The binary form that `txt2bin` writes, also when LogGOPSim has used it up.
    Binary,
}

impl Format {
    /// The form of a schedule that begins with these bytes. Eight are enough.
    pub fn of(head: &[u8]) -> Self {
        if binary::has_magic(head) { Self::Binary } else { Self::Text }
    }
}
