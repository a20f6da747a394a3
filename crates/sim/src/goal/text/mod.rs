//! The text form of GOAL.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! a: calc 1000
//! b: send 8b to 1 tag 7 cpu 0 nic 0
//! b requires a
//! }
//! rank 1 {
//! recv 8b from 0 tag 7
//! }
//! ```
//!
//! What `txt2bin` reads has the same meaning here. What it misreads without an error is rejected:
//! numbers that do not fit (also 2^32 − 1, which it takes for -1), peers that are no ranks, operations that wait for
//! themselves, ranks out of order, a second `num_ranks`, and text after the last rank. What it rejects is rejected,
//! with these exceptions: blanks may precede a statement or comment and follow a label, and a statement may
//! follow `{`, `}` or `*/` on the same line.

mod error;
mod labels;
mod line;
mod locate;
mod parts;
mod read;
mod statement;
mod write;

pub use error::{Reason, TextError};
pub use locate::locate;
#[cfg(test)]
pub(super) use parts::read_in_shares;
pub use parts::{ReadAt, read_text_in_parts};
pub use read::read_text;
pub(super) use read::read_to_check;
pub use write::write_text;

/// Maximum length of a line of a text, in bytes.
pub const MAX_LINE: usize = (1 << 16) - 1;
