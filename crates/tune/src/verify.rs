//! Checks whether what was applied is still in force. Never writes.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::catalogue::Held;
use super::journal::{Entry, Transaction};
use super::keeper_process;
use super::moment::boot_id;
use super::place::{Place, PlaceError, cpuset};
use super::plan::Plan;
use super::plan::diff::shown;
use super::root::Root;
use super::store::{Store, StoreError};

/// The state of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingState {
    /// It has the applied value.
    Ok,
    /// It takes effect later: at the next interrupt, the next boot, the next start of the program that reads it.
    Pending,
    /// The kernel does not permit changing it.
    Immovable,
    /// It does not exist on this machine, or no longer.
    Unavailable,
    /// It cannot be read.
    Unknown,
    /// It is no longer in force, although it was not reverted: it has its value from before quell, or what kept it is gone.
    Drifted,
    /// Someone else changed it.
    Foreign,
}

impl SettingState {
    /// Its name.
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

    /// Whether the user should look at it.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Drifted | Self::Foreign)
    }
}

/// One place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verified {
    /// The transaction; none if a plan is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// The mitigation.
    pub mitigation: String,
    /// The place.
    pub place: String,
    /// Its state.
    pub standing: SettingState,
    /// The wanted value.
    pub want: String,
    /// The current value.
    pub now: Option<String>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Everything that is applied, by place.
///
/// # Errors
/// The store's: only root may read journals.
pub fn verify(root: &Root) -> Result<Vec<Verified>, StoreError> {
    let mut all = Vec::new();
    let Some(store) = Store::open_if_there(root)? else { return Ok(all) };
    let now_boot = boot_id(root);
    // If several plans wrote a place, only the last one must match.
    let mut above = BTreeSet::new();
    for id in store.ids()?.into_iter().rev() {
        // Another quell may close it in the meantime.
        let Some(bytes) = store.read_if_there(&id)? else { continue };
        let transaction = Transaction::read(&id, &bytes);
        let rebooted = transaction.rebooted(&now_boot);
        let keeper = !rebooted && transaction.keepers.iter().any(keeper_process::lives);
        for entry in transaction.entries.iter().filter(|entry| entry.closed.is_none()) {
            if above.contains(&entry.intent.place.identity()) {
                continue;
            }
            // What the kernel refused leaves the earlier one in force.
            if !entry.is_untouched() {
                above.insert(entry.intent.place.identity());
            }
            all.push(entry_stands(root, &id, entry, rebooted, keeper));
        }
    }
    Ok(all)
}

/// The places of a plan, whether or not it was applied.
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
    let renamed = if rebooted { None } else { intent.renamed(root) };
    let (standing, now, why) = match (renamed.as_ref().unwrap_or(&intent.place), &entry.refused) {
        (_, Some((why, immovable))) if is_refused(root, entry) => {
            let standing = if *immovable { SettingState::Immovable } else { SettingState::Unavailable };
            (standing, intent.place.read(root).ok(), Some(why.clone()))
        }
        (place, _) if rebooted && !place.survives_boot() => {
            // A drop-in of the same plan may have set it again.
            let now = place.read(root).ok();
            match now.as_ref().is_some_and(|now| place.same(now, ours)) {
                true => (SettingState::Ok, now, None),
                false => (SettingState::Drifted, now, Some("a boot reset it".into())),
            }
        }
        (place @ Place::Unit { .. }, _) if rebooted => {
            // Whether it runs now is up to the boot.
            let now = place.read(root).unwrap_or_default();
            let want = place.after_boot(ours, &now).unwrap_or_else(|| ours.clone());
            stands(root, place, &intent.original, &want, false, false)
        }
        (Place::Held { .. }, _) if !keeper => {
            (SettingState::Drifted, None, Some("the process that held it is gone".into()))
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

/// Whether what the kernel refused is still as it was. A service may have written it later.
fn is_refused(root: &Root, entry: &Entry) -> bool {
    let Entry { intent, readback, .. } = entry;
    let differs = |text: &String| !intent.place.same(text, &intent.write.new);
    readback.as_ref().is_none_or(differs)
        || intent.place.read(root).is_ok_and(|now| intent.place.same(&now, &intent.original))
}

type Stands = (SettingState, Option<String>, Option<String>);

/// Checks a held value. Another process may hold it lower; none can hold it higher.
fn held_stands(root: &Root, what: Held, want: &str) -> Stands {
    let now = (Place::Held { what }).read(root);
    let number = |text: &str| text.trim().parse::<i64>().ok();
    match now {
        Ok(_) if what == Held::TimestampSocket => (SettingState::Ok, None, Some("its keeper runs".into())),
        Ok(now) => match (number(&now), number(want)) {
            (Some(has), Some(want)) if has > want => (SettingState::Foreign, Some(now), None),
            (None, _) => (SettingState::Drifted, Some(now), Some("no process holds it".into())),
            _ => (SettingState::Ok, Some(now), None),
        },
        Err(_) => (SettingState::Ok, None, Some("its keeper runs".into())),
    }
}

fn stands(root: &Root, place: &Place, original: &str, ours: &str, staged: bool, may_fail: bool) -> Stands {
    match place.read(root) {
        Ok(now) if place.same(&now, ours) => {
            let pending = match staged {
                true if in_force(root, place, ours) => None,
                true => Some("takes effect after the next boot or start".to_owned()),
                false => place.pending(root),
            };
            (if pending.is_some() { SettingState::Pending } else { SettingState::Ok }, Some(now), pending)
        }
        Ok(now) if matches!(place, Place::Cpuset { .. }) && cpuset::is_invalid(&now) => {
            let why =
                "the kernel has suspended the partition: its CPUs are offline, or another group has them";
            (SettingState::Drifted, Some(now), Some(why.into()))
        }
        Ok(now) if place.is_changed_by_kernel(&now, ours) => {
            (SettingState::Ok, Some(now), Some("the kernel has adapted it".into()))
        }
        Ok(now) if place.same(&now, original) => (SettingState::Drifted, Some(now), None),
        Ok(now) => (SettingState::Foreign, Some(now), None),
        Err(trouble @ PlaceError::Immovable(_)) => (SettingState::Immovable, None, Some(trouble.to_string())),
        Err(trouble) if trouble.is_absence() || may_fail => {
            (SettingState::Unavailable, None, Some(trouble.to_string()))
        }
        Err(trouble) => (SettingState::Unknown, None, Some(trouble.to_string())),
    }
}

/// Whether all staged boot options are on the kernel's command line now. What follows `--` is for init.
fn in_force(root: &Root, place: &Place, text: &str) -> bool {
    let Place::DropIn { path } = place else { return false };
    let options = text.lines().find_map(|line| {
        let value = line.strip_prefix("GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} ")?;
        value.strip_suffix('"')
    });
    let cmdline = root.read("/proc/cmdline").unwrap_or_default();
    let has =
        |option: &str| cmdline.split_whitespace().take_while(|word| *word != "--").any(|word| word == option);
    path.starts_with("/etc/default/grub.d/")
        && options.is_some_and(|options| options.split_whitespace().all(has))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn all_staged_options_must_be_on_the_command_line() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(folder.path().join("proc")).unwrap();
        let root = Root::at(folder.path()).unwrap();
        let path = "/etc/default/grub.d/90-quell-max-cstate.cfg".to_owned();
        let place = Place::DropIn { path };
        let two = "intel_idle.max_cstate=1 processor.max_cstate=1";
        let text = format!("# quell\nGRUB_CMDLINE_LINUX=\"${{GRUB_CMDLINE_LINUX}} {two}\"\n");
        for (line, expected) in [
            (format!("ro {two} quiet"), true),
            ("processor.max_cstate=1 ro intel_idle.max_cstate=1".into(), true),
            ("ro intel_idle.max_cstate=1".into(), false),
            ("ro intel_idle.max_cstate=1 -- processor.max_cstate=1".into(), false),
        ] {
            fs_err::write(folder.path().join("proc/cmdline"), &line).unwrap();
            assert_eq!(in_force(&root, &place, &text), expected, "{line}");
        }
    }
}
