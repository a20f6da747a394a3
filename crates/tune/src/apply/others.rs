//! What other open transactions mean for a plan.

use std::collections::BTreeMap;

use super::{ApplyError, Due};
use crate::journal::{KeeperRecord, Transaction};
use crate::place::Place;
use crate::plan::Plan;
use crate::revert::places;
use crate::store::{Store, StoreError};

/// The open transaction that wrote the values that a plan wants.
pub(super) fn holder(store: &Store, plan: &Plan) -> Result<Option<String>, ApplyError> {
    let mut last = None;
    for id in store.ids()? {
        let transaction = Transaction::read(&id, &store.read(&id)?);
        let open = || transaction.entries.iter().filter(|entry| entry.closed.is_none());
        let wrote = |place: &Place| open().any(|entry| entry.intent.place == *place);
        if plan.writes.iter().any(|write| wrote(&write.place)) {
            last = Some(id);
        }
    }
    Ok(last)
}

/// Refuses to apply anything before what a crash interrupted is reverted.
pub(super) fn refuse_interrupted(store: &Store) -> Result<(), ApplyError> {
    for id in store.ids()? {
        let transaction = Transaction::read(&id, &store.read(&id)?);
        if transaction.is_interrupted() {
            return Err(ApplyError::Interrupted { id, damaged: !transaction.damaged.is_empty() });
        }
    }
    Ok(())
}

/// The writes whose values an earlier transaction has set, which reverts them at a time of its own, each with that transaction. `keepers` are those of
/// the new one.
pub(super) fn passing(
    store: &Store,
    already: &[Due<'_>],
    keepers: &[KeeperRecord],
) -> Result<Vec<(String, String)>, StoreError> {
    let is_timed = |one: &KeeperRecord| one.until.is_some() && !keepers.contains(one);
    let mut passing = BTreeMap::new();
    for id in store.ids()? {
        let transaction = Transaction::read(&id, &store.read(&id)?);
        if transaction.keepers.iter().any(is_timed) {
            passing.extend(places(&transaction).into_keys().map(|place| (place, id.clone())));
        }
    }
    let of = |due: &Due<'_>| Some((due.write.id.clone(), passing.get(&due.place.identity())?.clone()));
    Ok(already.iter().filter_map(of).collect())
}
