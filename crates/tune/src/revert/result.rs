//! What a revert did.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::journal::{Outcome, Planned};

/// One place, and the result of its revert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The place.
    pub place: String,
    /// The mitigation.
    pub mitigation: String,
    /// The result.
    pub how: How,
}

/// The result of reverting a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is finished.
    Closed(Outcome),
    /// Someone else changed it to this value.
    Foreign(String),
    /// A later transaction that wrote it is not reverted.
    Waits,
    /// It has the nearest value that the kernel accepts instead of the original.
    Nearest {
        /// The original.
        original: String,
        /// Its current value.
        nearest: String,
    },
    /// It could not be reverted.
    Failed(String),
}

/// The result of a revert.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reverted {
    /// The transactions that were visited, newest first.
    pub ids: Vec<String>,
    /// Each place that was still open.
    pub places: Vec<Returned>,
    /// Settings that stay although the file that sets them at boot is removed.
    pub stays: Vec<Stays>,
    /// Journals with lines that are unreadable or missing: the writes in those lines are not reverted.
    pub damaged: Vec<Damage>,
    /// Why the journal could not be written, if it could not; the places were reverted all the same.
    pub unwritten: Option<String>,
}

/// A setting that stays although the file that sets it at boot is removed: it had its value when the plan was applied, or a boot set it, so no journal
/// has an original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stays {
    /// The kernel's file.
    pub place: String,
    /// Its value.
    pub value: String,
}

/// What is missing in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The transaction.
    pub id: String,
    /// The numbers of its lines that are unreadable or missing.
    pub lines: Vec<usize>,
    /// The writes of its plan without a line: whether they were made is not known.
    pub unrecorded: Vec<Planned>,
    /// Whether it is closed all the same, as the user asked.
    pub closed: bool,
}

impl Reverted {
    /// Adds the result of another transaction.
    pub(crate) fn extend(&mut self, other: Self) {
        self.ids.extend(other.ids);
        self.places.extend(other.places);
        self.stays.extend(other.stays);
        self.damaged.extend(other.damaged);
        self.unwritten = self.unwritten.take().or(other.unwritten);
    }

    /// Whether everything is as it was before.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty()
            && self.unwritten.is_none()
            && self.places.iter().all(|one| matches!(one.how, How::Closed(_)))
    }

    /// Whether a later attempt may restore more: a keeper then tries again. `foreign_above` are places that someone else changed above this transaction.
    pub(crate) fn may_go_on(&self, foreign_above: &BTreeSet<String>) -> bool {
        let waits = |one: &Returned| one.how == How::Waits && !foreign_above.contains(&one.place);
        self.has_failed() || self.places.iter().any(waits)
    }

    /// The places that someone else changed.
    pub(crate) fn foreign(&self) -> BTreeSet<String> {
        let is_foreign = |one: &&Returned| matches!(one.how, How::Foreign(_));
        self.places.iter().filter(is_foreign).map(|one| one.place.clone()).collect()
    }

    /// Whether a revert failed, other than by a value that someone else wrote.
    pub fn has_failed(&self) -> bool {
        self.unwritten.is_some() || self.places.iter().any(|one| matches!(one.how, How::Failed(_)))
    }
}
