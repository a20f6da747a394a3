//! Reverts transactions. Each place that still has the value that quell wrote gets its original back, in reverse order; a value that
//! someone else wrote since then is left alone.

mod result;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub use self::result::{Damage, How, Returned, Reverted};
use super::fault;
use super::groups;
use super::journal::{Entry, Group, Journal, KeeperRecord, Outcome, Record, Transaction};
use super::keeper_process;
use super::moment::{boot_id, now};
use super::place::{Place, PlaceError};
use super::root::Root;
use super::store::{Lock, Store, StoreError};

/// What to do with a place that someone else changed since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Keeps and reports the value, and checks it again at the next revert.
    Keep,
    /// Keeps the value, and stops tracking the place.
    Forget,
    /// Overwrites it with the original.
    Overwrite,
}

/// Reverts one transaction, or all that are open, newest first: the originals of a later transaction are what an earlier one wrote.
///
/// # Errors
/// The store's; an id that is not open; a transaction that a later one overlaps.
pub fn revert(root: &Root, id: Option<&str>, foreign: Foreign, by: &str) -> Result<Reverted, RevertError> {
    let Some(store) = Store::open_if_there(root)? else { return none_or_unknown(id) };
    let _lock = Lock::take(root)?;
    let mut ids = store.ids()?;
    ids.reverse();
    if let Some(id) = id {
        if !ids.iter().any(|one| one == id) {
            return Err(RevertError::Unknown(id.to_owned()));
        }
        refuse_below(&store, &ids, id)?;
        ids.retain(|one| one == id);
    }
    each(root, &store, &ids, foreign, by)
}

/// Reverts the open ones of these transactions, newest first. One that another transaction overlaps waits for that one: it is reported last, as
/// an error, after the others are reverted.
///
/// # Errors
/// As [`revert`], without ids that are not open.
pub fn revert_together(root: &Root, ids: &[String], by: &str) -> Result<Reverted, RevertError> {
    let Some(store) = Store::open_if_there(root)? else { return Ok(Reverted::default()) };
    let _lock = Lock::take(root)?;
    let mut open = store.ids()?;
    open.reverse();
    let (mut all, mut waits) = (Reverted::default(), None);
    for id in open.iter().filter(|id| ids.contains(id)) {
        let others: Vec<String> =
            open.iter().filter(|one| *one == id || !ids.contains(one)).cloned().collect();
        match refuse_below(&store, &others, id) {
            Ok(()) => all.extend(revert_one(root, &store, id, Foreign::Keep, by)?),
            Err(error @ RevertError::Below { .. }) => waits = Some(error),
            Err(error) => return Err(error),
        }
    }
    waits.map_or(Ok(all), Err)
}

fn each(
    root: &Root,
    store: &Store,
    newest_first: &[String],
    foreign: Foreign,
    by: &str,
) -> Result<Reverted, RevertError> {
    let mut all = Reverted::default();
    for id in newest_first {
        all.extend(revert_one(root, store, id, foreign, by)?);
    }
    Ok(all)
}

/// Reverts what a crash interrupted and what no keeper is left to revert, and closes what a boot has reset. Transactions that were applied
/// whole, and last, are left alone.
///
/// # Errors
/// The store's.
pub fn recover(root: &Root, by: &str) -> Result<Reverted, RevertError> {
    let Some(store) = Store::open_if_there(root)? else { return Ok(Reverted::default()) };
    let _lock = Lock::take(root)?;
    store.remove_begun()?;
    let boot = boot_id(root);
    let mut ids = Vec::new();
    for id in store.ids()?.into_iter().rev() {
        let transaction = Transaction::read(&id, &store.read(&id)?);
        let reset = transaction.rebooted(&boot) && !transaction.outlives_boots();
        if transaction.is_interrupted() || reset || keeper_process::all_gone(&transaction.keepers) {
            ids.push(id);
        }
    }
    each(root, &store, &ids, Foreign::Keep, by)
}

fn none_or_unknown(id: Option<&str>) -> Result<Reverted, RevertError> {
    id.map_or_else(|| Ok(Reverted::default()), |id| Err(RevertError::Unknown(id.to_owned())))
}

/// Why nothing is reverted.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such transaction.
    #[error("transaction {0} is not open: `quell tune status` lists those that are")]
    Unknown(String),
    /// A later one wrote the same places.
    #[error(
        "transaction {above} came later and wrote {place} too: revert it first, or all with `quell tune revert`"
    )]
    Below {
        /// The later transaction.
        above: String,
        /// A place that both wrote.
        place: String,
    },
}

/// Refuses to revert out of order: the values of the later transaction would look as if someone else had written them.
fn refuse_below(store: &Store, newest_first: &[String], id: &str) -> Result<(), RevertError> {
    let places = |id: &str| -> Result<BTreeSet<String>, StoreError> {
        let transaction = Transaction::read(id, &store.read(id)?);
        let of = |entry: &Entry| {
            let group: Vec<String> = entry.intent.group.keys().cloned().collect();
            group.into_iter().chain([entry.intent.place.to_string()])
        };
        Ok(transaction.entries.iter().flat_map(of).collect())
    };
    let mine = places(id)?;
    for above in newest_first.iter().take_while(|one| *one != id) {
        if let Some(place) = places(above)?.intersection(&mine).next() {
            return Err(RevertError::Below { above: above.clone(), place: place.clone() });
        }
    }
    Ok(())
}

/// Reverts one transaction as soon as no other quell holds the lock.
///
/// # Errors
/// As [`revert`]; [`StoreError::Locked`] if another quell holds the lock for longer than `timeout`.
pub fn revert_with_timeout(
    root: &Root,
    id: &str,
    by: &str,
    timeout: Duration,
) -> Result<Reverted, RevertError> {
    let end = Instant::now() + timeout;
    loop {
        match revert(root, Some(id), Foreign::Keep, by) {
            Err(RevertError::Store(StoreError::Locked(_))) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}

/// Reverts one transaction. The caller holds the lock.
pub(super) fn revert_one(
    root: &Root,
    store: &Store,
    id: &str,
    foreign: Foreign,
    by: &str,
) -> Result<Reverted, StoreError> {
    let bytes = store.read(id)?;
    let transaction = Transaction::read(id, &bytes);
    let mut reverted = Reverted { ids: vec![id.to_owned()], ..Reverted::default() };
    if !transaction.damaged.is_empty() {
        let (lines, unrecorded) = (transaction.damaged.clone(), transaction.unrecorded());
        let closed = foreign == Foreign::Forget;
        reverted.damaged.push(Damage { id: id.to_owned(), lines, unrecorded, closed });
    }
    let journal = store.append(id).and_then(|file| {
        Journal::go_on(file, &bytes).map_err(|source| StoreError::Io { path: store.path_of(id), source })
    });
    let journal = match journal {
        Ok(journal) => Some(journal),
        // A full disk must not prevent a revert: the places are reverted without a record of it.
        Err(StoreError::Io { source, .. }) => {
            reverted.unwritten = Some(source.to_string());
            None
        }
        Err(error) => return Err(error),
    };
    // After a reboot only what is on disk has to be reverted: settings in memory are gone.
    let rebooted = transaction.rebooted(&boot_id(root));
    let needed = keepers_of_others(store, id)?;
    let mut run = Run { root, journal, foreign, rebooted, transaction: &transaction, needed, reverted };
    run.all();
    let (mut journal, mut reverted) = (run.journal, run.reverted);
    let open = reverted.places.iter().any(|one| !matches!(one.how, How::Closed(_)));
    // A damaged journal stays open, because the writes in those lines are not reverted.
    let unread = reverted.damaged.iter().any(|damage| !damage.closed);
    if reverted.unwritten.is_some() {
        return Ok(reverted);
    }
    let last = if open || unread {
        Record::Left { at: now() }
    } else {
        Record::End { at: now(), by: by.to_owned() }
    };
    let written = journal.as_mut().map_or(Ok(()), |journal| {
        journal.append(&last)?;
        journal.sync()
    });
    let written = written.map_err(|e| e.to_string());
    let closed = match last {
        Record::End { .. } => written.and_then(|()| store.close(id).map_err(|e| e.to_string())),
        _ => written,
    };
    match closed {
        Ok(()) => fault::point(),
        Err(error) => reverted.unwritten = Some(error),
    }
    Ok(reverted)
}

struct Run<'a> {
    root: &'a Root,
    journal: Option<Journal>,
    foreign: Foreign,
    rebooted: bool,
    transaction: &'a Transaction,
    /// The keepers of other open transactions.
    needed: Vec<KeeperRecord>,
    reverted: Reverted,
}

fn keepers_of_others(store: &Store, id: &str) -> Result<Vec<KeeperRecord>, StoreError> {
    let mut keepers = Vec::new();
    for other in store.ids()?.iter().filter(|other| *other != id) {
        keepers.extend(Transaction::read(other, &store.read(other)?).keepers);
    }
    Ok(keepers)
}

impl Run<'_> {
    fn all(&mut self) {
        // Newest first: a place that was written twice gets its first original last.
        let entries = self.transaction.entries.iter().rev().filter(|entry| entry.closed.is_none());
        let (held, mut open): (Vec<&Entry>, Vec<&Entry>) =
            entries.partition(|entry| matches!(entry.intent.place, Place::Held { .. }));
        while !open.is_empty() {
            let first = open.remove(0);
            if first.intent.group.is_empty() || self.rebooted {
                let how = self.one(first);
                self.close(first, how);
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
        // Last, because until here a keeper would revert if this process were killed; the second first, because it would take over from the
        // first. After a reboot their pids belong to other processes.
        let keepers = self.transaction.keepers.iter().rev().filter(|_| !self.rebooted);
        keepers.filter(|keeper| !self.needed.contains(keeper)).for_each(keeper_process::stop);
        let is_me = |keeper: &&KeeperRecord| keeper.pid == std::process::id();
        let mine = self.transaction.keepers.iter().any(|keeper| is_me(&keeper));
        let holds = |keeper: &KeeperRecord| self.needed.contains(keeper) && keeper_process::lives(keeper);
        let is_held = !mine && !self.rebooted && self.transaction.keepers.iter().any(holds);
        for entry in held {
            let how = match (self.rebooted, is_held) {
                (true, _) => How::Closed(Outcome::Rebooted),
                (false, true) => {
                    How::Failed("its keeper is needed by a later transaction: revert that first".into())
                }
                (false, false) => How::Closed(Outcome::Restored),
            };
            self.close(entry, how);
        }
    }

    fn one(&self, entry: &Entry) -> How {
        let intent = &entry.intent;
        let place = &intent.place;
        // Another device has the name now, and its own value.
        if intent.device.is_some() && place.device(self.root).is_some_and(|now| Some(now) != intent.device) {
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
                // A value that a drop-in of the same plan set again at boot is still quell's.
                None if self.sets_at_boot(entry) && place.same(&current, &intent.write.new) => {}
                None => return How::Closed(Outcome::Rebooted),
            }
        }
        // A crash between the intent and the write, or between a revert and its record, leaves the original in place.
        if place.same(&current, &original) {
            if entry.readback.is_none() && matches!(place, Place::DropIn { .. }) {
                // A crash may have left a temporary file next to the drop-in.
                let _ = place.write(self.root, &original);
            }
            return How::Closed(Outcome::Already);
        }
        if !self.is_ours(entry, &current) {
            match self.foreign {
                Foreign::Keep => return How::Foreign(current),
                Foreign::Forget => return How::Closed(Outcome::Forgotten),
                Foreign::Overwrite => {}
            }
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

    fn sets_at_boot(&self, entry: &Entry) -> bool {
        let mine = |other: &&Entry| {
            other.intent.write.mitigation == entry.intent.write.mitigation
                && matches!(other.intent.place, Place::DropIn { .. })
        };
        self.transaction.entries.iter().any(|other| mine(&other))
    }

    /// Whether quell left this value: it is the new one, or the one that was read back. After an interrupted write or a reboot it may also be an
    /// intermediate one.
    fn is_ours(&self, entry: &Entry, current: &str) -> bool {
        let (intent, place) = (&entry.intent, &entry.intent.place);
        place.same(current, &intent.write.new)
            || place.has_lost_cpus(current, &intent.write.new)
            || entry.readback.as_ref().is_some_and(|readback| place.same(current, readback))
            || (entry.readback.is_none() || self.rebooted)
                && place.half_way(current, &intent.original, &intent.write.new)
    }

    /// The result for a place that cannot be read or written. It may have vanished with its device or thread; otherwise the next revert
    /// tries again.
    fn unseen(&self, place: &Place, trouble: &PlaceError) -> How {
        let gone = match (place, trouble) {
            (_, PlaceError::Gone(_)) => true,
            (Place::Unit { .. }, PlaceError::Missing) => true,
            // While a file system is not mounted, its files are missing, but have not vanished.
            (Place::File { path }, PlaceError::Missing) => {
                let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
                !path.starts_with("/sys/kernel/debug/") && !self.root.has(folder)
            }
            _ => false,
        };
        match (gone, self.foreign) {
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
        let target = entries.iter().rev().fold(Group::new(), |mut target, entry| {
            for (path, text) in &entry.intent.group {
                target.entry(path.clone()).or_insert_with(|| text.clone());
            }
            target
        });
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
        let record = match &how {
            How::Closed(how) => Some(Record::Closed { n: entry.intent.n, how: *how }),
            How::Nearest { nearest, .. } => {
                Some(Record::Took { n: entry.intent.n, readback: nearest.clone(), group: Group::new() })
            }
            How::Foreign(_) | How::Failed(_) => None,
        };
        if let (Some(record), Some(journal)) = (record, &mut self.journal)
            && let Err(error) = journal.append(&record)
        {
            self.reverted.unwritten.get_or_insert(error.to_string());
        }
        self.reverted.places.push(Returned {
            place: entry.intent.place.to_string(),
            mitigation: entry.intent.write.mitigation.clone(),
            how,
        });
    }
}
