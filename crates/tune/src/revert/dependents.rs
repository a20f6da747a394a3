//! Restores what the kernel has changed along with the settings of a transaction.

use std::collections::BTreeSet;

use super::run::Run;
use super::{Foreign, How, Returned};
use crate::groups;
use crate::journal::{Dependents, Group, Moment, Noted, Outcome, Record};
use crate::place::Place;

impl Run<'_> {
    /// The values that the dependents shall have after the settings are reverted, which changes them again. They are on disk when this returns.
    pub(super) fn targets(&mut self) -> Dependents {
        let before = &self.transaction.before;
        let targets: Dependents = before
            .iter()
            .filter_map(|(path, noted)| {
                let place = Place::File { path: path.clone() };
                // Another device has the name now.
                let is_other = noted.device.is_some()
                    && place.device(self.root).is_some_and(|now| Some(now) != noted.device);
                let value = if is_other { None } else { self.target(&place, path, noted) }?;
                Some((path.clone(), Noted { value, device: noted.device.clone() }))
            })
            .collect();
        // A keeper tries again and again, for which the journal must not grow.
        if !targets.is_empty() && !self.transaction.restored && self.transaction.targets.is_none() {
            self.log(&Record::Dependents { at: Moment::Target, files: targets.clone() });
        }
        targets
    }

    /// The original, unless someone else has changed the setting since then; none if it is not there.
    fn target(&self, place: &Place, path: &str, before: &Noted) -> Option<String> {
        let transaction = self.transaction;
        let now = place.read(self.root).ok();
        if self.rebooted || transaction.restored {
            return now;
        }
        if self.foreign == Foreign::Overwrite {
            return Some(before.value.clone());
        }
        if let Some(targets) = &transaction.targets {
            return targets.get(path).map(|noted| noted.value.clone());
        }
        let original = Some(before.value.clone());
        let (Some(now), Some(after)) = (now, &transaction.after) else { return original };
        let mut open = transaction.entries.iter().filter(|entry| entry.closed.is_none());
        let is_ours = place.same(&now, &before.value)
            || after.get(path).is_some_and(|noted| place.same(&now, &noted.value))
            || open.any(|entry| entry.intent.place == *place && self.is_ours(entry, &now));
        if is_ours { original } else { Some(now) }
    }

    /// Restores the dependents, once the settings are reverted.
    pub(super) fn restore(&mut self, targets: &Dependents) {
        let differs = |(path, noted): (&String, &Noted)| {
            let place = Place::File { path: path.clone() };
            let differs = match place.read(self.root) {
                Ok(now) => !place.same(&now, &noted.value),
                // It went with the CPU, or with another setting.
                Err(trouble) => !trouble.is_absence(),
            };
            differs.then(|| path.clone())
        };
        let moved: BTreeSet<String> = targets.iter().filter_map(differs).collect();
        if !moved.is_empty() {
            let is_here = |path: &String| self.root.has(path);
            let wanted: Group = targets
                .iter()
                .filter(|(path, _)| is_here(path))
                .map(|(path, noted)| (path.clone(), noted.value.clone()))
                .collect();
            let troubles = groups::write_until_stable(self.root, &wanted).err().unwrap_or_default();
            let failed: Vec<Returned> = troubles
                .iter()
                .map(|(path, trouble)| self.returned(path, How::Failed(trouble.to_string())))
                .collect();
            let restored: Vec<Returned> = moved
                .iter()
                .filter(|path| troubles.iter().all(|(failed, _)| failed != *path))
                .map(|path| self.returned(path, How::Closed(Outcome::Restored)))
                .collect();
            self.reverted.places.extend(restored.into_iter().chain(failed));
            if !troubles.is_empty() && self.foreign != Foreign::Forget {
                return;
            }
        }
        if !targets.is_empty() && !self.transaction.restored {
            self.log(&Record::Dependents { at: Moment::Restored, files: Dependents::new() });
        }
    }

    fn returned(&self, path: &str, how: How) -> Returned {
        let entries = &self.transaction.entries;
        let cause = entries.iter().find(|entry| entry.intent.write.dependents.iter().any(|one| one == path));
        let mitigation = cause.map(|entry| entry.intent.write.mitigation.clone()).unwrap_or_default();
        Returned { place: path.to_owned(), mitigation, how }
    }
}
