//! Looking whether what was applied still stands. Never writes.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::catalogue::Held;
use super::journal::{Entry, Transaction};
use super::keeper_process;
use super::moment::boot_id;
use super::place::{Place, Trouble};
use super::plan::Plan;
use super::plan::diff::shown;
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
    // Of plans that stand on one another only the last is held to what it wrote.
    let mut above = BTreeSet::new();
    for id in store.ids()?.into_iter().rev() {
        // Another quell may close it meanwhile.
        let Some(bytes) = store.read_if_there(&id)? else { continue };
        let transaction = Transaction::read(&id, &bytes);
        let rebooted = transaction.rebooted(&now_boot);
        let keeper = !rebooted && transaction.keeper.as_ref().is_some_and(keeper_process::lives);
        for entry in transaction.entries.iter().filter(|entry| entry.closed.is_none()) {
            if !above.insert(entry.intent.place.clone()) {
                continue;
            }
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
                want: shown(&write.place, &write.new),
                now: now.map(|now| shown(&write.place, &now)),
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
            // A drop-in of the same plan may have set it anew.
            let now = place.read(root).ok();
            match now.as_ref().is_some_and(|now| place.same(now, ours)) {
                true => (Standing::Ok, now, None),
                false => (Standing::Drifted, now, Some("a boot took it back".into())),
            }
        }
        (place @ Place::Unit { .. }, _) if rebooted => {
            // Whether it runs now is the boot's matter.
            let now = place.read(root).unwrap_or_default();
            let want = place.after_boot(ours, &now).unwrap_or_else(|| ours.clone());
            stands(root, place, &intent.original, &want, false, false)
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
        want: shown(&intent.place, &intent.write.new),
        now: now.map(|now| shown(&intent.place, &now)),
        why,
    }
}

type Stands = (Standing, Option<String>, Option<String>);

/// Somebody else may hold it lower; nobody can hold it higher.
fn held_stands(root: &Root, what: Held, want: &str) -> Stands {
    let now = (Place::Held { what }).read(root);
    let number = |text: &str| text.trim().parse::<i64>().ok();
    match now {
        Ok(_) if what == Held::TimestampSocket => (Standing::Ok, None, Some("its keeper lives".into())),
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
            let pending = match staged {
                true if in_force(root, place, ours) => None,
                true => Some("in force after the next boot or start".to_owned()),
                false => place.pending(root),
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

/// Whether a staged option of the kernel's is on its command line now.
fn in_force(root: &Root, place: &Place, text: &str) -> bool {
    let Place::DropIn { path } = place else { return false };
    let option = text.lines().find_map(|line| {
        let value = line.strip_prefix("GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} ")?;
        value.strip_suffix('"')
    });
    let cmdline = root.read("/proc/cmdline").unwrap_or_default();
    path.starts_with("/etc/default/grub.d/")
        && option.is_some_and(|option| cmdline.split_whitespace().any(|word| word == option))
}
