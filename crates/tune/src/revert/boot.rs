//! Settings that only a file for the boot sets, because they had their values when the plan was applied: no journal has their originals.

use std::collections::BTreeSet;

use super::{How, Returned, Stays, places};
use crate::audit::set_at_boot;
use crate::journal::{Entry, Outcome, Transaction};
use crate::moment::boot_id;
use crate::place::{ABSENT, Place};
use crate::root::Root;
use crate::store::{Store, StoreError};

/// Those of files that a revert removed that still have the file's value.
pub(super) fn stays(
    root: &Root,
    store: &Store,
    transaction: &Transaction,
    returned: &[Returned],
) -> Result<Vec<Stays>, StoreError> {
    let is_removed = |entry: &&Entry| {
        let place = entry.intent.place.to_string();
        let is_restored = |one: &Returned| one.place == place && one.how == How::Closed(Outcome::Restored);
        entry.intent.original == ABSENT && returned.iter().any(is_restored)
    };
    let has = |(path, value): &(String, String)| {
        let place = Place::File { path: path.clone() };
        place.read(root).is_ok_and(|now| place.same(&now, value))
    };
    let of_file = |entry: &Entry| match &entry.intent.place {
        Place::DropIn { path } => set_at_boot(path, &entry.intent.write.new),
        _ => Vec::new(),
    };
    let removed = transaction.entries.iter().filter(is_removed);
    let mut found: Vec<(String, String)> = removed.flat_map(of_file).filter(has).collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    // What a plan wrote is restored with that plan.
    let mut written: BTreeSet<String> = transaction.before.keys().cloned().collect();
    for Entry { intent, .. } in &transaction.entries {
        written.insert(intent.place.to_string());
        written.extend(intent.group.keys().cloned());
    }
    for id in store.ids()?.iter().filter(|id| **id != transaction.id) {
        let other = Transaction::read(id, &store.read(id)?);
        // After a boot it does not restore files in memory.
        if !other.rebooted(&boot_id(root)) {
            written.extend(places(&other).into_keys());
        }
    }
    found.retain(|(path, _)| !written.contains(path));
    Ok(found.into_iter().map(|(place, value)| Stays { place, value }).collect())
}
