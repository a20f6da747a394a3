//! Looking whether what was applied still stands. Never writes.

use schemars::JsonSchema;
use serde::Serialize;

use super::apply::boot_id;
use super::journal::{Entry, Transaction};
use super::keeper;
use super::place::{Place, Trouble};
use super::plan::Plan;
use super::root::Root;
use super::store::{Store, StoreError};

/// How one place stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// As applied.
    Ok,
    /// It will be: at the next interrupt, the next boot, the next start of what reads it.
    Pending,
    /// The kernel lets nobody change it.
    Immovable,
    /// It is not on this machine, or not any more.
    Unavailable,
    /// It cannot be seen.
    Unknown,
    /// It is as it was before quell, though nobody reverted.
    Drifted,
    /// Somebody else changed it.
    Foreign,
}

impl Standing {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Pending => "pending",
            Self::Immovable => "immovable",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Drifted => "drifted",
            Self::Foreign => "foreign",
        }
    }

    /// Whether somebody must look at it.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Drifted | Self::Foreign)
    }
}

/// One place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verified {
    /// The transaction; none where a plan is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// The mitigation.
    pub mitigation: String,
    /// The place.
    pub place: String,
    /// How it stands.
    pub standing: Standing,
    /// What it should hold.
    pub want: String,
    /// What it holds.
    pub now: Option<String>,
    /// More words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Everything that is applied, place by place.
///
/// # Errors
/// The store's: only root may read journals.
pub fn verify(root: &Root) -> Result<Vec<Verified>, StoreError> {
    let mut all = Vec::new();
    let Some(store) = Store::open_if_there(root)? else { return Ok(all) };
    let now_boot = boot_id(root);
    for id in store.ids()? {
        let transaction = Transaction::read(&id, &store.read(&id)?);
        let then = transaction.begin.as_ref().map_or("", |begin| begin.boot_id.as_str());
        let rebooted = !then.is_empty() && !now_boot.is_empty() && then != now_boot;
        let keeper = transaction.keeper.as_ref().is_some_and(keeper::lives);
        for entry in transaction.entries.iter().filter(|entry| entry.closed.is_none()) {
            all.push(entry_stands(root, &id, entry, rebooted, keeper));
        }
    }
    Ok(all)
}

/// The places of a plan, whether it was applied or not.
pub fn verify_plan(root: &Root, plan: &Plan) -> Vec<Verified> {
    plan.writes
        .iter()
        .map(|write| {
            let (standing, now, why) =
                stands(root, &write.place, &write.old, &write.new, write.staged, write.may_fail);
            Verified {
                transaction: None,
                mitigation: write.mitigation.clone(),
                place: write.place.to_string(),
                standing,
                want: write.new.trim().to_owned(),
                now,
                why,
            }
        })
        .collect()
}

fn entry_stands(root: &Root, id: &str, entry: &Entry, rebooted: bool, keeper: bool) -> Verified {
    let intent = &entry.intent;
    let ours = entry.readback.as_ref().unwrap_or(&intent.write.new);
    let (standing, now, why) = match (&intent.place, &entry.refused) {
        (_, Some((why, immovable))) => {
            let standing = if *immovable { Standing::Immovable } else { Standing::Unavailable };
            (standing, intent.place.read(root).ok(), Some(why.clone()))
        }
        (place, _) if rebooted && !place.survives_boot() => {
            (Standing::Drifted, place.read(root).ok(), Some("a boot took it back".into()))
        }
        (Place::Held { .. }, _) if !keeper => {
            (Standing::Drifted, None, Some("the process that held it is gone".into()))
        }
        (Place::Held { what }, _) => held_stands(root, *what, &intent.write.new),
        (place, _) => stands(root, place, &intent.original, ours, intent.write.staged, false),
    };
    Verified {
        transaction: Some(id.to_owned()),
        mitigation: intent.write.mitigation.clone(),
        place: intent.place.to_string(),
        standing,
        want: intent.write.new.trim().to_owned(),
        now: now.map(|now| now.trim().to_owned()),
        why,
    }
}

type Stands = (Standing, Option<String>, Option<String>);

/// Somebody else may hold it lower; nobody can hold it higher.
fn held_stands(root: &Root, what: super::catalogue::Held, want: &str) -> Stands {
    let now = (Place::Held { what }).read(root);
    let number = |text: &str| text.trim().parse::<i64>().ok();
    match now {
        Ok(now) => match (number(&now), number(want)) {
            (Some(has), Some(want)) if has > want => (Standing::Foreign, Some(now), None),
            _ => (Standing::Ok, Some(now), None),
        },
        Err(_) => (Standing::Ok, None, Some("its keeper lives".into())),
    }
}

fn stands(root: &Root, place: &Place, original: &str, ours: &str, staged: bool, may_fail: bool) -> Stands {
    match place.read(root) {
        Ok(now) if place.same(&now, ours) => {
            let pending = if staged {
                Some("in force after the next boot or start".to_owned())
            } else {
                place.pending(root)
            };
            (if pending.is_some() { Standing::Pending } else { Standing::Ok }, Some(now), pending)
        }
        Ok(now) if place.same(&now, original) => (Standing::Drifted, Some(now), None),
        Ok(now) => (Standing::Foreign, Some(now), None),
        Err(trouble @ Trouble::Immovable(_)) => (Standing::Immovable, None, Some(trouble.to_string())),
        Err(trouble) if trouble.is_absence() || may_fail => {
            (Standing::Unavailable, None, Some(trouble.to_string()))
        }
        Err(trouble) => (Standing::Unknown, None, Some(trouble.to_string())),
    }
}
