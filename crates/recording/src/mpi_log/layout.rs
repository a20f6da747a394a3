//! The layout of `mpi/trace_log.h`: a test compiles that header and compares.

use crate::mpi::Operation;

pub(super) const MAGIC: &[u8; 8] = b"QUELLMPI";
pub(super) const VERSION: u32 = 1;
/// Bytes before the first record.
pub(super) const HEAD: usize = 4096;
/// Bytes of a record before its words.
pub(super) const RECORD: usize = 16;
/// The source that comes after the kernel's kinds.
pub(super) const INJECTED: usize = 8;
pub(super) const SOURCES: usize = 9;
pub(super) const WORLD: u32 = 0;
pub(super) const SELF: u32 = 1;

/// Where in the head a field is, and how long it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

macro_rules! fields {
    ($($name:ident $text:literal $at:literal $bytes:literal),* $(,)?) => {
        $(#[allow(dead_code, reason = "not every field is of use")] pub(super) const $name: Field = Field { at: $at, bytes: $bytes };)*
        /// All of them, by the names that the header has for them.
        #[cfg(test)]
        pub(super) const FIELDS: &[(&str, Field)] = &[$(($text, $name)),*];
    };
}

fields! {
    MAGIC_ "magic" 0 8,
    VERSION_ "version" 8 4,
    STATE "state" 12 4,
    BYTES "bytes" 16 8,
    LOST "lost" 24 8,
    RANK "rank" 32 4,
    RANKS "ranks" 36 4,
    PID "pid" 40 4,
    TID "tid" 44 4,
    THREAD "thread" 48 4,
    SOURCES_ "sources" 52 4,
    BEGIN "begin_ns" 56 8,
    END "end_ns" 64 8,
    CALLS "calls" 72 8,
    ONE_SIDED "one_sided" 80 8,
    CLOCKS "clocks" 88 4,
    CLOCK_ZERO "clock_zero" 92 4,
    CLOCK "clock" 96 48,
    HOST "host" 144 256,
    BOOT "boot" 400 64,
    LIBRARY "library" 464 256,
    PROGRAM "program" 720 256,
    REASON "reason" 976 256,
}

/// What a record tells.
pub(super) mod kind {
    macro_rules! kinds {
        ($($name:ident $number:literal)*) => {
            $(pub(in super::super) const $name: u8 = $number;)*
            /// All, by the names that they have in the header.
            #[cfg(test)]
            pub(in super::super) const ALL: &[(&str, u8)] = &[$((stringify!($name), $name)),*];
        };
    }

    kinds! {
        REGION 1
        COMM 2
        MEMBERS 3
        ENTER 4
        LEAVE 5
        SEND 6
        SEND_DONE 7
        POSTED 8
        RECV 9
        PROBED 10
        PENDING 11
        CANCELLED 12
        COLLECTIVE_BEGIN 13
        COLLECTIVE_POSTED 14
        COLLECTIVE 15
    }
}

/// The operation of a number.
pub(super) fn operation(number: u16) -> Option<Operation> {
    Operation::ALL.get(usize::from(number)).copied()
}

/// Lower and upper half of a word.
pub(super) fn two(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}
