//! Reverts the places of one transaction.

use std::collections::BTreeSet;

use super::{Foreign, How, Returned, Reverted};
use crate::catalogue::Property;
use crate::fault;
use crate::groups;
use crate::journal::{Entry, Group, Intent, Journal, KeeperRecord, Outcome, Record, Transaction};
use crate::keeper_process;
use crate::place::{ABSENT, Place, PlaceError};
use crate::root::Root;

/// Why a setting is still held.
const NEEDED: &str = "its keeper is needed by a later transaction: revert that first";

/// A property of a thread, which may have another name by now.
pub(super) type Thread = (u32, u64, Property);

/// One transaction while it is reverted.
pub(super) struct Run<'a> {
    pub root: &'a Root,
    pub journal: Option<Journal>,
    pub foreign: Foreign,
    pub rebooted: bool,
    pub transaction: &'a Transaction,
    /// Its keepers that other open transactions name, too.
    pub needed: Vec<KeeperRecord>,
    /// Its places on which later open transactions stand, by their identity.
    pub stood_on: BTreeSet<String>,
    /// Places of later transactions, reverted just now, that someone else changed: what stands below them waits for the user, not for a time.
    pub foreign_above: BTreeSet<String>,
    pub reverted: Reverted,
    /// The numbers of the intents that this revert has closed.
    pub closed: BTreeSet<usize>,
    /// The numbers of those that it began to write.
    pub began: BTreeSet<usize>,
    /// The threads with which other open transactions deal.
    pub threads_of_others: BTreeSet<Thread>,
    /// The numbers of those of threads that it has given their originals.
    pub restored_threads: BTreeSet<usize>,
}

/// Whether a place that cannot be read has vanished, as with its device or thread.
pub fn is_gone(root: &Root, place: &Place, trouble: &PlaceError) -> bool {
    match (place, trouble) {
        (_, PlaceError::Gone(_)) => true,
        (Place::Unit { .. }, PlaceError::Missing) => true,
        // While a file system is not mounted, its files are missing, but have not vanished.
        (Place::File { path }, PlaceError::Missing) => {
            let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
            !path.starts_with("/sys/kernel/debug/") && !root.has(folder)
        }
        _ => false,
    }
}

impl Run<'_> {
    pub fn all(&mut self) {
        let targets = self.targets();
        let mut again = Vec::new();
        // Newest first: a place that was written twice gets its first original last.
        let entries = self.transaction.entries.iter().rev().filter(|entry| entry.closed.is_none());
        let (held, mut open): (Vec<&Entry>, Vec<&Entry>) =
            entries.partition(|entry| matches!(entry.intent.place, Place::Held { .. }));
        if self.rebooted {
            // A file of a group that the boot has reset stays: written by itself, it would change the others.
            open.retain(|entry| {
                let is_reset = !entry.intent.group.is_empty() && !self.is_set_at_boot(entry);
                if is_reset {
                    self.close(entry, How::Closed(Outcome::Rebooted));
                }
                !is_reset
            });
        }
        while !open.is_empty() {
            let first = open.remove(0);
            if first.intent.group.is_empty() {
                let is_dependent =
                    matches!(&first.intent.place, Place::File { path } if targets.contains_key(path));
                match self.one(first) {
                    How::Failed(_) => again.push(first),
                    How::Foreign(_) if is_dependent => again.push(first),
                    how => self.close(first, how),
                }
                continue;
            }
            // Entries that share a file are reverted together.
            let mut group = vec![first];
            let files: BTreeSet<&String> = first.intent.group.keys().collect();
            open.retain(|entry| {
                let shares = entry.intent.group.keys().any(|path| files.contains(path));
                if shares {
                    group.push(entry);
                }
                !shares
            });
            self.together(&group);
        }
        let mut restored = self.restore(&targets);
        if !again.is_empty() {
            // The kernel refuses some values as long as another setting has quell's, and has changed some along with one that came back.
            for entry in again {
                let how = self.one(entry);
                self.close(entry, how);
            }
            restored = restored.and(self.restore(&targets));
        }
        self.close_dependents(&targets, restored);
        self.restore_later_threads();
        // Last, because until here a keeper would revert if this process were killed; the second first, because it would take over from the
        // first. After a reboot their pids belong to other processes. Where something is left to revert, they try again at their time.
        let (failed, needed) = (self.reverted.may_go_on(&self.foreign_above), self.needed.clone());
        let stays = |keeper: &&KeeperRecord| needed.contains(keeper) || failed && keeper.until.is_some();
        let keepers = self.transaction.keepers.iter().rev().filter(|_| !self.rebooted);
        keepers.filter(|keeper| !stays(keeper)).for_each(keeper_process::stop);
        let is_me = |keeper: &&KeeperRecord| keeper.pid == std::process::id();
        let mine = self.transaction.keepers.iter().any(|keeper| is_me(&keeper));
        let holds = |keeper: &KeeperRecord| stays(&keeper) && keeper_process::lives(keeper);
        let mut others = self.transaction.keepers.iter().filter(|keeper| !is_me(keeper));
        let is_held = (failed || !mine) && !self.rebooted && others.any(holds);
        for entry in held {
            let how = match (self.rebooted, is_held) {
                (true, _) => How::Closed(Outcome::Rebooted),
                (false, true) => {
                    let why = if failed { "it ends with what could not be reverted" } else { NEEDED };
                    How::Failed(why.into())
                }
                (false, false) => How::Closed(Outcome::Restored),
            };
            self.close(entry, how);
        }
    }

    fn one(&mut self, entry: &Entry) -> How {
        let intent = &entry.intent;
        // A boot numbers network devices anew.
        let renamed = if self.rebooted { None } else { intent.renamed(self.root) };
        let place = renamed.as_ref().unwrap_or(&intent.place);
        // Another device has the name now, and its own value.
        let is_other = || place.device(self.root).is_some_and(|now| Some(now) != intent.device);
        if renamed.is_none() && intent.device.is_some() && is_other() {
            return How::Closed(Outcome::Gone);
        }
        let current = match place.read(self.root) {
            Ok(current) => current,
            Err(_) if self.rebooted && !place.survives_boot() => return How::Closed(Outcome::Rebooted),
            Err(trouble) => return self.unseen(place, &trouble),
        };
        let mut original = intent.original.clone();
        if self.rebooted {
            match place.after_boot(&original, &current) {
                Some(value) => original = value,
                None if self.is_set_at_boot(entry) => {}
                None => return How::Closed(Outcome::Rebooted),
            }
        }
        // What a later transaction left here, another program may have replaced by any value, also by this original.
        if self.stood_on.contains(&intent.place.identity()) {
            return How::Waits;
        }
        // A crash between the intent and the write, or between a revert and its record, leaves the original in place.
        if place.same(&current, &original) {
            // A crash may have left a temporary file next to the drop-in, or threads as they were in a cpuset that is gone.
            let leaves = match place {
                Place::DropIn { .. } => entry.readback.is_none(),
                Place::Cpuset { .. } => original == ABSENT,
                _ => false,
            };
            if leaves {
                let _ = place.write(self.root, &original);
            }
            return How::Closed(Outcome::Already);
        }
        if entry.is_untouched() && self.transaction.refusals_were_looked_at() {
            return How::Closed(Outcome::Already);
        }
        if !self.is_ours(entry, &current) {
            match self.foreign {
                Foreign::Keep => return How::Foreign(current),
                Foreign::Forget => return How::Closed(Outcome::Forgotten),
                Foreign::Overwrite => {}
            }
        }
        if place.has_steps() && !entry.reverting && self.began.insert(intent.n) {
            self.log(&Record::Reverting { n: intent.n });
        }
        // Tests kill the process at these points: a write that is not in the journal must be found by its value.
        fault::point();
        let written = place.write(self.root, &original);
        fault::point();
        match written {
            // Read back, because the kernel may accept a write and keep another value.
            Ok(()) => match place.read(self.root) {
                Ok(now) if place.same(&now, &original) => How::Closed(Outcome::Restored),
                Ok(now) => {
                    How::Failed(format!("it shows `{}` in place of `{}`", now.trim(), original.trim()))
                }
                Err(trouble) => How::Failed(trouble.to_string()),
            },
            Err(PlaceError::Invalid(_)) => self.nearest(place, &original, &current),
            Err(trouble) => self.unseen(place, &trouble),
        }
    }

    /// Whether the place has the value that a drop-in of the same plan set again at boot: it is still quell's.
    pub(super) fn is_set_at_boot(&self, entry: &Entry) -> bool {
        let mine = |other: &&Entry| {
            other.intent.write.mitigation == entry.intent.write.mitigation
                && matches!(other.intent.place, Place::DropIn { .. })
        };
        let (place, new) = (&entry.intent.place, &entry.intent.write.new);
        self.transaction.entries.iter().any(|other| mine(&other))
            && place.read(self.root).is_ok_and(|now| place.same(&now, new))
    }

    /// Whether quell left this value: it is the new one, or the one that was read back. After an interrupted write or revert, or a reboot, it may
    /// also be an intermediate one, as it may be of a unit: systemd starts and enables it along with a later one that is restored before.
    pub(super) fn is_ours(&self, entry: &Entry, current: &str) -> bool {
        let (intent, place) = (&entry.intent, &entry.intent.place);
        if let (Place::File { path }, Some(after)) = (place, &self.transaction.after)
            && after.get(path).is_some_and(|noted| place.same(current, &noted.value))
        {
            return true;
        }
        if entry.is_untouched() {
            return false;
        }
        let torn = entry.readback.is_none() || entry.reverting || self.began.contains(&intent.n);
        place.same(current, &intent.write.new)
            || place.is_changed_by_kernel(current, &intent.write.new)
            || entry.readback.as_ref().is_some_and(|readback| place.same(current, readback))
            || (torn || self.rebooted || self.restores_units_before(intent))
                && place.half_way(current, &intent.original, &intent.write.new)
    }

    fn restores_units_before(&self, intent: &Intent) -> bool {
        let is_unit = |intent: &Intent| matches!(intent.place, Place::Unit { .. });
        let mut later =
            self.transaction.entries.iter().map(|entry| &entry.intent).filter(|one| one.n > intent.n);
        is_unit(intent) && later.any(is_unit)
    }

    /// The result for a place that cannot be read or written. It may have vanished with its device or thread; otherwise the next revert
    /// tries again.
    fn unseen(&self, place: &Place, trouble: &PlaceError) -> How {
        match (is_gone(self.root, place, trouble), self.foreign) {
            (true, _) => How::Closed(Outcome::Gone),
            (false, Foreign::Forget) => How::Closed(Outcome::Forgotten),
            (false, _) => How::Failed(trouble.to_string()),
        }
    }

    /// The kernel may refuse a value that it once had, because a limit has changed since. The nearest value that it accepts is then better
    /// than quell's. The place stays open, because the limit may change back.
    fn nearest(&self, place: &Place, original: &str, ours: &str) -> How {
        let refused = || How::Failed(format!("the kernel no longer takes `{}`", original.trim()));
        if self.foreign == Foreign::Forget {
            return How::Closed(Outcome::Forgotten);
        }
        let (Place::File { .. }, Ok(target)) = (place, original.trim().parse::<i64>()) else {
            return refused();
        };
        let takes = |value: i64| {
            place.write(self.root, &value.to_string()).is_ok()
                && place.read(self.root).is_ok_and(|now| place.same(&now, &value.to_string()))
        };
        let mut best = ours.trim().parse::<i64>().ok();
        for sign in [1, -1] {
            let far = |steps: u32| {
                target.saturating_add(sign * (target.saturating_abs() / 1000 + 1).saturating_mul(1 << steps))
            };
            let Some(mut good) = (0..10).map(far).find(|value| takes(*value)) else { continue };
            let mut bad = target;
            for _ in 0..24 {
                let middle = bad + (good - bad) / 2;
                if middle == bad || middle == good {
                    break;
                }
                if takes(middle) { good = middle } else { bad = middle }
            }
            let nearer = |best: i64| target.abs_diff(good) < target.abs_diff(best);
            best = if best.is_none_or(nearer) { Some(good) } else { best };
        }
        match best.filter(|best| takes(*best)) {
            Some(best) => How::Nearest { original: original.trim().to_owned(), nearest: best.to_string() },
            None => refused(),
        }
    }

    /// Reverts entries whose files the kernel changes together, newest first. If someone else changed one of the files, all are left alone.
    fn together(&mut self, entries: &[&Entry]) {
        // The oldest snapshot has the originals; the newest readback has the values that quell left.
        let mut target = entries.iter().rev().fold(Group::new(), |mut target, entry| {
            for (path, text) in &entry.intent.group {
                target.entry(path.clone()).or_insert_with(|| text.clone());
            }
            target
        });
        if self.rebooted {
            // A boot gives files that quell has not written values of its own.
            target.retain(|path, original| self.stranger(entries, path, original).is_none());
        }
        if target.keys().any(|path| self.stood_on.contains(path)) {
            entries.iter().for_each(|entry| self.close(entry, How::Waits));
            return;
        }
        let foreign = match self.foreign {
            Foreign::Overwrite => None,
            _ => target.iter().find_map(|(path, original)| self.stranger(entries, path, original)),
        };
        if let Some((path, now)) = foreign {
            for entry in entries {
                let how = match self.foreign {
                    Foreign::Forget => How::Closed(Outcome::Forgotten),
                    _ => How::Foreign(format!("{} ({path})", now.trim())),
                };
                self.close(entry, how);
            }
            return;
        }
        fault::point();
        let settled = groups::write_until_stable(self.root, &target).err().unwrap_or_default();
        fault::point();
        for entry in entries {
            let how = match settled.first() {
                Some((path, trouble)) => How::Failed(format!("{path}: {trouble}")),
                None => How::Closed(Outcome::Restored),
            };
            self.close(entry, how);
        }
    }

    /// The file and value, if someone else changed this file of a group.
    fn stranger(&self, entries: &[&Entry], path: &str, original: &str) -> Option<(String, String)> {
        let place = Place::File { path: path.to_owned() };
        let now = place.read(self.root).ok()?;
        let is = |text: &str| place.same(&now, text);
        let left = entries.iter().find_map(|entry| entry.group_after.get(path));
        // After a crash between a write and its readback, the file has the new value, or the 0 that the kernel sets when the other file of
        // a pair is written.
        let torn = entries.first().is_none_or(|entry| entry.readback.is_none());
        let written = entries.iter().filter(|entry| entry.intent.place == place);
        let half = torn && (is("0") || written.map(|entry| &entry.intent.write.new).any(|new| is(new)));
        let known = is(original) || left.map_or(!torn, |left| is(left)) || half;
        (!known).then(|| (path.to_owned(), now))
    }

    fn close(&mut self, entry: &Entry, how: How) {
        if matches!(how, How::Closed(_)) {
            self.closed.insert(entry.intent.n);
        }
        if how == How::Closed(Outcome::Restored) && matches!(entry.intent.place, Place::Thread { .. }) {
            self.restored_threads.insert(entry.intent.n);
        }
        if let (How::Closed(Outcome::Restored | Outcome::Already), Some(ours)) = (&how, &entry.readback) {
            let Intent { place, irqs, original, .. } = &entry.intent;
            place.give_default(self.root, irqs, ours, original);
        }
        let record = match &how {
            How::Closed(how) => Some(Record::Closed { n: entry.intent.n, how: *how }),
            How::Nearest { nearest, .. } if entry.readback.as_ref() != Some(nearest) => {
                Some(Record::Took { n: entry.intent.n, readback: nearest.clone(), group: Group::new() })
            }
            How::Nearest { .. } | How::Foreign(_) | How::Waits | How::Failed(_) => None,
        };
        if let Some(record) = record {
            self.log(&record);
        }
        self.reverted.places.push(Returned {
            place: entry.intent.place.to_string(),
            mitigation: entry.intent.write.mitigation.clone(),
            how,
        });
    }

    pub(super) fn log(&mut self, record: &Record) {
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.append(record)
        {
            self.reverted.unwritten.get_or_insert(error.to_string());
        }
    }
}
