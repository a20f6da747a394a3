//! Guard rails: where a plan is not applied unless the user says more, and where it never is.

mod container;
mod processes;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::catalogue::Risk;
use super::deny;
use super::place::Place;
use super::plan::Plan;
use super::root::Root;

/// What the user allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The highest risk.
    pub risk: Risk,
    /// Whether another program's settings may be changed under it.
    pub owner: bool,
    /// Whether other users' work may be disturbed.
    pub users: bool,
}

/// Why a plan is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// `container`, `owner`, `users`, `risk`, `deny-list` or `bulk`.
    pub rule: &'static str,
    /// What is so.
    pub what: String,
    /// What to do.
    pub next: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.next)
    }
}

/// What tells that this is a container, if it is one.
pub fn container(root: &Root) -> Option<String> {
    container::sign(root)
}

/// The program that owns the node's settings, if one does.
pub fn owner(root: &Root) -> Option<String> {
    processes::owner(root, &processes::all(root))
}

/// All reasons not to apply a plan here.
pub fn refusals(root: &Root, plan: &Plan, allowed: Allowed) -> Vec<Refusal> {
    let mut all = Vec::new();
    all.extend(container::sign(root).map(|sign| Refusal {
        rule: "container",
        what: format!("this is a container ({sign}), and its kernel is the host's"),
        next: "apply on the host".into(),
    }));
    let processes = processes::all(root);
    if !allowed.owner {
        all.extend(processes::owner(root, &processes).map(|owner| Refusal {
            rule: "owner",
            what: format!("{owner} owns the settings of this node and would change them back, or take quell's for its own"),
            next: "stop it, put the settings into it (`quell tune export`), or add --allow-owner".into(),
        }));
    }
    if !allowed.users {
        all.extend(processes::others_work(root, &processes).map(|work| Refusal {
            rule: "users",
            what: format!("others are at work here: {work}"),
            next: "wait until they are done, drain the node, or add --allow-users".into(),
        }));
    }
    all.extend(too_risky(plan, allowed.risk));
    all.extend(denied(plan));
    all.extend(in_bulk(plan));
    all
}

fn too_risky(plan: &Plan, most: Risk) -> Option<Refusal> {
    let beyond: Vec<_> = plan.mitigations.iter().filter(|one| one.risk > most).collect();
    let highest = beyond.iter().map(|one| one.risk).max()?;
    let named: Vec<String> = beyond.iter().map(|one| format!("{} ({})", one.id, one.risk.word())).collect();
    Some(Refusal {
        rule: "risk",
        what: format!("beyond the risk that is allowed ({}): {}", most.word(), named.join(", ")),
        next: format!(
            "read their caveats (`quell tune audit ID`), then leave them out or add --max-risk {}",
            highest.word()
        ),
    })
}

/// A plan is a file that anybody may have written.
fn denied(plan: &Plan) -> Vec<Refusal> {
    let check = |place: &Place| match place {
        Place::File { path } => deny::file(path),
        Place::DropIn { path } => deny::drop_in(path),
        Place::Unit { name } => deny::unit(name),
        _ => Ok(()),
    };
    let reasons = plan.writes.iter().filter_map(|write| check(&write.place).err());
    reasons.map(|what| Refusal { rule: "deny-list", what, next: "leave it out of the plan".into() }).collect()
}

fn in_bulk(plan: &Plan) -> Option<Refusal> {
    let disruptive = plan.mitigations.iter().find(|one| one.disruptive)?;
    (plan.mitigations.len() > 1).then(|| Refusal {
        rule: "bulk",
        what: format!("{} disturbs every program on the node", disruptive.id),
        next: "apply it in a plan of its own".into(),
    })
}
