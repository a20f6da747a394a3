//! Which mitigations of the catalogue are on: reads the machine, never writes.

mod boot;
mod by_hand;
mod compare;
#[cfg(test)]
mod directions;
mod file;
mod irqbalance;
mod kernel;
mod lasting;
mod later;
mod lists;
mod look;
mod mounts;
mod near;
mod options;
mod own_file;
mod slurm;
mod state;
mod threads;
mod unit;

pub(crate) use lasting::set_at_boot;
use look::Examiner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::catalogue::{Catalogue, Mitigation};
use super::facts::{Facts, Parts};
use super::place::Place;
use super::root::Root;
use super::suggestions;

/// The state of a mitigation on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Everything that it touches has the wanted value.
    #[serde(alias = "on")]
    Applied,
    /// Some of it has.
    Partial,
    /// None of it has.
    #[serde(alias = "off")]
    NotApplied,
    /// This machine has nothing that it touches.
    NotHere,
    /// The state is not visible; `why` has the reason.
    CannotTell,
    /// What it touches is on a file system that is not mounted; `why` has the command.
    NotMounted,
    /// The kernel does not let this user read what it touches.
    NotReadable,
}

/// One place that a mitigation would change, or has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlaceState {
    /// The place.
    pub place: Place,
    /// The current value, as read; none if it is not known.
    pub now: Option<String>,
    /// The wanted value; none if it cannot be determined.
    pub want: Option<String>,
    /// Whether the current value counts as the wanted one.
    pub done: bool,
    /// Whether it may be absent without anything missing.
    pub optional: bool,
    /// Whether the kernel does not permit changing it: a managed interrupt, a bound thread, a read-only file.
    pub immovable: bool,
    /// Whether it is one of many, some of which the kernel may refuse without announcing it: interrupts, kernel threads.
    pub may_fail: bool,
    /// Whether it takes effect only after the next boot, or when the program that reads it restarts.
    pub staged: bool,
    /// Files that the kernel changes together with this one, including it; empty if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Other settings that the kernel may change when this one is written; empty if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<String>,
    /// Other programs' files that set the same thing to another value and are read later at boot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overruled_by: Vec<String>,
    /// What is unknown or impossible, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A step of a mitigation that must be done by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByHand {
    /// The instruction.
    pub todo: String,
    /// Whether it is done; none if that is not visible.
    pub done: Option<bool>,
    /// What the machine shows.
    pub seen: Option<String>,
}

/// One mitigation on one machine.
#[derive(Clone, Debug)]
pub struct Audited<'a> {
    /// The mitigation.
    pub mitigation: &'a Mitigation,
    /// Its state.
    pub state: State,
    /// The reason, if the state alone does not say it.
    pub why: Option<String>,
    /// What it touches.
    pub places: Vec<PlaceState>,
    /// What is needed to keep it after the next boot: files of quell's own, and units that would start again.
    pub lasting: Vec<PlaceState>,
    /// What must be done by hand.
    pub by_hand: Vec<ByHand>,
}

/// Options of an audit or a plan.
#[derive(Clone, Debug, Default)]
pub struct AuditOptions {
    /// The compute CPUs, if the user names them.
    pub compute: Option<Vec<quell_recording::Cpu>>,
    /// The process to whose threads the plan applies.
    pub pid: Option<u32>,
    /// Values for `${value}`, by mitigation. If a mitigation has no `${value}`, the value replaces the catalogue's own in its first file.
    pub values: std::collections::BTreeMap<String, String>,
}

/// The state of a machine with respect to a catalogue.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    /// The machine.
    pub facts: Facts,
    /// Its compute and housekeeping CPUs, or why it has none.
    pub parts: Result<Parts, String>,
    /// Each mitigation, by id.
    pub entries: Vec<Audited<'a>>,
}

/// Audits all mitigations of a catalogue, or some of them.
///
/// # Errors
/// If the machine does not even list its CPUs, or for an id in `only` that the catalogue does not have.
pub fn audit<'a>(
    root: &Root,
    catalogue: &'a Catalogue,
    options: &AuditOptions,
    only: Option<&[String]>,
) -> Result<Audit<'a>, String> {
    let known = || catalogue.iter().map(|one| one.id.as_str());
    let named = only.unwrap_or_default().iter().chain(options.values.keys());
    if let Some(stranger) = named.into_iter().find(|id| catalogue.get(id).is_none()) {
        return Err(suggestions::unknown(stranger, known()));
    }
    let facts = Facts::look(root)?;
    let parts = Parts::choose(&facts, options.compute.as_deref());
    let looker = Examiner::new(root, &facts, parts.as_ref().map_err(String::as_str), options);
    let chosen = catalogue.iter().filter(|one| only.is_none_or(|ids| ids.contains(&one.id)));
    let entries = chosen.map(|one| looker.look_at(one)).collect();
    Ok(Audit { facts, parts, entries })
}

#[cfg(test)]
#[path = "audit/tests.rs"]
mod tests;
