//! Keeps a profile applied for as long as quell runs: what comes later, such as a thread, an interrupt or a CPU, gets the settings too, and
//! all of it is reverted at the end.
//!
//! A setting that another program changes is left to that program. A keeper reverts everything if quell is killed.

mod events;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub use self::events::{Device, Events};
use super::apply::{Applied, ApplyError, Applying, apply};
use super::journal::{Entry, Journal, KeeperRecord, Record, Transaction};
use super::keeper::Until;
use super::place::Place;
use super::plan::{Plan, Write};
use super::revert::{RevertError, Reverted, is_gone, revert_together};
use super::root::Root;
use super::store::{Lock, Store, StoreError};

/// What one service has applied.
#[derive(Debug)]
pub struct Served<'a> {
    root: &'a Root,
    program: PathBuf,
    until: Until,
    keepers: Vec<KeeperRecord>,
    transactions: Vec<String>,
    /// Whether older transactions do not name these keepers yet.
    unnamed: bool,
    /// The places that it has written, or could not write, and their values since.
    ours: BTreeMap<Place, Ours>,
}

/// A place that the service has written, or could not write.
#[derive(Debug)]
struct Ours {
    /// Its value since.
    value: String,
    /// What was to be written.
    wanted: String,
    /// Whether another program has changed it, so that it is left alone for as long as it exists.
    foreign: bool,
    /// Whether a device or CPU of it has come or gone since the last look, so that the kernel itself may have changed it.
    disturbed: bool,
    /// The value that the kernel gave it, which the journal does not have yet.
    moved: Option<String>,
}

/// What one look at the machine found.
#[derive(Debug)]
pub struct Look {
    /// The writes of the plan that are due, as a plan of its own.
    pub due: Plan,
    /// Writes that were made and are due again, because the kernel changed their places with a device or CPU.
    pub again: Vec<Write>,
    /// Places that another program has changed since the last look, and their values now.
    pub foreign: Vec<(Place, String)>,
}

impl<'a> Served<'a> {
    /// A service that has applied nothing yet. `program` is quell itself; `until` is the end of this process.
    pub fn new(root: &'a Root, program: PathBuf, until: Until) -> Self {
        let (keepers, transactions, unnamed, ours) = Default::default();
        Self { root, program, until, keepers, transactions, unnamed, ours }
    }

    /// Compares a new plan with what was written: a place that another program has changed since is left to it.
    ///
    /// # Errors
    /// The journals cannot be read.
    pub fn look(&mut self, plan: &Plan) -> Result<Look, StoreError> {
        // One that cannot be read for a moment is remembered: it may be another program's.
        let is_gone = |place: &Place| place.read(self.root).is_err_and(|why| is_gone(self.root, place, &why));
        self.ours.retain(|place, _| matches!(place, Place::Held { .. }) || !is_gone(place));
        self.name_keepers_or_wait()?;
        let open = match self.close_gone() {
            // The next look closes them.
            Err(StoreError::Locked(_)) => self.open(),
            open => open,
        };
        let open: BTreeSet<Place> = open?.into_iter().flat_map(|(_, places)| places).collect();
        let (mut writes, mut again, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
        for write in &plan.writes {
            let Some(ours) = self.ours.get_mut(&write.place) else {
                writes.push(write.clone());
                continue;
            };
            let is_ours = write.place.same(&write.old, &ours.value);
            let by_kernel = ours.disturbed
                || ours.moved.as_ref() == Some(&write.old)
                || write.place.is_changed_by_kernel(&write.old, &ours.value);
            let same_plan = write.place.same(&write.new, &ours.wanted);
            match write.place {
                // A keeper holds it, which an audit cannot see.
                Place::Held { .. } => {}
                _ if ours.foreign => {}
                // The user has reverted it, or it could not be written.
                _ if !open.contains(&write.place) => {}
                _ if by_kernel && same_plan => {
                    ours.moved = None;
                    again.push(write.clone());
                }
                // The kernel refused it before.
                _ if is_ours && same_plan => {}
                // The plan wants another value now, as after a CPU has gone.
                _ if is_ours || by_kernel => {
                    ours.moved = (!is_ours).then(|| write.old.clone());
                    writes.push(write.clone());
                }
                _ => {
                    ours.foreign = true;
                    foreign.push((write.place.clone(), write.old.clone()));
                }
            }
        }
        self.ours.values_mut().for_each(|ours| ours.disturbed = false);
        let mut due = Plan { writes, ..plan.clone() };
        due.hash = due.hash_of();
        Ok(Look { due, again, foreign })
    }

    /// Tries again to revert what failed while it was applied, before a look: until then nothing else can be applied.
    ///
    /// # Errors
    /// The journals cannot be read, or another quell holds the lock.
    pub fn revert_failed(&self) -> Result<(), StoreError> {
        let until = Some(self.until.to_string());
        let Some(store) = Store::open_if_there(self.root)? else { return Ok(()) };
        let mut failed = Vec::new();
        for id in store.ids()?.into_iter().filter(|id| !self.transactions.contains(id)) {
            let Some(bytes) = store.read_if_there(&id)? else { continue };
            let transaction = Transaction::read(&id, &bytes);
            // Of an apply that failed, only the journal knows the keepers that it started.
            let mine = |keeper: &KeeperRecord| self.keepers.contains(keeper) || keeper.until == until;
            let is_mine = transaction.keepers.iter().any(mine);
            if transaction.is_interrupted() && is_mine {
                failed.push(id);
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        match revert_together(self.root, &failed, "a failed apply") {
            Err(RevertError::Store(error)) => Err(error),
            // What is left, the next look tries.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Closes transactions whose places are all gone, such as those of threads that ended. A service would have ever more of them. One stays,
    /// because the keepers are needed as long as the service runs. Returns those that are open then.
    fn close_gone(&mut self) -> Result<Vec<(String, Vec<Place>)>, StoreError> {
        let is_gone = |place: &Place| place.read(self.root).is_err_and(|why| is_gone(self.root, place, &why));
        let is_over = |places: &[Place]| !places.is_empty() && places.iter().all(is_gone);
        let open = self.open()?;
        let gone = open.iter().filter(|(_, places)| is_over(places)).map(|(id, _)| id.clone());
        let mut gone: Vec<String> = gone.collect();
        if gone.len() == open.len() {
            gone.drain(..gone.len().min(1));
        }
        if gone.is_empty() {
            return Ok(open);
        }
        if let Err(RevertError::Store(error)) = revert_together(self.root, &gone, "the end of its places") {
            return Err(error);
        }
        let open = self.open()?;
        let left: BTreeSet<&String> = open.iter().map(|(id, _)| id).collect();
        self.transactions.retain(|id| left.contains(id) || !gone.contains(id));
        Ok(open)
    }

    /// Its open transactions, each with its places that are not reverted.
    fn open(&self) -> Result<Vec<(String, Vec<Place>)>, StoreError> {
        let mut open = Vec::new();
        let Some(store) = Store::open_if_there(self.root)? else { return Ok(open) };
        for id in &self.transactions {
            let Some(bytes) = store.read_if_there(id)? else { continue };
            let entries = Transaction::read(id, &bytes).entries.into_iter();
            let places = entries.filter(|entry| entry.closed.is_none()).map(|entry| entry.intent.place);
            open.push((id.clone(), places.collect()));
        }
        Ok(open)
    }

    /// Makes a write again, if its place is still in an open transaction, whose journal has its original, and still has the value of the look.
    /// Returns whether it did.
    ///
    /// # Errors
    /// The lock's, and those of the place.
    pub fn write_again(&mut self, write: &Write) -> Result<bool, String> {
        let written = self.try_again(write);
        if let Some(ours) = self.ours.get_mut(&write.place) {
            // The next look tries once more.
            ours.disturbed |= written.is_err();
        }
        written
    }

    fn try_again(&self, write: &Write) -> Result<bool, String> {
        let _lock = Lock::take(self.root).map_err(|e| e.to_string())?;
        let Some((id, entry)) = self.last_open(&write.place).map_err(|e| e.to_string())? else {
            return Ok(false);
        };
        // Another program may have changed it since the look: the next one leaves it to that program.
        let now = write.place.read(self.root).map_err(|trouble| trouble.to_string())?;
        if !write.place.same(&now, &write.old) {
            return Ok(false);
        }
        if entry.is_untouched() {
            self.record_taken(&id, &entry, &write.new).map_err(|e| e.to_string())?;
        }
        write.place.write(self.root, &write.new).map(|()| true).map_err(|trouble| trouble.to_string())
    }

    /// The last open transaction with this place, and its entry.
    fn last_open(&self, place: &Place) -> Result<Option<(String, Entry)>, StoreError> {
        let Some(store) = Store::open_if_there(self.root)? else { return Ok(None) };
        for id in self.transactions.iter().rev() {
            let Some(bytes) = store.read_if_there(id)? else { continue };
            let mut entries = Transaction::read(id, &bytes).entries.into_iter();
            if let Some(entry) = entries.find(|entry| entry.closed.is_none() && entry.intent.place == *place)
            {
                return Ok(Some((id.clone(), entry)));
            }
        }
        Ok(None)
    }

    /// Records that a place which the kernel refused before may have this value of quell's from now on.
    fn record_taken(&self, id: &str, entry: &Entry, value: &str) -> Result<(), StoreError> {
        let Some(store) = Store::open_if_there(self.root)? else { return Ok(()) };
        let failed = |source| StoreError::Io { path: store.path_of(id), source };
        let mut journal = Journal::go_on(store.append(id)?, &store.read(id)?).map_err(failed)?;
        let (readback, group) = (value.to_owned(), entry.group_after.clone());
        journal.append(&Record::Took { n: entry.intent.n, readback, group }).map_err(failed)
    }

    /// Records the values that the kernel gave to places that are about to be written anew. A revert finds them below the new transaction, and
    /// must not take them for another program's.
    fn record_moved(&mut self) -> Result<(), StoreError> {
        if self.ours.values().all(|ours| ours.moved.is_none()) {
            return Ok(());
        }
        let _lock = Lock::take(self.root)?;
        let Some(store) = Store::open_if_there(self.root)? else { return Ok(()) };
        for id in self.transactions.iter().rev() {
            let Some(bytes) = store.read_if_there(id)? else { continue };
            let entries = Transaction::read(id, &bytes).entries;
            let moved: Vec<_> = entries
                .into_iter()
                .filter(|entry| entry.closed.is_none())
                .filter_map(|entry| Some((self.ours.get(&entry.intent.place)?.moved.clone()?, entry)))
                .collect();
            if moved.is_empty() {
                continue;
            }
            let failed = |source| StoreError::Io { path: store.path_of(id), source };
            let mut journal = Journal::go_on(store.append(id)?, &bytes).map_err(failed)?;
            for (readback, entry) in &moved {
                let (readback, group) = (readback.clone(), entry.group_after.clone());
                journal.append(&Record::Took { n: entry.intent.n, readback, group }).map_err(failed)?;
            }
            journal.sync().map_err(failed)?;
            // Only now, so that a journal that could not be written is tried again.
            for (readback, entry) in moved {
                if let Some(ours) = self.ours.get_mut(&entry.intent.place) {
                    (ours.value, ours.moved) = (readback, None);
                }
            }
        }
        Ok(())
    }

    /// Applies what is due of a plan.
    ///
    /// # Errors
    /// See [`ApplyError`]. A write that failed is not tried again.
    pub fn apply(&mut self, due: &Plan, stopped: &dyn Fn() -> bool) -> Result<Applied, ApplyError> {
        self.record_moved()?;
        if self.is_unguarded() {
            self.keepers.clear();
        }
        let until = self.keepers.is_empty().then(|| self.until.clone());
        // What the user has reverted stays so.
        let open = if until.is_some() { self.open()? } else { Vec::new() };
        let open: BTreeSet<Place> = open.into_iter().flat_map(|(_, places)| places).collect();
        let held = |(place, ours): (&Place, &Ours)| match place {
            Place::Held { what } if open.contains(place) => Some((*what, ours.wanted.clone())),
            _ => None,
        };
        let holds = self.ours.iter().filter_map(held).collect();
        let (program, keepers) = (self.program.clone(), self.keepers.clone());
        let applying = Applying { program, until, keepers, holds, stopped };
        let applied = apply(self.root, due, &applying);
        for write in &due.writes {
            let is_over = match &applied {
                Ok(_) => true,
                // The others are reverted, and due at the next look.
                Err(ApplyError::Failed { place, .. }) => place.as_ref() == Some(&write.place),
                Err(_) => false,
            };
            if is_over {
                let value = write.place.read(self.root).unwrap_or_else(|_| write.new.clone());
                let ours =
                    Ours { value, wanted: write.new.clone(), foreign: false, disturbed: false, moved: None };
                self.ours.insert(write.place.clone(), ours);
            }
        }
        let applied = applied?;
        if self.keepers.is_empty() {
            self.keepers.clone_from(&applied.keepers);
            self.unnamed = !self.transactions.is_empty();
        }
        self.transactions.extend(applied.id.clone());
        self.name_keepers_or_wait()?;
        Ok(applied)
    }

    fn name_keepers_or_wait(&mut self) -> Result<(), StoreError> {
        match self.name_keepers() {
            // The next look names them.
            Err(StoreError::Locked(_)) => Ok(()),
            other => other,
        }
    }

    /// Adds new keepers to the transactions whose own are gone, which they are to revert, too.
    fn name_keepers(&mut self) -> Result<(), StoreError> {
        if !self.unnamed {
            return Ok(());
        }
        let _lock = Lock::take(self.root)?;
        let Some(store) = Store::open_if_there(self.root)? else { return Ok(()) };
        for id in &self.transactions {
            let Some(bytes) = store.read_if_there(id)? else { continue };
            let named = Transaction::read(id, &bytes).keepers;
            let failed = |source| StoreError::Io { path: store.path_of(id), source };
            let mut journal = None;
            for keeper in self.keepers.iter().filter(|keeper| !named.contains(keeper)) {
                let journal: &mut Journal = match &mut journal {
                    Some(journal) => journal,
                    none => none.insert(Journal::go_on(store.append(id)?, &bytes).map_err(failed)?),
                };
                journal.append(&Record::Keeper(keeper.clone())).map_err(failed)?;
            }
            journal.map_or(Ok(()), |journal| journal.sync()).map_err(failed)?;
        }
        self.unnamed = false;
        Ok(())
    }

    /// Whether it has applied something.
    pub fn has_applied(&self) -> bool {
        !self.transactions.is_empty()
    }

    /// Notes that a device or CPU has come or gone: its places have values of their own now, and with a CPU the kernel changes sets of CPUs.
    pub fn disturb(&mut self, device: &Device) {
        for (place, ours) in &mut self.ours {
            let of_device = matches!(place, Place::File { path } if device.has(path));
            ours.disturbed |= of_device || device.is_cpu() && place.cpus(&ours.value).is_some();
        }
    }

    /// Whether no keeper is left to revert if this process is killed.
    pub fn is_unguarded(&self) -> bool {
        super::keeper_process::all_gone(&self.keepers)
    }

    /// Reverts everything that it has applied, newest first.
    ///
    /// # Errors
    /// See [`RevertError`]; what could not be reverted stays in its journal.
    pub fn end(&self) -> Result<Reverted, RevertError> {
        revert_together(self.root, &self.transactions, "the end of its service")
    }
}
