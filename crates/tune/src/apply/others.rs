//! What other open transactions mean for a plan.

use std::collections::BTreeSet;

use super::{ApplyError, Due};
use crate::journal::{KeeperRecord, Transaction};
use crate::keeper_process::lives;
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

/// Splits writes whose places have their values already: those that an earlier transaction reverts at a time of its own, and the rest. The former are made
/// again, so that the new transaction stands on the earlier one, and the values stay until both are over. `keepers` end with the new one.
pub(super) fn split_passing<'a>(
    store: &Store,
    already: Vec<Due<'a>>,
    keepers: &[KeeperRecord],
) -> Result<(Vec<Due<'a>>, Vec<Due<'a>>), StoreError> {
    let is_timed = |one: &KeeperRecord| one.until.is_some() && !keepers.contains(one) && lives(one);
    let mut passing = BTreeSet::new();
    for id in store.ids()? {
        let transaction = Transaction::read(&id, &store.read(&id)?);
        if transaction.keepers.iter().any(is_timed) {
            passing.extend(places(&transaction).into_keys());
        }
    }
    Ok(already.into_iter().partition(|due| passing.contains(&due.place.identity())))
}
