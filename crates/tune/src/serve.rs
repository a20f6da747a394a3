//! Keeps a profile applied for as long as quell runs: what comes later, such as a thread, an interrupt or a CPU, gets the settings too, and
//! all of it is reverted at the end.
//!
//! A setting that another program changes is left to that program. A keeper reverts everything if quell is killed.

mod events;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use self::events::Events;
use super::apply::{Applied, ApplyError, Applying, apply};
use super::journal::KeeperRecord;
use super::keeper::Until;
use super::place::{Place, PlaceError};
use super::plan::{Plan, Write};
use super::revert::{Foreign, RevertError, Reverted, revert};
use super::root::Root;

/// What one service has applied.
#[derive(Debug)]
pub struct Served<'a> {
    root: &'a Root,
    program: PathBuf,
    until: Until,
    keepers: Vec<KeeperRecord>,
    transactions: Vec<String>,
    /// The places that it has written, or could not write, and their values since.
    ours: BTreeMap<Place, Ours>,
}

/// A place of the service.
#[derive(Debug)]
struct Ours {
    value: String,
    /// The value of another program that was reported.
    foreign: Option<String>,
    /// Whether a device or CPU of it has come or gone since the last look, so that the kernel itself may have changed it.
    disturbed: bool,
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
        let (keepers, transactions, ours) = Default::default();
        Self { root, program, until, keepers, transactions, ours }
    }

    /// Compares a new plan with what was written: a place that another program has changed since is left to it.
    pub fn look(&mut self, plan: &Plan) -> Look {
        let is_gone = |place: &Place| place.read(self.root).is_err_and(|trouble| trouble.is_absence());
        self.ours.retain(|place, _| matches!(place, Place::Held { .. }) || !is_gone(place));
        let (mut writes, mut again, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
        for write in &plan.writes {
            let Some(ours) = self.ours.get_mut(&write.place) else {
                writes.push(write.clone());
                continue;
            };
            let is_ours = write.place.same(&write.old, &ours.value);
            let by_kernel = ours.disturbed || write.place.has_lost_cpus(&write.old, &ours.value);
            match write.place {
                // A keeper holds it, which an audit cannot see.
                Place::Held { .. } => {}
                _ if by_kernel && write.place.same(&write.new, &ours.value) => again.push(write.clone()),
                // The plan wants another value now, as after a CPU has gone.
                _ if is_ours || by_kernel => writes.push(write.clone()),
                _ if ours.foreign.as_ref() == Some(&write.old) => {}
                _ => {
                    ours.foreign = Some(write.old.clone());
                    foreign.push((write.place.clone(), write.old.clone()));
                }
            }
        }
        self.ours.values_mut().for_each(|ours| ours.disturbed = false);
        let mut due = Plan { writes, ..plan.clone() };
        due.hash = due.hash_of();
        Look { due, again, foreign }
    }

    /// Makes a write again. The journal has the original of its place already.
    ///
    /// # Errors
    /// See [`PlaceError`].
    pub fn write_again(&self, write: &Write) -> Result<(), PlaceError> {
        write.place.write(self.root, &write.new)
    }

    /// Applies what is due of a plan.
    ///
    /// # Errors
    /// See [`ApplyError`]. Writes of a plan that failed are not tried again.
    pub fn apply(&mut self, due: &Plan, stopped: &dyn Fn() -> bool) -> Result<Applied, ApplyError> {
        let until = self.keepers.is_empty().then(|| self.until.clone());
        let applying =
            Applying { program: self.program.clone(), until, keepers: self.keepers.clone(), stopped };
        let applied = apply(self.root, due, &applying);
        if matches!(applied, Ok(_) | Err(ApplyError::Failed { .. })) {
            for write in &due.writes {
                let value = write.place.read(self.root).unwrap_or_else(|_| write.new.clone());
                self.ours.insert(write.place.clone(), Ours { value, foreign: None, disturbed: false });
            }
        }
        let applied = applied?;
        if self.keepers.is_empty() {
            self.keepers.clone_from(&applied.keepers);
        }
        self.transactions.extend(applied.id.clone());
        Ok(applied)
    }

    /// Whether it has applied something.
    pub fn has_applied(&self) -> bool {
        !self.transactions.is_empty()
    }

    /// Notes that a device or CPU has come or gone, by its folder's name, such as `cpu3`: its places have values of their own now, and with
    /// a CPU the kernel changes sets of CPUs.
    pub fn disturb(&mut self, device: &str) {
        let is_cpu = device.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
        for (place, ours) in &mut self.ours {
            let of_device = match place {
                Place::File { path } => path.split('/').any(|part| part == device),
                _ => false,
            };
            ours.disturbed |= of_device || is_cpu && place.cpus(&ours.value).is_some();
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
        let mut all = Reverted::default();
        for id in self.transactions.iter().rev() {
            match revert(self.root, Some(id), Foreign::Keep, "the end of its service") {
                Ok(one) => all.extend(one),
                // The user has reverted it.
                Err(RevertError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}
