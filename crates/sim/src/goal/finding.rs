//! What a check has found.

use std::fmt::{self, Display, Formatter};

use crate::goal::defect::Defect;
use crate::loggops::ANY;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The schedule runs, but perhaps not as meant.
    Warning,
    /// The schedule cannot run, or not to its end.
    Error,
}

/// Where an operation stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: u64,
    /// The label that is written there, fit to be shown.
    pub label: Option<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The rank that it concerns, where it is not all of them.
    pub rank: Option<u32>,
    /// The operation of this rank, from 1, where it concerns one.
    pub op: Option<u64>,
    /// Where that stands, if the schedule is text and it was looked up.
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

    /// The same with its place.
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
    /// A label is given to a second operation. It keeps its first, as in LogGOPSim.
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
    /// More messages than can be received. The operation is the first send too many.
    #[error(
        "{surplus} of {sends} messages to rank {to} with {} find no receive; add receives there, or remove sends",
        tag_of(.tag)
    )]
    SendUnreceived {
        /// Whom they are for.
        to: u32,
        /// Their tag, or [`ANY`].
        tag: u32,
        /// How many there are.
        sends: u64,
        /// How many of them are too many.
        surplus: u64,
    },
    /// More receives than messages that they could take. The operation is the first receive too many.
    #[error(
        "{surplus} of {receives} receives from {} with {} get no message; add sends, or remove receives",
        source_of(.from), tag_of(.tag)
    )]
    ReceiveUnsent {
        /// Whom they wait for, or [`ANY`].
        from: u32,
        /// Their tag, or [`ANY`].
        tag: u32,
        /// How many there are.
        receives: u64,
        /// How many of them are too many.
        surplus: u64,
    },
    /// A rank gets more messages than it receives, though each could be received.
    #[error("{sends} messages are sent to it, but it receives {receives}; some will find no receive")]
    MoreSends {
        /// Messages to this rank.
        sends: u64,
        /// Its receives.
        receives: u64,
    },
    /// A rank receives more messages than it gets, though each receive could get one.
    #[error("it receives {receives} messages, but {sends} are sent to it; some receives will never end")]
    MoreReceives {
        /// Messages to this rank.
        sends: u64,
        /// Its receives.
        receives: u64,
    },
    /// One CPU works for longer than can be counted.
    #[error(
        "the work on its CPU {cpu} adds up to {total_ns} ns, more than 64 bits can count; scale the times down"
    )]
    WorkOverflows {
        /// Which one.
        cpu: u8,
        /// All its work.
        total_ns: u128,
    },
    /// All ranks together work for longer than can be counted.
    #[error(
        "the work of all ranks adds up to {total_ns} ns; if they wait for each other the time may pass what 64 bits \
         can count: scale the times down"
    )]
    WorkMayOverflow {
        /// The work of all ranks.
        total_ns: u128,
    },
}

fn tag_of(tag: &u32) -> String {
    if *tag == ANY { "any tag".to_owned() } else { format!("tag {tag}") }
}

fn source_of(rank: &u32) -> String {
    if *rank == ANY { "any rank".to_owned() } else { format!("rank {rank}") }
}

/// All that was found: the first of them in full, the rest counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    errors: u64,
    warnings: u64,
}

impl Findings {
    /// How many errors are kept in full, and how many warnings.
    pub const MOST: u64 = 100;

    /// Those that were kept in full, in the order in which they were found.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// How many errors there are, kept or not.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// How many warnings there are, kept or not.
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

    /// Rank, operation from 0, and the empty place of each finding on an operation that has none yet.
    pub(super) fn placeless(&mut self) -> impl Iterator<Item = (u32, u32, &mut Option<Place>)> {
        self.list.iter_mut().filter(|finding| finding.place.is_none()).filter_map(|finding| {
            let op = u32::try_from(finding.op?.checked_sub(1)?).ok()?;
            Some((finding.rank?, op, &mut finding.place))
        })
    }
}
