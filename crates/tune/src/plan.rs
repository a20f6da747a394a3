//! A plan: the list of writes that makes chosen mitigations hold on a machine, old values beside new ones. Making it writes nothing.

pub(crate) mod diff;
mod hostile;
mod order;
mod read;
mod writes;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::audit::Audit;
use super::catalogue::Risk;
use super::place::Place;

/// The document's name and version.
pub const SCHEMA: &str = "quell.tune-plan/1";

/// What is to be written on one machine, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The SHA-256 of the plan as JSON without this field: `apply` takes no plan that was changed by hand.
    pub hash: String,
    /// The machine that it was made for.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// The CPUs that compute, as a list; empty where there is no such part.
    pub compute: String,
    /// The CPUs that are left to the system.
    pub housekeeping: String,
    /// What was chosen, in the order of their writes.
    pub mitigations: Vec<Chosen>,
    /// What is to be written, in order. Undone from the end.
    pub writes: Vec<Write>,
    /// What is left as it is, and why.
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
    /// How it stood when the plan was made.
    pub state: super::audit::State,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// `MITIGATION:PLACE`; the same in every plan that has it.
    pub id: String,
    /// The mitigation that it is for; where several want the same, the first.
    pub mitigation: String,
    /// What is written.
    pub place: Place,
    /// What it held when the plan was made, as read.
    pub old: String,
    /// What it shall hold.
    pub new: String,
    /// Files that the kernel changes with it, itself among them; they are kept and given back together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Whether a refusal of the kernel leaves the rest of the plan standing: managed interrupts among many.
    #[serde(default)]
    pub may_fail: bool,
    /// Whether it is for the next boot.
    #[serde(default)]
    pub staged: bool,
}

/// What a plan leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// The mitigation.
    pub mitigation: String,
    /// The place, or what is to be done by hand.
    pub what: String,
    /// Why.
    pub why: String,
}

/// What to plan.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Ids.
    pub ids: Vec<String>,
    /// Whether the settings shall also stand after the next boot: drop-ins for them, and staged boot options.
    pub persist: bool,
}

/// Makes a plan of what was seen. Pure: equal audits give equal plans.
///
/// # Errors
/// Unknown ids, ids that may not be together, a disruptive one among others, a value that only the user knows.
pub fn plan(audit: &Audit<'_>, choice: &Choice) -> Result<Plan, String> {
    let chosen = order::choose(audit, &choice.ids)?;
    let mut making = writes::Making::new(choice.persist);
    for one in &chosen {
        making.add(one)?;
    }
    let (writes, left) = making.done();
    let parts = audit.parts.as_ref().ok();
    let list = |cpus: &[quell_recording::Cpu]| quell_recording::format_cpu_list(cpus);
    let mut plan = Plan {
        schema: SCHEMA.to_owned(),
        hash: String::new(),
        host: audit.facts.host.clone(),
        kernel: audit.facts.kernel.clone(),
        compute: parts.map(|parts| list(&parts.compute)).unwrap_or_default(),
        housekeeping: parts.map(|parts| list(&parts.housekeeping)).unwrap_or_default(),
        mitigations: chosen.iter().map(|one| Chosen::of(one)).collect(),
        writes,
        left,
    };
    plan.hash = plan.hash_of();
    Ok(plan)
}

impl Chosen {
    fn of(audited: &super::audit::Audited<'_>) -> Self {
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
    /// The hash that belongs to what it says: the SHA-256, in hexadecimal, of its JSON without blanks and with an empty hash.
    pub fn hash_of(&self) -> String {
        let bare = Self { hash: String::new(), ..self.clone() };
        let text = serde_json::to_string(&bare).unwrap_or_default();
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The document, for people and for [`Self::read`].
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
