//! Findings of a check.

use std::fmt::{self, Display, Formatter};

use crate::goal::defect::Defect;
use crate::loggops::ANY;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The schedule runs, but perhaps not as meant.
    Warning,
    /// The schedule cannot run, or cannot finish.
    Error,
}

/// Position of an operation in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: u64,
    /// The label in the text, escaped for display.
    pub label: Option<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The rank that it concerns; `None` for all of them.
    pub rank: Option<u32>,
    /// The operation of this rank, counted from 1, if it concerns one.
    pub op: Option<u64>,
    /// Its position, if the schedule is text and it was looked up.
    pub place: Option<Place>,
    /// What is wrong.
    pub problem: Problem,
}

impl Finding {
    /// A finding on an operation, whose number counts from 0.
    pub(in crate::goal) fn at_op(severity: Severity, rank: u32, op: u32, problem: Problem) -> Self {
        Self { severity, rank: Some(rank), op: Some(u64::from(op) + 1), place: None, problem }
    }

    /// A finding on a whole rank.
    pub(super) fn at_rank(severity: Severity, rank: u32, problem: Problem) -> Self {
        Self { severity, rank: Some(rank), op: None, place: None, problem }
    }

    /// A finding on the whole schedule.
    pub(super) fn on_all(severity: Severity, problem: Problem) -> Self {
        Self { severity, rank: None, op: None, place: None, problem }
    }

    /// The same finding with its position.
    pub(in crate::goal) fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "line {}: ", place.line)?;
        }
        match self.rank {
            Some(rank) => write!(f, "rank {rank}")?,
            None => f.write_str("all ranks")?,
        }
        if let Some(op) = self.op {
            write!(f, ", operation {op}")?;
        }
        if let Some(label) = self.place.as_ref().and_then(|place| place.label.as_deref()) {
            write!(f, " (`{label}`)")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A second operation has the same label. The label stays with the first, as in LogGOPSim.
    #[error(
        "the label `{label}` is that of line {first_line} already and stays there; give this operation another"
    )]
    RepeatedLabel {
        /// The label.
        label: String,
        /// The line that it belongs to.
        first_line: u64,
    },
    /// An operation is unfit to run.
    #[error("{0}")]
    Defect(Defect),
    /// More messages than can be received. The operation is the first send in excess.
    #[error(
        "{surplus} of {sends} messages to rank {to} with {} find no receive; add receives there, or remove sends",
        tag_of(.tag)
    )]
    SendUnreceived {
        /// The rank that they are sent to.
        to: u32,
        /// Their tag, or [`ANY`].
        tag: u32,
        /// Number of messages.
        sends: u64,
        /// Number of messages in excess.
        surplus: u64,
    },
    /// More receives than messages that they could take. The operation is the first receive in excess.
    #[error(
        "{surplus} of {receives} receives from {} with {} get no message; add sends, or remove receives",
        source_of(.from), tag_of(.tag)
    )]
    ReceiveUnsent {
        /// The rank that they wait for, or [`ANY`].
        from: u32,
        /// Their tag, or [`ANY`].
        tag: u32,
        /// Number of receives.
        receives: u64,
        /// Number of receives in excess.
        surplus: u64,
    },
    /// A rank is sent more messages than it receives, though each single one could be received.
    #[error("{sends} messages are sent to it, but it receives {receives}; some will find no receive")]
    MoreSends {
        /// Messages to this rank.
        sends: u64,
        /// Its receives.
        receives: u64,
    },
    /// A rank receives more messages than it is sent, though each single receive could take one.
    #[error("it receives {receives} messages, but {sends} are sent to it; some receives will never end")]
    MoreReceives {
        /// Messages to this rank.
        sends: u64,
        /// Its receives.
        receives: u64,
    },
    /// The work of one CPU overflows 64 bits.
    #[error(
        "the work on its CPU {cpu} adds up to {total_ns} ns, more than 64 bits can count; scale the times down"
    )]
    WorkOverflows {
        /// The CPU.
        cpu: u8,
        /// Sum of its work, in nanoseconds.
        total_ns: u128,
    },
    /// The work of all ranks together overflows 64 bits.
    #[error(
        "the work of all ranks adds up to {total_ns} ns; if they wait for each other the time may pass what 64 bits \
         can count: scale the times down"
    )]
    WorkMayOverflow {
        /// Sum of the work of all ranks, in nanoseconds.
        total_ns: u128,
    },
}

fn tag_of(tag: &u32) -> String {
    if *tag == ANY { "any tag".to_owned() } else { format!("tag {tag}") }
}

fn source_of(rank: &u32) -> String {
    if *rank == ANY { "any rank".to_owned() } else { format!("rank {rank}") }
}

/// All findings: the first ones in full, the rest only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    errors: u64,
    warnings: u64,
}

impl Findings {
    /// Maximum number of errors that are kept in full, and of warnings.
    pub const MOST: u64 = 100;

    /// The findings that were kept in full, in the order in which they were found.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// Number of errors, kept or not.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Number of warnings, kept or not.
    pub fn warnings(&self) -> u64 {
        self.warnings
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }

    /// Whether one more of this severity would be kept.
    pub(super) fn has_room(&self, severity: Severity) -> bool {
        self.count(severity) < Self::MOST
    }

    fn count(&self, severity: Severity) -> u64 {
        if severity == Severity::Error { self.errors } else { self.warnings }
    }

    pub(in crate::goal) fn push(&mut self, finding: Finding) {
        let keep = self.has_room(finding.severity);
        match finding.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        if keep {
            self.list.push(finding);
        }
    }

    /// Rank, operation (from 0) and the empty place of each finding on an operation that has no place yet.
    pub(super) fn placeless(&mut self) -> impl Iterator<Item = (u32, u32, &mut Option<Place>)> {
        self.list.iter_mut().filter(|finding| finding.place.is_none()).filter_map(|finding| {
            let op = u32::try_from(finding.op?.checked_sub(1)?).ok()?;
            Some((finding.rank?, op, &mut finding.place))
        })
    }
}
