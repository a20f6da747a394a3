//! Turns an audit into writes, and a list of what is left unchanged.

use std::collections::{BTreeMap, BTreeSet};

use super::{Left, Write};
use crate::audit::{Audited, PlaceState, State};
use crate::catalogue::Risk;
use crate::place::{ABSENT, Place};

const GRUB: &str = "/etc/default/grub.d/";

/// A plan under construction.
#[derive(Debug, Default)]
pub struct Making {
    persist: bool,
    writes: Vec<Write>,
    left: Vec<Left>,
    /// For each place: the mitigation that claimed it, the wanted value, and whether that is a write.
    wanted: BTreeMap<Place, (String, String, bool)>,
    /// The dependents of all writes.
    dependents: BTreeSet<String>,
    /// Files that have a wanted value already.
    kept: Vec<Write>,
}

impl Making {
    pub fn new(persist: bool) -> Self {
        Self { persist, ..Self::default() }
    }

    /// The writes, and what is left. A file that has its value already is written again if the kernel may change it along with a write.
    pub fn done(mut self) -> (Vec<Write>, Vec<Left>) {
        let is_dependent = |write: &Write| match &write.place {
            Place::File { path } => self.dependents.contains(path),
            _ => false,
        };
        let mut kept: Vec<Write> = self.kept.into_iter().filter(is_dependent).collect();
        kept.retain(|kept| self.writes.iter().all(|write| write.place != kept.place));
        self.writes.append(&mut kept);
        (self.writes, self.left)
    }

    /// Adds the writes of one mitigation.
    ///
    /// # Errors
    /// If another mitigation wants a different value for the same place.
    pub fn add(&mut self, one: &Audited<'_>) -> Result<(), String> {
        let before = self.writes.len();
        let done = one.places.iter().filter(|place_state| place_state.done && !place_state.immovable);
        for (place_state, now) in
            done.filter_map(|place_state| Some((place_state, place_state.now.as_ref()?)))
        {
            let write = Self::write_of(one, place_state, now, now);
            if self.kept.iter().all(|kept| kept.id != write.id) {
                self.kept.push(write);
            }
        }
        if matches!(one.state, State::NotApplied | State::Partial) && one.mitigation.risk != Risk::External {
            for place_state in self.places(one) {
                self.place(one, place_state)?;
            }
            let fixed = one.places.iter().filter(|place_state| place_state.immovable && !place_state.done);
            let reported = by_why(fixed.map(|place_state| (missing_value(place_state), &place_state.place)));
            reported.into_iter().for_each(|(what, why)| self.leave(one, what, why));
        } else {
            self.leave_all(one);
            // A mitigation that is on already still claims its places.
            for place_state in &one.places {
                self.claim(one, place_state)?;
            }
        }
        self.by_hand(one);
        if self.persist && matches!(one.state, State::NotApplied | State::Partial | State::Applied) {
            self.lasting(one, before)?;
        }
        self.boot_loader(one, before);
        Ok(())
    }

    /// The places that it touches; if the plan must survive a reboot, units with the state that keeps them off permanently.
    fn places<'s>(&self, one: &'s Audited<'_>) -> Vec<&'s PlaceState> {
        let for_good = |place_state: &'s PlaceState| match self.persist {
            true => one.lasting.iter().find(|other| other.place == place_state.place).unwrap_or(place_state),
            false => place_state,
        };
        one.places.iter().map(for_good).collect()
    }

    fn place(&mut self, one: &Audited<'_>, place_state: &PlaceState) -> Result<(), String> {
        self.claim(one, place_state)?;
        if place_state.done || place_state.immovable || place_state.optional && place_state.now.is_none() {
            return Ok(());
        }
        let what = place_state.place.to_string();
        match (&place_state.now, &place_state.want) {
            (Some(now), Some(want)) if place_state.staged && place_state.place.same(now, want) => {
                let next = || "staged already: takes effect after the next boot".to_owned();
                self.leave(one, what, place_state.why.clone().unwrap_or_else(next));
            }
            (Some(_), Some(_)) if place_state.staged && !self.persist => {
                self.leave(one, what, "only at boot: plan with --persist");
            }
            (Some(now), Some(want)) => self.write(one, place_state, now, want),
            _ => self.leave(one, what, missing_value(place_state)),
        }
        Ok(())
    }

    /// Records the value that a mitigation wants for a place.
    fn claim(&mut self, one: &Audited<'_>, place_state: &PlaceState) -> Result<(), String> {
        let (Some(want), false) = (&place_state.want, place_state.immovable) else { return Ok(()) };
        let id = &one.mitigation.id;
        if let Some((other, value, is_write)) = self.wanted.get(&place_state.place) {
            // Both may accept the current value, each by its own comparison.
            if !place_state.place.same(value, want) && (*is_write || !place_state.done) {
                let (place, value, want) = (&place_state.place, shown(value), shown(want));
                return Err(format!(
                    "`{other}` and `{id}` want different values for {place} (`{value}`, `{want}`): leave one out"
                ));
            }
            return Ok(());
        }
        self.wanted.insert(place_state.place.clone(), (id.clone(), want.clone(), !place_state.done));
        Ok(())
    }

    fn write(&mut self, one: &Audited<'_>, place_state: &PlaceState, now: &str, want: &str) {
        if self.writes.iter().any(|write| write.place == place_state.place) {
            return;
        }
        let mut write = Self::write_of(one, place_state, now, want);
        // One that an earlier write names is restored already.
        write.dependents.retain(|path| self.dependents.insert(path.clone()));
        self.writes.push(write);
    }

    fn write_of(one: &Audited<'_>, place_state: &PlaceState, now: &str, want: &str) -> Write {
        let mitigation = one.mitigation.id.clone();
        Write {
            id: format!("{mitigation}:{}", place_state.place),
            mitigation,
            place: place_state.place.clone(),
            old: now.to_owned(),
            new: want.to_owned(),
            group: place_state.group.clone(),
            dependents: place_state.dependents.clone(),
            may_fail: place_state.may_fail,
            staged: place_state.staged,
        }
    }

    fn leave(&mut self, one: &Audited<'_>, what: String, why: impl Into<String>) {
        self.left.push(Left { mitigation: one.mitigation.id.clone(), what, why: why.into() });
    }

    /// Lists a mitigation without writes as left unchanged.
    fn leave_all(&mut self, one: &Audited<'_>) {
        let because = |reported: &str| match &one.why {
            Some(why) => format!("{reported}: {why}"),
            None => reported.to_owned(),
        };
        let why = match one.state {
            _ if one.mitigation.risk == Risk::External => "it cannot be changed from this machine".to_owned(),
            State::Applied => because("it is on already"),
            State::NotHere => because("none of its settings can be changed here"),
            State::NotMounted => because("its settings are on a file system that is not mounted"),
            State::NotReadable => because("its settings are not readable"),
            _ => because("its state is unknown"),
        };
        let title = one.mitigation.title.clone();
        self.leave(one, title, why);
    }

    fn by_hand(&mut self, one: &Audited<'_>) {
        for by_hand in one.by_hand.iter().filter(|by_hand| by_hand.done != Some(true)) {
            let why = match &by_hand.seen {
                Some(seen) => format!("to be done by hand: {seen}"),
                None => "to be done by hand".to_owned(),
            };
            self.leave(one, by_hand.todo.clone(), why);
        }
    }

    /// Adds what keeps the mitigation after the next boot, and lists what cannot be kept.
    fn lasting(&mut self, one: &Audited<'_>, before: usize) -> Result<(), String> {
        let files =
            one.lasting.iter().filter(|place_state| matches!(place_state.place, Place::DropIn { .. }));
        for place_state in files {
            self.place(one, place_state)?;
            for other in &place_state.overruled_by {
                let why = format!("{other} sets it too, and is read later: change it there");
                self.leave(one, place_state.place.to_string(), why);
            }
        }
        // A unit that does not run, but would start at the next boot.
        if one.state == State::Applied {
            for place_state in
                one.lasting.iter().filter(|place_state| matches!(place_state.place, Place::Unit { .. }))
            {
                if let (Some(now), Some(want)) = (&place_state.now, &place_state.want) {
                    self.write(one, place_state, now, want);
                }
            }
        }
        self.passing(one, before);
        Ok(())
    }

    /// Lists writes that the next boot undoes, by kind.
    fn passing(&mut self, one: &Audited<'_>, before: usize) {
        let mine = self.writes.iter().skip(before);
        let passing = mine.filter_map(|write| Some((why_passing(write)?.to_owned(), &write.place)));
        let reported = by_why(passing);
        reported.into_iter().for_each(|(what, why)| self.leave(one, what, why));
    }

    /// A staged option takes effect only after the generator of the boot loader's menu has read it.
    fn boot_loader(&mut self, one: &Audited<'_>, before: usize) {
        let grub = |write: &Write| matches!(&write.place, Place::DropIn { path } if path.starts_with(GRUB));
        if self.writes.iter().skip(before).any(grub) {
            let why = "to be done by hand: run `update-grub` (or `grub-mkconfig -o /boot/grub/grub.cfg`), then boot again";
            self.leave(one, "the boot loader's menu".into(), why);
        }
    }
}

fn missing_value(place_state: &PlaceState) -> String {
    place_state.why.clone().unwrap_or_else(|| "it cannot be seen".into())
}

/// Places with the same reason, combined: the first, and the number of others.
fn by_why<'p>(places: impl Iterator<Item = (String, &'p Place)>) -> Vec<(String, String)> {
    let mut reported: Vec<(String, &Place, usize)> = Vec::new();
    for (why, place) in places {
        match reported.iter_mut().find(|(known, ..)| *known == why) {
            Some((.., more)) => *more += 1,
            None => reported.push((why, place, 0)),
        }
    }
    let tell = |(why, place, more): (String, &Place, usize)| match more {
        0 => (place.to_string(), why),
        _ => (format!("{place}, and {more} more"), why),
    };
    reported.into_iter().map(tell).collect()
}

/// Why a write does not survive the next boot; none if it does, or if a file of quell's repeats it.
fn why_passing(write: &Write) -> Option<&'static str> {
    match &write.place {
        Place::Irq { .. } => Some("an interrupt's affinity cannot persist: apply again after each boot"),
        Place::Thread { .. } => Some("a thread's settings end with it: apply again after each boot"),
        Place::Held { .. } => Some("it works only while it is held: apply again after each boot"),
        Place::Cpuset { .. } => Some("a cpuset ends with the boot: apply again after each boot"),
        Place::Unit { .. } if !write.new.ends_with("disabled") => {
            Some("it is only stopped: other units start it, so there is nothing to disable")
        }
        _ => None,
    }
}

fn shown(text: &str) -> String {
    let first = text.trim().lines().last().unwrap_or(ABSENT);
    first.chars().take(80).collect()
}
