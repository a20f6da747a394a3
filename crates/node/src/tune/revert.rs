//! Giving back: each place that still holds what quell wrote gets its original, in reverse order; what others changed since is theirs.

use std::collections::BTreeSet;

use super::apply::{boot_id, now};
use super::fault;
use super::groups;
use super::journal::{Entry, Group, Journal, Outcome, Record, Transaction};
use super::keeper;
use super::place::{Place, Trouble};
use super::root::Root;
use super::store::{Lock, Store, StoreError};

/// What is done with a place that somebody else changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It stays, is told, and is looked at again the next time.
    Keep,
    /// It stays, and is not quell's any more.
    Forget,
    /// The original is written over it.
    Overwrite,
}

/// One place, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The place.
    pub place: String,
    /// The mitigation.
    pub mitigation: String,
    /// What came of it.
    pub how: How,
}

/// What came of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It needs nothing more.
    Closed(Outcome),
    /// Somebody else changed it to this.
    Foreign(String),
    /// It holds the nearest value that the kernel takes in place of the original.
    Nearest {
        /// What it should hold.
        original: String,
        /// What it holds.
        nearest: String,
    },
    /// It could not be given back.
    Failed(String),
}

/// What was given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reverted {
    /// The transactions that were looked at, newest first.
    pub ids: Vec<String>,
    /// Each place that was open.
    pub places: Vec<Returned>,
    /// Journals with lines that cannot be read: what those said is not given back. With the numbers of the lines.
    pub damaged: Vec<(String, Vec<usize>)>,
    /// What could not be written down, though it was done.
    pub unwritten: Option<String>,
}

impl Reverted {
    /// Whether all is as it was before.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty()
            && self.unwritten.is_none()
            && self.places.iter().all(|one| matches!(one.how, How::Closed(_)))
    }

    /// Whether something failed, rather than being somebody else's.
    pub fn has_failed(&self) -> bool {
        self.unwritten.is_some() || self.places.iter().any(|one| matches!(one.how, How::Failed(_)))
    }
}

/// Reverts one transaction, or all that are open, newest first.
///
/// # Errors
/// The store's; an id that is not open; one on which a later one stands.
pub fn revert(root: &Root, id: Option<&str>, foreign: Foreign, by: &str) -> Result<Reverted, RevertError> {
    let _lock = Lock::take(root)?;
    let Some(store) = Store::open_if_there(root)? else { return none_or_unknown(id) };
    let mut ids = store.ids()?;
    ids.reverse();
    if let Some(id) = id {
        if !ids.iter().any(|one| one == id) {
            return Err(RevertError::Unknown(id.to_owned()));
        }
        refuse_below(&store, &ids, id)?;
        ids.retain(|one| one == id);
    }
    let mut all = Reverted::default();
    for id in ids {
        let one = revert_one(root, &store, &id, foreign, by)?;
        all.ids.extend(one.ids);
        all.places.extend(one.places);
        all.damaged.extend(one.damaged);
        all.unwritten = all.unwritten.or(one.unwritten);
    }
    Ok(all)
}

fn none_or_unknown(id: Option<&str>) -> Result<Reverted, RevertError> {
    id.map_or_else(|| Ok(Reverted::default()), |id| Err(RevertError::Unknown(id.to_owned())))
}

/// Why nothing is reverted.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No such transaction.
    #[error("transaction {0} is not open: `quell tune status` lists those that are")]
    Unknown(String),
    /// A later one wrote the same places.
    #[error(
        "transaction {above} came later and wrote {place} too: revert it first, or all with `quell tune revert`"
    )]
    Below {
        /// The later one.
        above: String,
        /// A place of both.
        place: String,
    },
}

/// Out of order, the earlier one's places would look like somebody else's.
fn refuse_below(store: &Store, newest_first: &[String], id: &str) -> Result<(), RevertError> {
    let places = |id: &str| -> Result<BTreeSet<String>, StoreError> {
        let transaction = Transaction::read(id, &store.read(id)?);
        Ok(transaction.entries.iter().map(|entry| entry.intent.place.to_string()).collect())
    };
    let mine = places(id)?;
    for above in newest_first.iter().take_while(|one| *one != id) {
        if let Some(place) = places(above)?.intersection(&mine).next() {
            return Err(RevertError::Below { above: above.clone(), place: place.clone() });
        }
    }
    Ok(())
}

/// Reverts one, under the lock.
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
        reverted.damaged.push((id.to_owned(), transaction.damaged.clone()));
    }
    let journal = store.append(id).and_then(|file| {
        Journal::go_on(file, &bytes).map_err(|source| StoreError::Io { path: store.path_of(id), source })
    });
    let journal = match journal {
        Ok(journal) => Some(journal),
        // A full disk must not keep anything from being given back.
        Err(StoreError::Io { source, .. }) => {
            reverted.unwritten = Some(source.to_string());
            None
        }
        Err(error) => return Err(error),
    };
    if let Some(keeper) = &transaction.keeper {
        keeper::stop(keeper);
    }
    let now_boot = boot_id(root);
    let then_boot = transaction.begin.as_ref().map_or("", |begin| begin.boot_id.as_str());
    let rebooted = !now_boot.is_empty() && !then_boot.is_empty() && now_boot != then_boot;
    let mut run = Run { root, journal, foreign, rebooted, reverted };
    run.all(&transaction);
    let mut reverted = run.reverted;
    if reverted.places.iter().all(|one| matches!(one.how, How::Closed(_) | How::Nearest { .. }))
        && reverted.unwritten.is_none()
    {
        let end = Record::End { at: now(), by: by.to_owned() };
        let ended = run.journal.as_mut().map_or(Ok(()), |journal| journal.append(&end));
        match ended.map_err(|e| e.to_string()).and_then(|()| store.close(id).map_err(|e| e.to_string())) {
            Ok(()) => fault::point(),
            Err(error) => reverted.unwritten = Some(error),
        }
    }
    Ok(reverted)
}

struct Run<'a> {
    root: &'a Root,
    journal: Option<Journal>,
    foreign: Foreign,
    rebooted: bool,
    reverted: Reverted,
}

impl Run<'_> {
    fn all(&mut self, transaction: &Transaction) {
        let mut open: Vec<&Entry> =
            transaction.entries.iter().rev().filter(|entry| entry.closed.is_none()).collect();
        while !open.is_empty() {
            let first = open.remove(0);
            if first.intent.group.is_empty() || self.rebooted {
                let how = self.one(first);
                self.close(first, how);
                continue;
            }
            // Entries that share a file are given back together.
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
    }

    fn one(&self, entry: &Entry) -> How {
        let intent = &entry.intent;
        let place = &intent.place;
        if self.rebooted && !place.survives_boot() {
            return How::Closed(Outcome::Rebooted);
        }
        if let Place::Held { .. } = place {
            // It went with its keeper.
            return How::Closed(Outcome::Restored);
        }
        let current = match place.read(self.root) {
            Ok(current) => current,
            Err(trouble) if trouble.is_absence() => return How::Closed(Outcome::Gone),
            Err(trouble) => return How::Failed(format!("it cannot be read: {trouble}")),
        };
        if place.same(&current, &intent.original) {
            return How::Closed(Outcome::Already);
        }
        let ours = entry.readback.as_ref().unwrap_or(&intent.write.new);
        let foreign = !place.same(&current, ours) && !place.same(&current, &intent.write.new);
        match self.foreign {
            Foreign::Keep if foreign => return How::Foreign(current),
            Foreign::Forget if foreign => return How::Closed(Outcome::Forgotten),
            _ => {}
        }
        fault::point();
        let written = place.write(self.root, &intent.original);
        fault::point();
        match written {
            Ok(()) => match place.read(self.root) {
                Ok(now) if place.same(&now, &intent.original) => How::Closed(Outcome::Restored),
                Ok(now) => {
                    How::Failed(format!("it shows `{}` in place of `{}`", now.trim(), intent.original.trim()))
                }
                Err(trouble) => How::Failed(trouble.to_string()),
            },
            Err(Trouble::Gone(_) | Trouble::Missing) => How::Closed(Outcome::Gone),
            Err(Trouble::Invalid(_)) => self.nearest(place, &intent.original, &current),
            Err(trouble) => How::Failed(trouble.to_string()),
        }
    }

    /// The kernel may refuse a value that it once had (a limit moved since): then the nearest that it takes is better than ours.
    fn nearest(&self, place: &Place, original: &str, ours: &str) -> How {
        let refused = How::Failed(format!("the kernel no longer takes `{}`", original.trim()));
        let (Place::File { .. }, Ok(target), Ok(from)) =
            (place, original.trim().parse::<i64>(), ours.trim().parse::<i64>())
        else {
            return refused;
        };
        // From the original away from zero, where limits have their room, then towards what stands now.
        let step = (target.abs() / 100).max(1);
        let away = (1..=100).map(|i| target.saturating_add(i * step));
        let towards = (1..100).map(|i| target.saturating_add((from.saturating_sub(target)) / 100 * i));
        for value in away.take(20).chain(towards) {
            if place.write(self.root, &value.to_string()).is_ok() {
                return How::Nearest { original: original.trim().to_owned(), nearest: value.to_string() };
            }
        }
        refused
    }

    /// Entries whose files the kernel changes together, newest first.
    fn together(&mut self, entries: &[&Entry]) {
        // The oldest snapshot is what was there; the newest that was read back is what quell left.
        let target = entries.iter().rev().fold(Group::new(), |mut target, entry| {
            for (path, text) in &entry.intent.group {
                target.entry(path.clone()).or_insert_with(|| text.clone());
            }
            target
        });
        let left = entries.iter().find(|entry| !entry.group_after.is_empty()).map(|entry| &entry.group_after);
        // Where it crashed between a write and its readback, nobody knows what the kernel made of it.
        let certain =
            entries.first().is_some_and(|entry| entry.readback.is_some() || entry.refused.is_some());
        let mut target = target;
        let mut foreign = Vec::new();
        if let (Some(left), true, true) = (left, certain, self.foreign != Foreign::Overwrite) {
            target.retain(|path, original| {
                let place = Place::File { path: path.clone() };
                let Ok(now) = place.read(self.root) else { return true };
                let ours = left.get(path).is_none_or(|left| place.same(&now, left));
                let theirs = !ours && !place.same(&now, original);
                if theirs {
                    foreign.push((path.clone(), now));
                }
                !theirs
            });
        }
        fault::point();
        let settled = groups::settle(self.root, &target).err().unwrap_or_default();
        fault::point();
        for entry in entries {
            let failed = settled.first().filter(|_| !settled.is_empty());
            let stranger = foreign
                .iter()
                .find(|(path, _)| entry.intent.place.to_string() == *path)
                .or_else(|| foreign.first());
            let how = match (failed, stranger, self.foreign) {
                (Some((path, trouble)), ..) => How::Failed(format!("{path}: {trouble}")),
                (None, Some((_, now)), Foreign::Keep) => How::Foreign(now.clone()),
                (None, Some(_), _) => How::Closed(Outcome::Forgotten),
                (None, None, _) => How::Closed(Outcome::Restored),
            };
            self.close(entry, how);
        }
    }

    fn close(&mut self, entry: &Entry, how: How) {
        let outcome = match &how {
            How::Closed(outcome) => Some(*outcome),
            How::Nearest { .. } => Some(Outcome::Nearest),
            How::Foreign(_) | How::Failed(_) => None,
        };
        if let (Some(how), Some(journal)) = (outcome, &mut self.journal)
            && let Err(error) = journal.append(&Record::Closed { n: entry.intent.n, how })
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
