//! Threads that began while a setting was applied: they have it from the thread that started them.

use std::collections::{BTreeMap, BTreeSet};

use super::run::{Run, Thread};
use super::{How, Returned};
use crate::journal::{Entry, Outcome, Transaction};
use crate::place::Place;
use crate::place::thread::threads_of;
use crate::store::{Store, StoreError};

/// The threads with which other open transactions deal.
pub(super) fn threads_of_others(
    store: &Store,
    transaction: &Transaction,
) -> Result<BTreeSet<Thread>, StoreError> {
    let mut found = BTreeSet::new();
    if !transaction.entries.iter().any(|entry| thread(&entry.intent.place).is_some()) {
        return Ok(found);
    }
    for id in store.ids()?.iter().filter(|id| **id != transaction.id) {
        let entries = Transaction::read(id, &store.read(id)?).entries;
        found.extend(entries.iter().filter_map(|entry| thread(&entry.intent.place)));
    }
    Ok(found)
}

impl Run<'_> {
    /// Gives them the original of a thread of their process that is restored, where they still have quell's value.
    pub(super) fn restore_later_threads(&mut self) {
        let entries = &self.transaction.entries;
        let mine = entries.iter().filter_map(|one| thread(&one.intent.place));
        let known: BTreeSet<Thread> = mine.chain(self.threads_of_others.iter().copied()).collect();
        let mut later: BTreeMap<Thread, (Place, &Entry)> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for entry in entries.iter().filter(|entry| self.restored_threads.contains(&entry.intent.n)) {
            // An older journal does not say when it was written.
            let (Some((pid, _, property)), Some(written)) = (thread(&entry.intent.place), entry.intent.ticks)
            else {
                continue;
            };
            if seen.contains(&(pid, property)) {
                continue;
            }
            // A kernel thread is alone.
            for one in threads_of(self.root, pid).unwrap_or_default() {
                seen.insert((one.pid, property));
                let key = (one.pid, one.start, property);
                if one.start > written && !known.contains(&key) {
                    let place = Place::Thread { pid: one.pid, start: one.start, comm: one.comm, property };
                    later.entry(key).or_insert((place, entry));
                }
            }
        }
        for (place, entry) in later.into_values() {
            let (intent, ours) = (&entry.intent, entry.readback.as_ref().unwrap_or(&entry.intent.write.new));
            let has_ours = place.read(self.root).is_ok_and(|now| place.same(&now, ours));
            if has_ours && place.write(self.root, &intent.original).is_ok() {
                let (place, mitigation) = (place.to_string(), intent.write.mitigation.clone());
                self.reverted.places.push(Returned {
                    place,
                    mitigation,
                    how: How::Closed(Outcome::Restored),
                });
            }
        }
    }
}

fn thread(place: &Place) -> Option<Thread> {
    match place {
        Place::Thread { pid, start, property, .. } => Some((*pid, *start, *property)),
        _ => None,
    }
}
