//! The order of transactions: a later one may stand on what an earlier one wrote, and is reverted before it.

use std::collections::{BTreeMap, BTreeSet};

use super::{How, Reverted};
use crate::journal::{Entry, Intent, Transaction};
use crate::moment::boot_id;
use crate::place::{Place, irq};
use crate::root::Root;
use crate::store::{Store, StoreError};

/// The places of a transaction on which later ones among `others` stand, by their identity, each with the later one and what that wrote. `visited` is what is reverted
/// already, which a full disk may have kept out of the journals.
pub(crate) fn stood_on(
    root: &Root,
    store: &Store,
    (others, visited): (&[String], &Reverted),
    transaction: &Transaction,
) -> Result<BTreeMap<String, (String, String)>, StoreError> {
    let mut found = BTreeMap::new();
    // What a boot has reset is no one's basis.
    if transaction.rebooted(&boot_id(root)) && !transaction.outlives_boots() {
        return Ok(found);
    }
    let mine = places(transaction);
    let left: BTreeSet<&str> = visited
        .places
        .iter()
        .filter(|one| !matches!(one.how, How::Closed(_)))
        .map(|one| one.place.as_str())
        .collect();
    for id in others.iter().filter(|id| **id > transaction.id) {
        let later = Transaction::read(id, &store.read(id)?);
        let is_known = visited.unwritten.is_some() && visited.ids.contains(id);
        let stands = |place: &&String| !is_known || left.contains(place.as_str());
        for (identity, place) in places(&later) {
            if mine.contains_key(&identity) && stands(&&place) {
                found.entry(identity).or_insert_with(|| (id.clone(), place));
            }
        }
        if let Some(irq) = took_default(root, transaction, &later).filter(|irq| stands(&irq)) {
            found.entry(irq::DEFAULT.to_owned()).or_insert_with(|| (id.clone(), irq));
        }
    }
    Ok(found)
}

/// What a transaction still has to revert, with what the kernel changed along with it: the text of each place, by its identity. What is reverted already
/// stands on nothing.
pub(crate) fn places(transaction: &Transaction) -> BTreeMap<String, String> {
    let file = |path: &String| (path.clone(), path.clone());
    let of = |entry: &Entry| {
        let group: Vec<_> = entry.intent.group.keys().map(file).collect();
        group.into_iter().chain([(entry.intent.place.identity(), entry.intent.place.to_string())])
    };
    let before = transaction.before.keys().filter(|_| !transaction.restored).map(file);
    open(transaction).flat_map(of).chain(before).collect()
}

fn open(transaction: &Transaction) -> impl Iterator<Item = &Entry> {
    transaction.entries.iter().filter(|entry| entry.closed.is_none() && !entry.is_untouched())
}

/// An interrupt of the later transaction that has the default of the earlier one, or is to get it back: reverting the default would replace it.
fn took_default(root: &Root, earlier: &Transaction, later: &Transaction) -> Option<String> {
    // Only the default of new interrupts lists those that were there before.
    let defaults = || open(earlier).filter(|entry| !entry.intent.irqs.is_empty());
    defaults().next()?;
    let took = |entry: &&Entry| {
        let Intent { place: place @ Place::Irq { number, .. }, original, write, .. } = &entry.intent else {
            return false;
        };
        let now = place.read(root).unwrap_or_default();
        let written = entry.readback.as_ref().unwrap_or(&write.new);
        defaults().any(|default| {
            let ours = default.readback.as_ref().unwrap_or(&default.intent.write.new);
            let gets_it = place.same(original, ours) && place.same(&now, written);
            !default.intent.irqs.contains(number) && (place.same(&now, ours) || gets_it)
        })
    };
    open(later).find(took).map(|entry| entry.intent.place.to_string())
}
