//! A plan: the list of writes that puts chosen mitigations on, with old and new values. Making a plan writes nothing.

pub(crate) mod diff;
mod hostile;
mod order;
mod read;
mod writes;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::audit::{Audit, Audited, State};
use super::catalogue::Risk;
use super::place::Place;

/// The document's name and version.
pub const SCHEMA: &str = "quell.tune-plan/1";

/// The writes to make on one machine, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The SHA-256 of the plan as JSON without this field: `apply` rejects a plan that was edited by hand.
    pub hash: String,
    /// The machine for which it was made.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// The compute CPUs, as a list; empty if there are none.
    pub compute: String,
    /// The CPUs that are left to the system.
    pub housekeeping: String,
    /// The chosen mitigations, in the order of their writes.
    pub mitigations: Vec<Chosen>,
    /// The writes, in order; reverted in reverse order.
    pub writes: Vec<Write>,
    /// What the plan does not change, and why.
    pub left: Vec<Left>,
}

/// A chosen mitigation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How much can go wrong.
    pub risk: Risk,
    /// Whether programs on the node notice.
    pub disruptive: bool,
    /// Its state when the plan was made.
    pub state: State,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// `MITIGATION:PLACE`; the same in every plan that contains it.
    pub id: String,
    /// The mitigation to which it belongs; if several want the same write, the first.
    pub mitigation: String,
    /// The place to write.
    pub place: Place,
    /// Its value when the plan was made, as read.
    pub old: String,
    /// The value to write.
    pub new: String,
    /// Files that the kernel changes with it, including it; they are saved and restored together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Other settings that the kernel may change with it; they are restored after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<String>,
    /// Whether the rest of the plan is applied even if the kernel refuses this write, as for managed interrupts among many.
    #[serde(default)]
    pub may_fail: bool,
    /// Whether it takes effect at the next boot.
    #[serde(default)]
    pub staged: bool,
}

/// Something that a plan does not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// The mitigation.
    pub mitigation: String,
    /// The place, or the step to do by hand.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// Options of a plan.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Ids of mitigations.
    pub ids: Vec<String>,
    /// Whether the settings must also be in force after the next boot: by drop-ins, and staged boot options.
    pub persist: bool,
}

/// Makes a plan from an audit. Pure: equal audits give equal plans.
///
/// # Errors
/// Unknown ids, ids that cannot be combined, a disruptive mitigation among others, a value that the user must give.
pub fn plan(audit: &Audit<'_>, choice: &Choice) -> Result<Plan, String> {
    let chosen = order::choose(audit, &choice.ids)?;
    let mut making = writes::Making::new(choice.persist);
    for one in &chosen {
        making.add(one)?;
    }
    let (writes, mut left) = making.done();
    let writes_for = |one: &&&Audited<'_>| writes.iter().any(|write| write.mitigation == one.mitigation.id);
    left.extend(chosen.iter().filter(writes_for).filter_map(|one| undone(audit, one, &chosen)));
    let parts = audit.parts.as_ref().ok();
    let list = |cpus: &[quell_recording::Cpu]| quell_recording::format_cpu_list(cpus);
    let mut plan = Plan {
        schema: SCHEMA.to_owned(),
        hash: String::new(),
        host: audit.facts.host.clone(),
        kernel: audit.facts.kernel.clone(),
        compute: parts.map(|parts| list(&parts.compute)).unwrap_or_default(),
        housekeeping: parts.map(|parts| list(&parts.housekeeping)).unwrap_or_default(),
        mitigations: chosen.iter().map(|one| Chosen::from_audited(one)).collect(),
        writes,
        left,
    };
    plan.hash = plan.hash_of();
    Ok(plan)
}

/// What the plan leaves running that changes a chosen mitigation's settings back.
fn undone(audit: &Audit<'_>, one: &Audited<'_>, chosen: &[&Audited<'_>]) -> Option<Left> {
    let wanted = &one.mitigation.undone_without;
    let others = || audit.entries.iter().filter(|other| wanted.contains(&other.mitigation.id));
    let is_done = |other: &Audited<'_>| {
        other.state == State::Applied || chosen.iter().any(|one| one.mitigation.id == other.mitigation.id)
    };
    let runs = |other: &Audited<'_>| {
        Some(&other.mitigation.id) == wanted.first()
            && matches!(other.state, State::NotApplied | State::Partial)
    };
    (others().any(runs) && !others().any(is_done)).then(|| Left {
        mitigation: one.mitigation.id.clone(),
        what: wanted.join(" or "),
        why: "not in this plan: until it is done, a program of this node changes back what this plan sets"
            .into(),
    })
}

impl Chosen {
    fn from_audited(audited: &Audited<'_>) -> Self {
        let mitigation = audited.mitigation;
        Self {
            id: mitigation.id.clone(),
            title: mitigation.title.clone(),
            risk: mitigation.risk,
            disruptive: mitigation.disruptive,
            state: audited.state,
        }
    }
}

impl Plan {
    /// The hash of its contents: the SHA-256, in hexadecimal, of its JSON without blanks and with an empty hash.
    pub fn hash_of(&self) -> String {
        let bare = Self { hash: String::new(), ..self.clone() };
        let text = serde_json::to_string(&bare).unwrap_or_default();
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The document, for users and for [`Self::read`].
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
