//! Guard rails: when a plan is applied only with the user's explicit permission, and when it never is.

mod container;
mod covers;
mod processes;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::catalogue::{Catalogue, Mitigation, Risk};
use super::deny;
use super::place::{ABSENT, Place};
use super::plan::{Plan, Write};
use super::root::Root;

/// What the user permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The highest risk.
    pub risk: Risk,
    /// Whether settings that another program manages may be changed.
    pub owner: bool,
    /// Whether other users' work may be disturbed.
    pub users: bool,
}

impl Allowed {
    /// What is allowed where the user permits nothing more.
    pub const BY_DEFAULT: Self = Self { risk: Risk::Low, owner: false, users: false };
}

/// Why a plan is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// `container`, `owner`, `users`, `risk`, `deny-list` or `bulk`.
    pub rule: &'static str,
    /// The condition that was found.
    pub what: String,
    /// What to do.
    pub next: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.next)
    }
}

/// The sign that this is a container, if it is one.
pub fn container(root: &Root) -> Option<String> {
    container::sign(root)
}

/// The program that manages the node's settings, if there is one.
pub fn owner(root: &Root) -> Option<String> {
    processes::owner(root, &processes::all(root))
}

/// All reasons not to apply a plan here. Risk and scope of a mitigation are taken from the catalogue, not from the plan: a plan is a file
/// that anyone may have written.
pub fn refusals(root: &Root, plan: &Plan, allowed: Allowed, catalogue: &Catalogue) -> Vec<Refusal> {
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
            what: format!("{owner} owns the settings of this node and would change them back, or treat quell's as its own"),
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
    let ids = plan.mitigations.iter().map(|one| &one.id).chain(plan.writes.iter().map(|one| &one.mitigation));
    let ids: BTreeSet<&String> = ids.collect();
    // A mitigation that writes nothing here has no risk.
    let written: BTreeSet<&String> = plan.writes.iter().map(|one| &one.mitigation).collect();
    let chosen: Vec<&Mitigation> = written.iter().filter_map(|id| catalogue.get(id)).collect();
    all.extend(too_risky(&chosen, allowed.risk));
    all.extend(ids.into_iter().filter(|id| catalogue.get(id).is_none()).map(|id| unknown(id)));
    all.extend(plan.writes.iter().filter_map(|write| denied(write, catalogue)));
    all.extend(in_bulk(&chosen));
    all
}

fn too_risky(chosen: &[&Mitigation], most: Risk) -> Option<Refusal> {
    let beyond: Vec<_> = chosen.iter().filter(|one| one.risk > most).collect();
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

fn unknown(id: &str) -> Refusal {
    Refusal {
        rule: "deny-list",
        what: format!("`{}` is not in the catalogue of this machine", quell_recording::one_line(id)),
        next: "put the site's file for it into /etc/quell/mitigations.d here, or leave it out of the plan"
            .into(),
    }
}

fn denied(write: &Write, catalogue: &Catalogue) -> Option<Refusal> {
    let check = || {
        write.group.iter().chain(&write.dependents).try_for_each(|path| deny::file(path))?;
        match &write.place {
            Place::File { path } => deny::file(path)?,
            Place::DropIn { path } if write.new == ABSENT => deny::drop_in(path)?,
            Place::DropIn { path } => drop(deny::contents(path, &write.new)?),
            Place::Unit { name } => deny::unit(name)?,
            _ => {}
        }
        // An unknown mitigation is refused elsewhere.
        let Some(one) = catalogue.get(&write.mitigation) else { return Ok(()) };
        match covers::covers(one, write) {
            true => Ok(()),
            false => Err(format!("`{}` does not touch {}", one.id, write.place)),
        }
    };
    let what = quell_recording::one_line(&check().err()?);
    Some(Refusal { rule: "deny-list", what, next: "leave it out of the plan".into() })
}

fn in_bulk(chosen: &[&Mitigation]) -> Option<Refusal> {
    let disruptive = chosen.iter().find(|one| one.disruptive)?;
    (chosen.len() > 1).then(|| Refusal {
        rule: "bulk",
        what: format!("{} disturbs every program on the node", disruptive.id),
        next: "apply it in a plan of its own".into(),
    })
}

#[cfg(test)]
mod tests;
