//! The head of a log.

use std::io::Read as _;
use std::mem::offset_of;
use std::path::Path;

use fs_err as fs;

use super::layout::{self, Field, HEAD, MAGIC, VERSION, field, state};
use super::records::Extent;
use crate::{Error, one_line};

/// Maximum number of ranks that is plausible.
pub(super) const MOST_RANKS: u32 = 1 << 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Finalized,
    WrongMpi,
}

/// A comparison of clocks: at `at_ns` on this clock, rank 0's was `offset_ns` ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) at_ns: u64,
    pub(super) offset_ns: i64,
}

/// The head of a thread's log. Numbers are as in the file; only rank and state are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) state: State,
    pub(super) extent: Extent,
    pub(super) lost: u64,
    pub(super) rank: u32,
    pub(super) ranks: u32,
    /// The same in all logs of a job; 0 if it is not known.
    pub(super) job: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
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
        if bytes_of(bytes, field::MAGIC) != MAGIC {
            return Err("not a trace log: it starts otherwise".into());
        }
        let version = number(bytes, field::VERSION) as u32;
        if version < VERSION {
            return Err(format!(
                "an earlier quell wrote this log (version {version}): recover it with that quell"
            ));
        }
        if version > VERSION {
            return Err(format!("version {version} of trace logs is not known: update quell"));
        }
        let half = |at| number(bytes, at) as u32;
        let (rank, ranks) = (half(field::RANK), half(field::RANKS));
        let state = match half(field::STATE) {
            state::RUNNING => State::Running,
            state::FINALIZED => State::Finalized,
            state::WRONG_MPI => State::WrongMpi,
            other => return Err(format!("damaged: state {other} is none")),
        };
        if state != State::WrongMpi && (rank >= ranks || ranks > MOST_RANKS) {
            return Err(format!("damaged: rank {rank} of {ranks}"));
        }
        let clocks = half(field::CLOCKS).min(2) as usize;
        let pair = |words: &[u8]| Pair {
            at_ns: word(words, offset_of!(layout::Clock, at_ns)),
            offset_ns: word(words, offset_of!(layout::Clock, offset_ns)) as i64,
        };
        let text = |at| text(bytes_of(bytes, at));
        Ok(Self {
            state,
            extent: Extent::new(number(bytes, field::BYTES), number(bytes, field::APPENDED), length),
            lost: number(bytes, field::LOST),
            rank,
            ranks,
            job: number(bytes, field::JOB),
            pid: half(field::PID),
            tid: half(field::TID),
            thread: half(field::THREAD),
            sources: half(field::SOURCES),
            begin_ns: number(bytes, field::BEGIN_NS),
            end_ns: number(bytes, field::END_NS),
            calls: number(bytes, field::CALLS),
            one_sided: number(bytes, field::ONE_SIDED),
            clock_zero: half(field::CLOCK_ZERO) != 0,
            pairs: bytes_of(bytes, field::CLOCK).chunks_exact(layout::CLOCK).take(clocks).map(pair).collect(),
            host: text(field::HOST),
            boot: text(field::BOOT),
            library: text(field::LIBRARY),
            program: text(field::PROGRAM),
            reason: text(field::REASON),
        })
    }
}

fn bytes_of(bytes: &[u8; HEAD], field: Field) -> &[u8] {
    bytes.get(field.at..field.at + field.bytes).unwrap_or_default()
}

/// A field of four or eight bytes.
fn number(bytes: &[u8; HEAD], at: Field) -> u64 {
    let mut word = [0; 8];
    let bytes = bytes_of(bytes, at);
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// A zero-terminated text, made safe for one line.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    one_line(&String::from_utf8_lossy(&bytes[..end])).to_string()
}
