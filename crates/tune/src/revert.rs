//! Reverts transactions. Each place that still has the value that quell wrote gets its original back, in reverse order; a value that
//! someone else wrote since then is left alone.

mod boot;
mod dependents;
mod order;
mod result;
mod run;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

pub(super) use self::order::{places, stood_on};
pub use self::result::{Damage, How, Returned, Reverted, Stays};
use self::run::Run;
pub(super) use self::run::is_gone;
use self::threads::threads_of_others;
use super::fault;
use super::journal::{Journal, KeeperRecord, Record, Transaction};
use super::keeper_process;
use super::moment::{boot_id, now};
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
        refuse_below(root, &store, &ids, id)?;
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
    let ids: BTreeSet<&String> = ids.iter().collect();
    let (mine, others): (Vec<String>, Vec<String>) = open.into_iter().partition(|id| ids.contains(id));
    let (mut all, mut waits, mut keepers) = (Reverted::default(), None, Keepers::read(&store)?);
    for id in &mine {
        match refuse_below(root, &store, &others, id) {
            Ok(()) => {
                let next = revert_next(root, &store, (&mut keepers, &all), id, Foreign::Keep, by)?;
                all.extend(next);
            }
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
    let (mut all, mut keepers) = (Reverted::default(), Keepers::read(store)?);
    for id in newest_first {
        let next = revert_next(root, store, (&mut keepers, &all), id, foreign, by)?;
        all.extend(next);
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
    /// What a later one wrote stands on what this one wrote.
    #[error(
        "transaction {above} came later and wrote {place}, which needs what this one wrote: revert it first, or all with `quell tune revert`"
    )]
    Below {
        /// The later transaction.
        above: String,
        /// A place that it wrote.
        place: String,
    },
}

/// Refuses to revert out of order: the values of the later transaction would look as if someone else had written them.
fn refuse_below(root: &Root, store: &Store, others: &[String], id: &str) -> Result<(), RevertError> {
    let transaction = Transaction::read(id, &store.read(id)?);
    match stood_on(root, store, (others, &Reverted::default()), &transaction)?.into_values().next() {
        Some((above, place)) => Err(RevertError::Below { above, place }),
        None => Ok(()),
    }
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
    revert_next(root, store, (&mut Keepers::read(store)?, &Reverted::default()), id, foreign, by)
}

/// As [`revert_one`], for one of several. `visited` are those before.
fn revert_next(
    root: &Root,
    store: &Store,
    (keepers, visited): (&mut Keepers, &Reverted),
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
    let needed = keepers.needed_without(&transaction);
    let stood_on = stood_on(root, store, (&store.ids()?, visited), &transaction)?.into_keys().collect();
    let threads_of_others = threads_of_others(store, &transaction)?;
    let (closed, began, restored_threads) = Default::default();
    let transaction = &transaction;
    let mut run = Run {
        root,
        journal,
        foreign,
        rebooted,
        transaction,
        needed,
        stood_on,
        foreign_above: visited.foreign(),
        reverted,
        closed,
        began,
        threads_of_others,
        restored_threads,
    };
    run.all();
    let (mut journal, mut reverted) = (run.journal, run.reverted);
    reverted.stays = boot::stays(root, store, transaction, &reverted.places)?;
    let open = reverted.places.iter().any(|one| !matches!(one.how, How::Closed(_)));
    // A damaged journal stays open, because the writes in those lines are not reverted.
    let unread = reverted.damaged.iter().any(|damage| !damage.closed);
    if reverted.unwritten.is_some() {
        return Ok(reverted);
    }
    let mut append = |record: &Record| journal.as_mut().map_or(Ok(()), |journal| journal.append(record));
    let closed = if open || unread {
        // A keeper tries again and again, for which the journal must not grow.
        let is_known =
            transaction.left && reverted.places.iter().all(|one| !matches!(one.how, How::Closed(_)));
        if is_known { Ok(()) } else { append(&Record::Left { at: now() }).map_err(|e| e.to_string()) }
    } else {
        let ended = append(&Record::End { at: now(), by: by.to_owned() });
        let ended = ended.and_then(|()| journal.as_ref().map_or(Ok(()), Journal::sync));
        ended.map_err(|e| e.to_string()).and_then(|()| store.close(id).map_err(|e| e.to_string()))
    };
    // What someone else changed stays open, and needs no keeper.
    if closed.is_ok() && !reverted.may_go_on(&run.foreign_above) {
        keepers.remove(transaction);
    }
    match closed {
        Ok(()) => fault::point(),
        Err(error) => reverted.unwritten = Some(error),
    }
    Ok(reverted)
}

/// Keepers of open transactions, each with the number of transactions that name it.
struct Keepers(BTreeMap<KeeperRecord, usize>);

impl Keepers {
    fn read(store: &Store) -> Result<Self, StoreError> {
        let mut all = BTreeMap::new();
        for id in store.ids()? {
            let keepers = Transaction::read(&id, &store.read(&id)?).keepers;
            keepers.into_iter().for_each(|keeper| *all.entry(keeper).or_default() += 1);
        }
        Ok(Self(all))
    }

    /// The keepers of a transaction that another one names, too.
    fn needed_without(&self, transaction: &Transaction) -> Vec<KeeperRecord> {
        let is_needed = |keeper: &&KeeperRecord| self.0.get(keeper).is_some_and(|number| *number > 1);
        transaction.keepers.iter().filter(is_needed).cloned().collect()
    }

    /// A transaction is closed.
    fn remove(&mut self, transaction: &Transaction) {
        for keeper in &transaction.keepers {
            self.0.entry(keeper.clone()).and_modify(|number| *number -= 1);
        }
    }
}
