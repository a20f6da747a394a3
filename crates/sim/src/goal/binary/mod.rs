//! The binary form of GOAL, as LogGOPSim's `txt2bin` writes it. All numbers are little-endian, nothing is aligned:
//!
//! ```text
//! u64 magic 4223; from here, at byte 8, offsets count
//! u32 ranks, u8 highest CPU, u8 highest interface, per rank { u64 begin, u64 end }
//! per rank: u32 operations, u32 roots, u32 root[roots],
//!           per operation 39 bytes: u32 needs, u8 type, u32 peer, u64 size, u32 tag, u8 cpu, u8 interface,
//!                                   u32 dependents, u32 first dependent, u32 start-dependents, u32 first of these
//!           u32 dependent[]
//! ```
//!
//! Parts of ranks must come in the order of their ranks, as `txt2bin` writes them: the file is read once, front to back.

mod error;
mod input;
mod read;
mod write;

pub use error::{BinaryError, Damage, Part};
pub use read::read_binary;
pub(super) use read::read_to_check;
pub use write::write_binary;

/// What the first eight bytes hold.
const MAGIC: u64 = 4223;
/// Replaces [`MAGIC`] once `LogGOPSim --save-mem` has used the file up.
const USED_UP: u64 = 2342;
const MAGIC_BYTES: u64 = 8;
const HEAD_BYTES: u64 = 6;
const RANGE_BYTES: u64 = 16;
const OP_BYTES: usize = 39;
const SEND: u8 = 1;
const RECV: u8 = 2;
const CALC: u8 = 3;

/// Whether a file that begins with these bytes is in binary form, used up or not.
pub(super) fn has_magic(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|bytes| [MAGIC, USED_UP].contains(&u64::from_le_bytes(*bytes)))
}
