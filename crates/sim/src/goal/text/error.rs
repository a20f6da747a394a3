//! What can be wrong with a text, and what to write instead.

use std::io;

use super::MAX_LINE;
use crate::goal::defect::{BuildError, Defect, in_a_circle};

/// Why a text is no schedule.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A line cannot be taken.
    #[error("line {line}, column {column}: {reason}")]
    Line {
        /// Which line, from 1.
        line: u64,
        /// Which byte of the line, from 1.
        column: u32,
        /// What is wrong with it.
        reason: Box<Reason>,
    },
    /// Reading failed.
    #[error("reading the schedule failed: {0}")]
    Io(#[from] io::Error),
}

/// What is wrong with a line. Words of the file are fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Something else belongs here.
    #[error("found {found}; write {wanted}")]
    Unexpected {
        /// What is there.
        found: String,
        /// What would be right.
        wanted: &'static str,
    },
    /// A comment stands behind something.
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
        /// The largest that there is.
        most: u64,
    },
    /// 2^32 − 1, which LogGOPSim takes for "any".
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
    /// A rank comes out of its turn.
    #[error("rank {found} stands where rank {expected} belongs; give the ranks in order, from 0")]
    RankOrder {
        /// Which one comes next.
        expected: u32,
        /// Which one is there.
        found: u32,
    },
    /// There are more ranks than promised.
    #[error("rank {found} is one too many for `num_ranks {ranks}`; remove it, or raise num_ranks")]
    TooManyRanks {
        /// Which one it is.
        found: u32,
        /// How many were promised.
        ranks: u32,
    },
    /// There are fewer ranks than promised.
    #[error("the file ends after {given} of {ranks} ranks; add `rank {given} {{ ... }}`, or lower num_ranks")]
    MissingRanks {
        /// How many there are.
        given: u32,
        /// How many were promised.
        ranks: u32,
    },
    /// A rank does not end.
    #[error("rank {rank}, begun in line {begun}, has no end; close it with `}}` on a line of its own")]
    MissingBrace {
        /// Which one.
        rank: u32,
        /// The line in which it begins.
        begun: u64,
    },
    /// A rank ends that was not begun.
    #[error("this `}}` closes nothing; remove it, or begin a rank with `rank N {{`")]
    StrayBrace,
    /// An operation belongs to no rank.
    #[error("an operation or dependency stands outside of a rank; put it between `rank N {{` and `}}`")]
    OutsideRank,
    /// Nobody has this label.
    #[error(
        "no operation of this rank has the label `{0}`; write `{0}:` before an operation above this line"
    )]
    UndefinedLabel(String),
    /// The label comes too late.
    #[error("the label `{label}` is only defined in line {line}; move this line below that")]
    LabelLater {
        /// The label.
        label: String,
        /// The line that defines it.
        line: u64,
    },
    /// Operations wait for each other.
    #[error("{}; none of them can ever start; remove one of these dependencies", in_a_circle(.labels, *.ops))]
    Cycle {
        /// The labels of the first few, each of which waits for the next.
        labels: Vec<String>,
        /// How many they are.
        ops: usize,
    },
    /// An operation is unfit.
    #[error("{0}")]
    Op(Defect),
    /// The schedule as a whole is unfit.
    #[error("{0}")]
    Whole(BuildError),
}

/// A reason and the column (from 0) that it holds for, of the line at hand or of another.
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

/// How much of a word a message shows.
const SHOWN: usize = 40;

/// A word of the file, fit for a message.
pub(super) fn shown(word: &[u8]) -> String {
    let mut text = word[..word.len().min(SHOWN)].escape_ascii().to_string();
    if word.len() > SHOWN {
        text.push('…');
    }
    text
}
