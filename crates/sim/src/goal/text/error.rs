//! What can be wrong with a text, and what to write instead.

use std::io;

use super::MAX_LINE;
use crate::goal::defect::{BuildError, Defect, in_a_circle};

/// Why a text is not a schedule.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A line is not valid.
    #[error("line {line}, column {column}: {reason}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        column: u32,
        /// What is wrong with it.
        reason: Box<Reason>,
    },
    /// Reading failed.
    #[error("reading the schedule failed: {0}")]
    Io(#[from] io::Error),
}

/// What is wrong with a line. Words of the file are escaped for display.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Something else is expected here.
    #[error("found {found}; write {wanted}")]
    Unexpected {
        /// What the line has.
        found: String,
        /// What is expected.
        wanted: &'static str,
    },
    /// A comment follows something else on its line.
    #[error("a comment must have a line of its own; move it above this line")]
    CommentBehind,
    /// A comment is never closed.
    #[error("this comment is never closed; end it with `*/`")]
    CommentOpen,
    /// The line is too long.
    #[error("the line is longer than {MAX_LINE} bytes; a schedule has one short statement per line")]
    LineTooLong,
    /// A number is too large.
    #[error("{number} is too large for {what}; {most} is the most")]
    NumberTooLarge {
        /// Its digits.
        number: String,
        /// What the number is for.
        what: &'static str,
        /// The largest valid number.
        most: u64,
    },
    /// 2^32 − 1, which LogGOPSim reads as "any".
    #[error("4294967295 is how LogGOPSim keeps -1 in mind: write -1 for any {0}, or another number")]
    AnyByNumber(&'static str),
    /// The number of ranks is missing.
    #[error("the number of ranks is missing; begin the file with `num_ranks N`")]
    NoNumRanks,
    /// The number of ranks is 0.
    #[error("a schedule has at least one rank; write `num_ranks 1` or more")]
    ZeroRanks,
    /// The number of ranks is given twice.
    #[error("the number of ranks was given before; remove this line")]
    SecondNumRanks,
    /// A rank is out of order.
    #[error("rank {found} stands where rank {expected} belongs; give the ranks in order, from 0")]
    RankOrder {
        /// The rank that is expected.
        expected: u32,
        /// The rank that the line has.
        found: u32,
    },
    /// There are more ranks than announced.
    #[error("rank {found} is one too many for `num_ranks {ranks}`; remove it, or raise num_ranks")]
    TooManyRanks {
        /// The number of the rank.
        found: u32,
        /// Number of ranks that were announced.
        ranks: u32,
    },
    /// There are fewer ranks than announced.
    #[error("the file ends after {given} of {ranks} ranks; add `rank {given} {{ ... }}`, or lower num_ranks")]
    MissingRanks {
        /// Number of ranks in the file.
        given: u32,
        /// Number of ranks that were announced.
        ranks: u32,
    },
    /// A rank is not closed.
    #[error("rank {rank}, begun in line {begun}, has no end; close it with `}}` on a line of its own")]
    MissingBrace {
        /// The number of the rank.
        rank: u32,
        /// The line in which it begins.
        begun: u64,
    },
    /// A closing brace without a rank.
    #[error("this `}}` closes nothing; remove it, or begin a rank with `rank N {{`")]
    StrayBrace,
    /// An operation is outside of a rank.
    #[error("an operation or dependency stands outside of a rank; put it between `rank N {{` and `}}`")]
    OutsideRank,
    /// No operation has this label.
    #[error(
        "no operation of this rank has the label `{0}`; write `{0}:` before an operation above this line"
    )]
    UndefinedLabel(String),
    /// The label is defined on a later line.
    #[error("the label `{label}` is only defined in line {line}; move this line below that")]
    LabelLater {
        /// The label.
        label: String,
        /// The line that defines it.
        line: u64,
    },
    /// Operations wait for each other in a cycle.
    #[error("{}; none of them can ever start; remove one of these dependencies", in_a_circle(.labels, *.ops))]
    Cycle {
        /// The labels of the first few; each waits for the next.
        labels: Vec<String>,
        /// Number of operations in the cycle.
        ops: usize,
    },
    /// An operation is unfit.
    #[error("{0}")]
    Op(Defect),
    /// The schedule as a whole is unfit.
    #[error("{0}")]
    Whole(BuildError),
}

/// A reason and its column (from 0), in the current line or in another one.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: Option<u64>,
    pub(super) column: usize,
    pub(super) reason: Box<Reason>,
}

impl Fault {
    pub(super) fn new(column: usize, reason: Reason) -> Self {
        Self { line: None, column, reason: Box::new(reason) }
    }

    pub(super) fn in_other_line(self, line: u64) -> Self {
        Self { line: Some(line), ..self }
    }

    pub(super) fn in_line(self, line: u64) -> TextError {
        TextError::Line {
            line: self.line.unwrap_or(line),
            column: self.column as u32 + 1,
            reason: self.reason,
        }
    }
}

/// Maximum number of bytes of a word that a message shows.
const SHOWN: usize = 40;

/// A word of the file, escaped and shortened for a message.
pub(super) fn shown(word: &[u8]) -> String {
    let mut text = word[..word.len().min(SHOWN)].escape_ascii().to_string();
    if word.len() > SHOWN {
        text.push('…');
    }
    text
}
