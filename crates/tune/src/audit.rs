//! What of the catalogue is on here: looked at, never written.

mod boot;
mod by_hand;
mod compare;
mod file;
mod lasting;
mod lists;
mod look;
mod own_file;
mod state;
mod threads;
mod unit;

use look::Looker;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::catalogue::{Catalogue, Mitigation};
use super::facts::{Facts, Parts};
use super::nearest;
use super::place::Place;
use super::root::Root;

/// How a mitigation stands on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// All that it touches is as wanted.
    On,
    /// Some is.
    Partial,
    /// Nothing is.
    Off,
    /// Nothing that it touches is on this machine.
    NotHere,
    /// It cannot be seen; why is told.
    CannotTell,
}

/// One place that a mitigation would have otherwise, or has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sight {
    /// The place.
    pub place: Place,
    /// What it holds, as read; none where that is not known.
    pub now: Option<String>,
    /// What it should hold; none where that cannot be said.
    pub want: Option<String>,
    /// Whether what it holds counts as what it should.
    pub done: bool,
    /// Whether nothing is missed where it is not there.
    pub optional: bool,
    /// Whether the kernel lets nobody change it: a managed interrupt, a bound thread, a file without a mode to write.
    pub immovable: bool,
    /// Whether it is one of many, of which the kernel may refuse some without a sign before: interrupts, kernel threads.
    pub may_fail: bool,
    /// Whether it is only in force after the next boot, or when what reads it starts again.
    pub staged: bool,
    /// Files that the kernel changes with this one, itself among them; none for one that stands alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Files of others that set the same otherwise, and are read later at boot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overruled_by: Vec<String>,
    /// What is unknown or impossible, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What is to be done by hand for a mitigation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByHand {
    /// The instruction.
    pub todo: String,
    /// Whether it is done; none where nobody can see.
    pub done: Option<bool>,
    /// What was seen.
    pub seen: Option<String>,
}

/// One mitigation on one machine.
#[derive(Clone, Debug)]
pub struct Audited<'a> {
    /// The mitigation.
    pub mitigation: &'a Mitigation,
    /// How it stands.
    pub state: State,
    /// Why, where the state alone does not say.
    pub why: Option<String>,
    /// What it touches.
    pub places: Vec<Sight>,
    /// What else would make it stand after the next boot: files of quell's own, and units that start again.
    pub lasting: Vec<Sight>,
    /// What quell does not do.
    pub by_hand: Vec<ByHand>,
}

/// What else a plan or an audit is made for.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The CPUs that compute, where the user says.
    pub compute: Option<Vec<quell_recording::Cpu>>,
    /// The process whose threads are meant, and all its threads.
    pub pid: Option<u32>,
    /// Values for `${value}`, by mitigation; one that is given replaces the catalogue's own for its first file.
    pub values: std::collections::BTreeMap<String, String>,
}

/// A machine, looked at for a catalogue.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    /// The machine.
    pub facts: Facts,
    /// Its parts, or why it has none.
    pub parts: Result<Parts, String>,
    /// Each mitigation, by id.
    pub entries: Vec<Audited<'a>>,
}

/// Looks at all of a catalogue, or at some of it.
///
/// # Errors
/// Where the machine does not even list its CPUs, and for an id in `only` that the catalogue does not have.
pub fn audit<'a>(
    root: &Root,
    catalogue: &'a Catalogue,
    wishes: &Wishes,
    only: Option<&[String]>,
) -> Result<Audit<'a>, String> {
    let known = || catalogue.iter().map(|one| one.id.as_str());
    let named = only.unwrap_or_default().iter().chain(wishes.values.keys());
    if let Some(stranger) = named.into_iter().find(|id| catalogue.get(id).is_none()) {
        return Err(nearest::unknown(stranger, known()));
    }
    let facts = Facts::look(root)?;
    let parts = Parts::choose(&facts, wishes.compute.as_deref());
    let looker = Looker::new(root, &facts, parts.as_ref().map_err(String::as_str), wishes);
    let chosen = catalogue.iter().filter(|one| only.is_none_or(|ids| ids.contains(&one.id)));
    let entries = chosen.map(|one| looker.look_at(one)).collect();
    Ok(Audit { facts, parts, entries })
}

#[cfg(test)]
#[path = "audit/tests.rs"]
mod tests;
