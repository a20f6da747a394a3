//! The head of a log.

use std::io::Read as _;
use std::path::Path;

use fs_err as fs;

use super::layout::{self, Field, HEAD, MAGIC, VERSION};
use crate::{Error, one_line};

/// More ranks than this are none.
pub(super) const MOST_RANKS: u32 = 1 << 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Finalized,
    WrongMpi,
}

/// At `at_ns` on this clock, rank 0's was `offset_ns` ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) at_ns: u64,
    pub(super) offset_ns: i64,
}

/// What a log says of its thread. Numbers are as they stand there; only rank and state are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) state: State,
    /// Bytes of records: no more than the file has.
    pub(super) bytes: u64,
    pub(super) lost: u64,
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) pid: u32,
    pub(super) thread: u32,
    pub(super) sources: u32,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) calls: u64,
    pub(super) one_sided: u64,
    pub(super) clock_zero: bool,
    pub(super) pairs: Vec<Pair>,
    pub(super) host: String,
    pub(super) boot: String,
    pub(super) library: String,
    pub(super) program: String,
    pub(super) reason: String,
}

impl Head {
    /// Reads the head of the log at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        let mut bytes = Vec::with_capacity(HEAD);
        file.by_ref().take(HEAD as u64).read_to_end(&mut bytes)?;
        Self::parse(&bytes, length).map_err(|reason| Error::malformed(path, reason))
    }

    fn parse(bytes: &[u8], length: u64) -> Result<Self, String> {
        let bytes: &[u8; HEAD] = bytes.try_into().map_err(|_| "not a trace log: its head is not whole")?;
        if field(bytes, layout::MAGIC_) != MAGIC {
            return Err("not a trace log: it starts otherwise".into());
        }
        let version = number(bytes, layout::VERSION_) as u32;
        if version != VERSION {
            return Err(format!("version {version} of trace logs is not known: update quell"));
        }
        let half = |field| number(bytes, field) as u32;
        let (rank, ranks) = (half(layout::RANK), half(layout::RANKS));
        let state = match half(layout::STATE) {
            0 => State::Running,
            1 => State::Finalized,
            2 => State::WrongMpi,
            other => return Err(format!("damaged: state {other} is none")),
        };
        if state != State::WrongMpi && (rank >= ranks || ranks > MOST_RANKS) {
            return Err(format!("damaged: rank {rank} of {ranks}"));
        }
        let clocks = half(layout::CLOCKS).min(2) as usize;
        let pair = |words: &[u8]| Pair { at_ns: word(words, 0), offset_ns: word(words, 8) as i64 };
        let text = |at| text(field(bytes, at));
        Ok(Self {
            state,
            bytes: number(bytes, layout::BYTES).min(length.saturating_sub(HEAD as u64)),
            lost: number(bytes, layout::LOST),
            rank,
            ranks,
            pid: half(layout::PID),
            thread: half(layout::THREAD),
            sources: half(layout::SOURCES_),
            begin_ns: number(bytes, layout::BEGIN),
            end_ns: number(bytes, layout::END),
            calls: number(bytes, layout::CALLS),
            one_sided: number(bytes, layout::ONE_SIDED),
            clock_zero: half(layout::CLOCK_ZERO) != 0,
            pairs: field(bytes, layout::CLOCK).chunks_exact(24).take(clocks).map(pair).collect(),
            host: text(layout::HOST),
            boot: text(layout::BOOT),
            library: text(layout::LIBRARY),
            program: text(layout::PROGRAM),
            reason: text(layout::REASON),
        })
    }
}

fn field(bytes: &[u8; HEAD], field: Field) -> &[u8] {
    bytes.get(field.at..field.at + field.bytes).unwrap_or_default()
}

/// A field of four or eight bytes.
fn number(bytes: &[u8; HEAD], at: Field) -> u64 {
    let mut word = [0; 8];
    let bytes = field(bytes, at);
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// A text that ends with a zero, on one line whatever it holds.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    one_line(&String::from_utf8_lossy(&bytes[..end])).to_string()
}
