//! Restores what the kernel has changed along with the settings of a transaction.

use std::collections::BTreeSet;

use super::run::Run;
use super::{Foreign, How, Returned};
use crate::groups;
use crate::journal::{Dependents, Entry, Group, Moment, Noted, Outcome, Record};
use crate::place::{Place, PlaceError};

/// The dependents that were restored, and those that could not be.
#[derive(Debug, Default)]
pub(super) struct Restored {
    paths: BTreeSet<String>,
    failed: Vec<(String, PlaceError)>,
}

impl Restored {
    /// Together with what was restored later.
    pub(super) fn and(mut self, mut later: Self) -> Self {
        later.paths.append(&mut self.paths);
        later.paths.retain(|path| later.failed.iter().all(|(failed, _)| failed != path));
        later
    }
}

impl Run<'_> {
    /// The values that the dependents shall have after the settings are reverted, which changes them again. They are on disk when this returns.
    pub(super) fn targets(&mut self) -> Dependents {
        let transaction = self.transaction;
        let noted = transaction.before.iter().filter(|_| !transaction.restored);
        let targets: Dependents = noted
            .filter_map(|(path, noted)| {
                let value = self.target(path, noted)?;
                // The setting that changes it along is reverted all the same.
                let stays = || groups::value(self.root, &Place::File { path: path.clone() });
                let value = if self.stood_on.contains(path) { stays()? } else { value };
                Some((path.clone(), Noted { value, device: noted.device.clone() }))
            })
            .collect();
        let mut lasting = targets.clone();
        lasting.retain(|path, _| !self.stood_on.contains(path));
        // A keeper tries again and again, for which the journal must not grow.
        if !lasting.is_empty() && transaction.targets.as_ref() != Some(&lasting) {
            self.log(&Record::Dependents { at: Moment::Target, files: lasting });
        }
        targets
    }

    /// The original, unless someone else has changed the setting since then; none if it is not to be written.
    fn target(&self, path: &str, before: &Noted) -> Option<String> {
        let (transaction, place) = (self.transaction, Place::File { path: path.to_owned() });
        // Another device has the name now.
        if before.device.is_some() && place.device(self.root).is_some_and(|now| Some(now) != before.device) {
            return None;
        }
        if self.rebooted {
            // A boot gives it a value of its own, unless it sets what changes it, too.
            let mut owners = self.owners(path);
            return owners.any(|entry| self.is_set_at_boot(entry)).then(|| before.value.clone());
        }
        if self.foreign == Foreign::Overwrite {
            return Some(before.value.clone());
        }
        // Nothing was written yet.
        if transaction.after.is_none() && self.owners(path).next().is_none() {
            return None;
        }
        let targets = transaction.targets.as_ref();
        let target = targets.and_then(|targets| targets.get(path)).unwrap_or(before).value.clone();
        let (Some(now), Some(after), false) =
            (groups::value(self.root, &place), &transaction.after, transaction.is_reverting)
        else {
            return Some(target);
        };
        let mut open = transaction.entries.iter().filter(|entry| entry.closed.is_none());
        let is_ours = [&before.value, &target].iter().any(|value| place.same(&now, value))
            || after.get(path).is_some_and(|noted| place.same(&now, &noted.value))
            || open.any(|entry| entry.intent.place == place && self.is_ours(entry, &now));
        Some(if is_ours { target } else { now })
    }

    /// The entries that may change a dependent.
    fn owners(&self, path: &str) -> impl Iterator<Item = &Entry> {
        let names = move |entry: &&Entry| entry.intent.write.dependents.iter().any(|one| one == path);
        self.transaction.entries.iter().filter(names)
    }

    /// Whether each setting that changes a dependent still has quell's value, or another program's: it will change it again.
    fn waits(&self, path: &str) -> bool {
        let is_open = |entry: &Entry| entry.closed.is_none() && !self.closed.contains(&entry.intent.n);
        let mut owners = self.owners(path).peekable();
        owners.peek().is_some() && owners.all(is_open)
    }

    /// Restores the dependents whose settings are reverted.
    pub(super) fn restore(&self, targets: &Dependents) -> Restored {
        // One that is not there went with the CPU, or with another setting.
        let here = targets.iter().filter(|(path, _)| self.root.has(path) && !self.waits(path));
        let wanted: Group = here.map(|(path, noted)| (path.clone(), noted.value.clone())).collect();
        let differs = |(path, value): (&String, &String)| {
            let place = Place::File { path: path.clone() };
            (!place.read(self.root).is_ok_and(|now| place.same(&now, value))).then(|| path.clone())
        };
        let mut paths: BTreeSet<String> = wanted.iter().filter_map(differs).collect();
        if paths.is_empty() {
            return Restored::default();
        }
        let failed = groups::write_until_stable(self.root, &wanted).err().unwrap_or_default();
        paths.retain(|path| failed.iter().all(|(failed, _)| failed != path));
        Restored { paths, failed }
    }

    /// The dependents on which later transactions stand: they are restored after those.
    fn waiting(&self, targets: &Dependents) -> Vec<Returned> {
        let is_entry = |path: &str| self.reverted.places.iter().any(|one| one.place == path);
        let waits = targets.keys().filter(|path| self.stood_on.contains(*path) && !is_entry(path));
        let of = |path: &String| {
            let mitigation = self.owners(path).next().map(|entry| entry.intent.write.mitigation.clone());
            Returned { place: path.clone(), mitigation: mitigation.unwrap_or_default(), how: How::Waits }
        };
        waits.map(of).collect()
    }

    pub(super) fn close_dependents(&mut self, targets: &Dependents, restored: Restored) {
        let is_whole = restored.failed.is_empty() || self.foreign == Foreign::Forget;
        let failed = restored.failed.into_iter().map(|(path, trouble)| {
            let how = match self.foreign {
                Foreign::Forget => How::Closed(Outcome::Forgotten),
                _ => How::Failed(trouble.to_string()),
            };
            (path, how)
        });
        let restored = restored.paths.into_iter().filter(|path| !self.stood_on.contains(path));
        let restored = restored.map(|path| (path, How::Closed(Outcome::Restored)));
        let places: Vec<Returned> = restored
            .chain(failed)
            .map(|(path, how)| {
                let mitigation = self.owners(&path).next().map(|entry| entry.intent.write.mitigation.clone());
                Returned { place: path, mitigation: mitigation.unwrap_or_default(), how }
            })
            .collect();
        self.reverted.places.extend(places);
        let waiting = self.waiting(targets);
        let is_whole = is_whole && !targets.keys().any(|path| self.stood_on.contains(path));
        self.reverted.places.extend(waiting);
        if is_whole && !targets.is_empty() && !targets.keys().any(|path| self.waits(path)) {
            self.log(&Record::Dependents { at: Moment::Restored, files: Dependents::new() });
        }
    }
}
