//! Applies a plan. Each original is in the journal, on disk, before its place is written; if the plan fails, what was written is reverted.

mod others;

use std::path::PathBuf;

use self::others::{holder, passing, refuse_interrupted};
use super::fault;
use super::groups;
use super::journal::{
    Begin, Dependents, Group, Intent, Journal, KeeperRecord, Moment, Planned, Record, VERSION,
};
use super::keeper::{self, Holds, KeeperError, Until};
use super::moment::{boot_id, now};
use super::place::{self, Place, PlaceError};
use super::plan::{Plan, Write};
use super::revert::{self, Reverted};
use super::root::Root;
use super::store::{Lock, Store, StoreError};

/// Options of applying a plan.
pub struct Applying<'a> {
    /// The program to start as a keeper: quell itself.
    pub program: PathBuf,
    /// When the plan is reverted automatically.
    pub until: Option<Until>,
    /// Keepers of an earlier transaction, which revert this one with it.
    pub keepers: Vec<KeeperRecord>,
    /// What new keepers hold for earlier transactions, whose own are gone.
    pub holds: Holds,
    /// Called before each write; if it returns true, everything is reverted.
    pub stopped: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Applying<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Applying")
            .field("program", &self.program)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// The result of applying a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The transaction; none if there was nothing to write.
    pub id: Option<String>,
    /// Ids of the writes that were made.
    pub written: Vec<String>,
    /// Ids of the writes whose value was set already.
    pub already: Vec<String>,
    /// Ids of those of them whose value an earlier transaction set for a time, with that transaction: the value goes with it.
    pub passing: Vec<(String, String)>,
    /// Ids of the writes that the kernel refused, or whose places are gone, and why; only writes for which the plan permits that.
    pub refused: Vec<(String, String)>,
    /// Its keepers, if it has any.
    pub keepers: Vec<KeeperRecord>,
}

/// Why a plan was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another transaction was interrupted.
    #[error(
        "transaction {id} was interrupted{}: `quell tune revert` restores what it changed, then apply again",
        if *.damaged { ", and its journal is damaged" } else { "" }
    )]
    Interrupted {
        /// Its id.
        id: String,
        /// Whether its journal has unreadable lines.
        damaged: bool,
    },
    /// All of it is applied already by another transaction, which will be reverted when its time is over.
    #[error(
        "the plan is applied already, as {0}, and ends with it: run `quell tune revert {0}` first, then apply again"
    )]
    Applied(String),
    /// The machine is not as it was when the plan was made.
    #[error("the plan no longer fits this machine: {}; make a new one with `quell tune plan`", .0.join("; "))]
    Stale(Vec<String>),
    /// A step failed; what was written before is reverted.
    #[error("{what}; {}", taken_back(.reverted))]
    Failed {
        /// The step, and why it failed.
        what: String,
        /// The place that could not be written, if it was a write.
        place: Option<Place>,
        /// The result of reverting the rest.
        reverted: Box<Result<Reverted, String>>,
    },
}

fn taken_back(reverted: &Result<Reverted, String>) -> String {
    match reverted {
        Ok(reverted) if reverted.is_whole() => "earlier changes are restored".into(),
        Ok(_) => "not all earlier changes could be restored: see `quell tune status`".into(),
        Err(error) => {
            format!("earlier changes could not be restored ({error}): run `quell tune revert`")
        }
    }
}

/// Applies a plan.
///
/// # Errors
/// See [`ApplyError`]. If it fails half-way, what was written is reverted first.
pub fn apply(root: &Root, plan: &Plan, applying: &Applying<'_>) -> Result<Applied, ApplyError> {
    let _lock = Lock::take(root)?;
    let store = Store::open(root)?;
    refuse_interrupted(&store)?;
    let Looked { writes, already, absent } = look(root, plan)?;
    let passing = passing(&store, &already, &applying.keepers)?;
    let mut applied = Applied { already: ids(&already), passing, refused: absent, ..Applied::default() };
    if writes.is_empty() {
        return match holder(&store, plan)? {
            Some(id) if applying.until.is_some() => Err(ApplyError::Applied(id)),
            _ => Ok(applied),
        };
    }
    let id = new_id(&store)?;
    let journal = begun(root, &store, &id, plan, &writes)?;
    applied.id = Some(id.clone());
    let before = Dependents::new();
    let mut transaction = Run { root, journal, before, applied, failed: None };
    let ended = transaction.run(&writes, &already, applying, &id);
    let Run { applied, failed: place, .. } = transaction;
    match ended {
        Ok(()) => Ok(applied),
        Err(what) => {
            let reverted = revert::revert_one(root, &store, &id, revert::Foreign::Keep, "a failed apply");
            let reverted = Box::new(reverted.map_err(|e| e.to_string()));
            Err(ApplyError::Failed { what, place, reverted })
        }
    }
}

/// A journal with its first record. It has its name only once that is on disk.
fn begun(
    root: &Root,
    store: &Store,
    id: &str,
    plan: &Plan,
    writes: &[Due<'_>],
) -> Result<Journal, StoreError> {
    let planned = |due: &Due<'_>| Planned {
        place: due.place.to_string(),
        old: due.write.old.clone(),
        new: due.write.new.clone(),
    };
    let begin = Begin {
        version: VERSION,
        at: now(),
        boot_id: boot_id(root),
        plan: plan.hash.clone(),
        mitigations: written_for(writes),
        planned: writes.iter().map(planned).collect(),
    };
    let file = store.create(id)?;
    fault::point();
    let made = Journal::on(file).and_then(|mut journal| {
        journal.append(&Record::Begin(begin))?;
        journal.sync()?;
        Ok(journal)
    });
    let journal = made.map_err(|source| StoreError::Io { path: store.path_of(id), source });
    let published = journal.and_then(|journal| store.publish(id).map(|()| journal));
    if published.is_err() {
        store.discard(id);
    }
    fault::point();
    published
}

/// What applying a plan would do now, without doing it.
///
/// # Errors
/// [`ApplyError::Stale`] if the plan no longer fits the machine.
pub fn check(root: &Root, plan: &Plan) -> Result<Applied, ApplyError> {
    let Looked { writes, already, absent } = look(root, plan)?;
    Ok(Applied { written: ids(&writes), already: ids(&already), refused: absent, ..Applied::default() })
}

/// A write to make.
struct Due<'a> {
    write: &'a Write,
    /// Its current place.
    place: Place,
    /// The value before the first write of the plan.
    now: String,
}

fn ids(writes: &[Due<'_>]) -> Vec<String> {
    writes.iter().map(|due| due.write.id.clone()).collect()
}

/// The places of a plan, as they are now.
#[derive(Default)]
struct Looked<'a> {
    /// The writes to make.
    writes: Vec<Due<'a>>,
    /// Those whose places have the value already.
    already: Vec<Due<'a>>,
    /// Ids of those whose places are gone, and why; only writes for which the plan permits that.
    absent: Vec<(String, String)>,
}

fn look<'a>(root: &Root, plan: &'a Plan) -> Result<Looked<'a>, ApplyError> {
    let (mut looked, mut stale) = (Looked::default(), other_machine(root, plan));
    for write in &plan.writes {
        let place = meant(root, &write.place);
        match place.read(root) {
            Ok(now) if place.same(&now, &write.new) => looked.already.push(Due { write, place, now }),
            Ok(now) if place.same(&now, &write.old) => looked.writes.push(Due { write, place, now }),
            Ok(now) => {
                stale.push(format!("{} is `{}` and was `{}`", write.place, now.trim(), write.old.trim()));
            }
            Err(trouble) if write.may_fail && trouble.is_for_now() => {
                looked.absent.push((write.id.clone(), trouble.to_string()));
            }
            Err(trouble) => stale.push(format!("{}: {trouble}", write.place)),
        }
    }
    if stale.is_empty() { Ok(looked) } else { Err(ApplyError::Stale(stale)) }
}

/// The reasons why a plan was made for another machine, or for another kernel of this one.
fn other_machine(root: &Root, plan: &Plan) -> Vec<String> {
    let reported = |path: &str| root.read(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let mut reasons = Vec::new();
    for (word, of_plan, here) in [
        ("host", &plan.host, reported("/proc/sys/kernel/hostname")),
        ("kernel", &plan.kernel, reported("/proc/sys/kernel/osrelease")),
    ] {
        if !of_plan.is_empty() && !here.is_empty() && *of_plan != here {
            reasons.push(format!("it is for {word} {of_plan}, and this is {here}"));
        }
    }
    reasons
}

/// The place that a plan refers to. The kernel may have replaced a kernel thread by another one with the same name.
fn meant(root: &Root, place: &Place) -> Place {
    if let Place::Thread { comm, property, .. } = place
        && matches!(place.read(root), Err(PlaceError::Gone(_)))
        && let Some(successor) = place::successor(root, comm)
    {
        return Place::Thread {
            pid: successor.pid,
            start: successor.start,
            comm: comm.clone(),
            property: *property,
        };
    }
    place.clone()
}

/// An id for a new transaction, which sorts after all existing ones.
fn new_id(store: &Store) -> Result<String, StoreError> {
    let now = now().replace([':', '.'], "-");
    let mut id = now.clone();
    let ids = store.ids()?;
    let mut n = 1;
    while ids.last().is_some_and(|last| *last >= id) {
        n += 1;
        let last = ids.last().map_or("", String::as_str);
        id = if *last > *now { format!("{last}-{n}") } else { format!("{now}-{n}") };
    }
    Ok(id)
}

/// The mitigations that have writes, in the order of those.
fn written_for(writes: &[Due<'_>]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for Due { write, .. } in writes {
        if !ids.contains(&write.mitigation) {
            ids.push(write.mitigation.clone());
        }
    }
    ids
}

fn is_held(place: &Place) -> bool {
    matches!(place, Place::Held { .. })
}

struct Run<'a> {
    root: &'a Root,
    journal: Journal,
    /// The settings that the kernel may change along with those of the plan.
    before: Dependents,
    applied: Applied,
    /// The place that could not be written.
    failed: Option<Place>,
}

impl Run<'_> {
    fn run(
        &mut self,
        writes: &[Due<'_>],
        already: &[Due<'_>],
        applying: &Applying<'_>,
        id: &str,
    ) -> Result<(), String> {
        // First, so that they revert what is written if this process is killed.
        for keeper in &applying.keepers {
            self.log(&Record::Keeper(keeper.clone()))?;
            self.applied.keepers.push(keeper.clone());
        }
        let dependents = || writes.iter().flat_map(|due| due.write.dependents.iter().cloned());
        self.before = groups::note(self.root, dependents());
        if !self.before.is_empty() {
            let files = self.before.clone();
            self.log(&Record::Dependents { at: Moment::Before, files })?;
        }
        // Before the first write, so that what is written is reverted in time even if this process is killed.
        self.hold(writes, applying, id)?;
        // systemd stops and disables units along with others: the originals of all are on disk before the first of them changes.
        let is_unit = |place: &Place| matches!(place, Place::Unit { .. });
        let mut gone = Vec::new();
        for (n, due) in writes.iter().enumerate().filter(|(_, due)| is_unit(&due.place)) {
            if !self.intend(n, due, &due.place)? {
                gone.push(n);
            }
        }
        for (n, due) in writes.iter().enumerate().filter(|(_, due)| !is_held(&due.place)) {
            if (applying.stopped)() {
                return Err("it was interrupted".into());
            }
            let place = meant(self.root, &due.place);
            let is_here = if is_unit(&place) { !gone.contains(&n) } else { self.intend(n, due, &place)? };
            if !is_here {
                continue;
            }
            self.write(n, due.write, &place)?;
        }
        // A later write may have changed what had its value, and what got it.
        for (n, due) in writes.iter().chain(already).enumerate() {
            let is_new = n >= writes.len();
            if self.is_moved(due) && (!is_new || self.intend(n, due, &due.place)?) {
                self.applied.already.retain(|id| *id != due.write.id);
                self.applied.written.retain(|id| *id != due.write.id);
                self.write(n, due.write, &due.place)?;
            }
        }
        if !self.before.is_empty() {
            let files = groups::note(self.root, dependents());
            self.log(&Record::Dependents { at: Moment::After, files })?;
        }
        if (applying.stopped)() {
            return Err("it was interrupted".into());
        }
        self.log(&Record::Commit { at: now() })?;
        self.journal.sync().map_err(|e| format!("the journal cannot be written: {e}"))
    }

    /// Starts the keepers that the plan needs.
    fn hold(&mut self, writes: &[Due<'_>], applying: &Applying<'_>, id: &str) -> Result<(), String> {
        let mut held = Vec::new();
        for (n, due) in writes.iter().enumerate() {
            if let Place::Held { what } = due.place
                && self.intend(n, due, &due.place)?
            {
                held.push((n, what, due.write));
            }
        }
        if held.is_empty() && applying.until.is_none() {
            return Ok(());
        }
        self.keep(&held, applying, id)
    }

    /// Records the original before its place is written. The record is on disk when this returns, so a crash at any later point can be
    /// reverted. Returns false if the place is gone by now, and the plan permits that.
    fn intend(&mut self, n: usize, due: &Due<'_>, place: &Place) -> Result<bool, String> {
        let Due { write, now, .. } = due;
        let read = place.read(self.root).and_then(|now| Ok((now, groups::read(self.root, &write.group)?)));
        let (mut original, group) = match read {
            Ok(read) => read,
            Err(trouble) if write.may_fail && trouble.is_for_now() => {
                self.applied.refused.push((write.id.clone(), trouble.to_string()));
                return Ok(false);
            }
            Err(trouble) => {
                self.failed = Some(write.place.clone());
                return Err(format!("{place} cannot be read: {trouble}"));
            }
        };
        // An earlier write of the plan may have changed it, too.
        if let Place::File { path } = place
            && let Some(noted) = self.before.get(path)
        {
            original.clone_from(&noted.value);
        } else if place.same(&original, &write.new) {
            original.clone_from(now);
        }
        let intent = Intent::new(self.root, n, (*write).clone(), place.clone(), original, group);
        self.log(&Record::Intent(Box::new(intent))).map(|()| true)
    }

    /// Whether the kernel has changed a place along with a write of the plan.
    fn is_moved(&self, due: &Due<'_>) -> bool {
        let Place::File { path } = &due.place else { return false };
        let is_refused = self.applied.refused.iter().any(|(id, _)| *id == due.write.id);
        let is_set = |now: String| due.place.same(&now, &due.write.new);
        self.before.contains_key(path) && !is_refused && !due.place.read(self.root).is_ok_and(is_set)
    }

    fn write(&mut self, n: usize, write: &Write, place: &Place) -> Result<(), String> {
        fault::point();
        let written = place.write(self.root, &write.new).and_then(|()| {
            fault::point();
            let readback = place.read(self.root)?;
            if place.same(&readback, &write.new) { Ok(readback) } else { Err(PlaceError::Ignored(readback)) }
        });
        match written {
            Ok(readback) => {
                let group = groups::read(self.root, &write.group).unwrap_or_default();
                self.log(&Record::Done { n, readback, group })?;
                self.applied.written.push(write.id.clone());
                Ok(())
            }
            Err(trouble) if write.may_fail => {
                let is_known = self.took(n, write, place)?;
                let why = trouble.to_string();
                let immovable = matches!(trouble, PlaceError::Immovable(_));
                self.applied.refused.push((write.id.clone(), why.clone()));
                // It may have been made, in part or whole: it is reverted like one that was interrupted.
                if !is_known {
                    return Ok(());
                }
                self.log(&Record::Refused { n, why, immovable })
            }
            Err(trouble) => {
                self.took(n, write, place)?;
                self.failed = Some(write.place.clone());
                Err(format!("{place} cannot be set to `{}`: {trouble}", write.new.trim()))
            }
        }
    }

    /// Records the value that a failed write left, if it left one: it is quell's, not another program's. Returns whether the value is known.
    fn took(&mut self, n: usize, write: &Write, place: &Place) -> Result<bool, String> {
        let Ok(readback) = place.read(self.root) else { return Ok(false) };
        let group = groups::read(self.root, &write.group).unwrap_or_default();
        if place.same(&readback, &write.old) && group.is_empty() {
            return Ok(true);
        }
        self.log(&Record::Took { n, readback, group }).map(|()| true)
    }

    /// Starts the keepers: one to hold, two to revert. They continue only once their pids are in the journal, so a crash in between leaves no
    /// process that no one knows.
    fn keep(
        &mut self,
        held: &[(usize, super::catalogue::Held, &Write)],
        applying: &Applying<'_>,
        id: &str,
    ) -> Result<(), String> {
        let failed = |error: KeeperError| error.to_string();
        let holds = held.iter().map(|(_, what, write)| (*what, write.new.clone()));
        let holds = holds.chain(applying.holds.iter().cloned()).collect();
        let mut request = keeper::Request {
            root: self.root.path("/"),
            id: id.to_owned(),
            holds,
            until: applying.until.clone(),
            after: None,
        };
        let mut keepers = vec![keeper::start(&applying.program, &request).map_err(failed)?];
        if applying.until.is_some() {
            request.after = keepers.first().map(|first| first.record().clone());
            keepers.push(keeper::start(&applying.program, &request).map_err(failed)?);
        }
        for keeper in &keepers {
            self.log(&Record::Keeper(keeper.record().clone()))?;
            self.applied.keepers.push(keeper.record().clone());
        }
        fault::point();
        keepers.into_iter().try_for_each(keeper::Waiting::go).map_err(failed)?;
        for (n, _, write) in held {
            self.log(&Record::Done { n: *n, readback: write.new.clone(), group: Group::new() })?;
            self.applied.written.push(write.id.clone());
        }
        Ok(())
    }

    fn log(&mut self, record: &Record) -> Result<(), String> {
        self.journal.append(record).map_err(|e| format!("the journal cannot be written: {e}"))
    }
}
