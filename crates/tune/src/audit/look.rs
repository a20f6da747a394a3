//! Examines one mitigation: its knobs become places, each of which is read and compared.

use std::os::unix::fs::MetadataExt as _;

use fs_err as fs;

use super::lists::Lists;
use super::near::near;
use super::{AuditOptions, ByHand, PlaceState, compare};
use crate::catalogue::{
    Compare, CpusetKnob, DropInKnob, Held, HoldKnob, IrqKnob, Knob, Mitigation, Part, Want,
};
use crate::facts::{Facts, Filling, Parts};
use crate::place::irq::Irq;
use crate::place::{ABSENT, Place, PlaceError, cpuset};
use crate::root::Root;

/// The machine, and what to look for.
pub struct Examiner<'a> {
    pub root: &'a Root,
    pub facts: &'a Facts,
    pub parts: Result<&'a Parts, &'a str>,
    pub options: &'a AuditOptions,
    pub lists: Lists<'a>,
}

/// The result for one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has the wanted value.
    Done,
    /// It has another value.
    Not,
    /// This machine does not have it.
    Missing,
    /// This machine does not have it, and does not need it.
    NotMissed,
    /// It has another value that cannot be changed.
    Immovable,
    /// It is not visible, or has no wanted value.
    Unseen,
    /// Its file system is not mounted.
    NotMounted,
    /// The kernel does not let this user read it.
    NotReadable,
}

/// One result: for a place, for a step by hand, or for something else.
#[derive(Clone, Debug)]
pub struct Examined {
    pub verdict: Verdict,
    pub why: Option<String>,
    pub place_state: Option<PlaceState>,
    pub by_hand: Option<ByHand>,
}

impl Examined {
    /// A result for neither a place nor a step by hand.
    pub fn bare(verdict: Verdict, why: impl Into<String>) -> Self {
        Self { verdict, why: Some(why.into()), place_state: None, by_hand: None }
    }

    /// Marks the place as one that cannot be changed, unless it has the wanted value.
    pub fn immovable(mut self, why: &str) -> Self {
        let Some(place_state) =
            self.place_state.as_mut().filter(|place_state| !place_state.done && place_state.now.is_some())
        else {
            return self;
        };
        place_state.immovable = true;
        place_state.why = Some(why.to_owned());
        Self { verdict: Verdict::Immovable, why: place_state.why.clone(), ..self }
    }

    /// Counts a value that is stricter than the wanted one as it.
    pub fn or_stricter(mut self, stricter: &[String]) -> Self {
        if let Some(PlaceState { place, now: Some(now), done, .. }) = &mut self.place_state
            && stricter.iter().any(|one| place.same(now, one))
        {
            *done = true;
            self.verdict = Verdict::Done;
        }
        self
    }

    fn with(mut self, set: impl FnOnce(&mut PlaceState)) -> Self {
        self.place_state.as_mut().map(set);
        self
    }
}

/// A mitigation's knob, and the values for it.
#[derive(Clone, Copy)]
pub struct At<'m> {
    pub mitigation: &'m Mitigation,
    /// The values for its texts.
    pub filling: Filling<'m>,
    /// The user's value for a file whose wanted text has no `${value}`.
    pub instead: Option<&'m str>,
}

impl At<'_> {
    /// The wanted text.
    pub fn fill(&self, want: &Want) -> Result<String, String> {
        let value = self.filling.value.unwrap_or_default();
        if value.contains(|c: char| c.is_control()) || value.len() > 4096 {
            return Err("its value from --set is not a single line of text".into());
        }
        match self.instead {
            Some(value) if !want.needs_value() => Ok(value.to_owned()),
            _ => want.fill(&self.filling),
        }
    }
}

impl<'a> Examiner<'a> {
    pub fn new(
        root: &'a Root,
        facts: &'a Facts,
        parts: Result<&'a Parts, &'a str>,
        options: &'a AuditOptions,
    ) -> Self {
        Self { root, facts, parts, options, lists: Lists::new(root) }
    }

    pub fn looks(&self, mitigation: &Mitigation) -> Vec<Examined> {
        let value = self.options.values.get(&mitigation.id).map(String::as_str);
        let filling = Filling { facts: self.facts, parts: self.parts, value };
        let rest = At { mitigation, filling, instead: None };
        let first = mitigation.knob.iter().position(|knob| matches!(knob, Knob::File(_)));
        let mut looks = Vec::new();
        for (number, knob) in mitigation.knob.iter().enumerate() {
            // The value is for the first file.
            let instead = value.filter(|_| Some(number) == first);
            looks.extend(self.knob(At { instead, ..rest }, knob));
        }
        looks.extend(self.boot(rest));
        looks
    }

    fn knob(&self, at: At<'_>, knob: &Knob) -> Vec<Examined> {
        match knob {
            Knob::File(file) => self.file(at, file),
            Knob::Irq(irq) => self.irq(at, irq),
            Knob::KernelThread(threads) => self.kernel_threads(at, threads),
            Knob::Process(process) => self.process(at, process),
            Knob::Unit(unit) => self.unit(unit),
            Knob::Hold(hold) => vec![self.hold(at, hold)],
            Knob::Cpuset(cpuset) => vec![self.cpuset(cpuset)],
            // All options of a mitigation are in one file, so they are examined together.
            Knob::Boot(_) => Vec::new(),
            Knob::DropIn(file) => self.drop_in(at, file),
            Knob::ByHand(by_hand) => vec![self.by_hand(by_hand)],
        }
    }

    /// Why a part of the CPUs makes no sense on this machine.
    pub fn no_such_part(&self, part: Part) -> Option<Examined> {
        let no_smt = self.facts.cores.iter().all(|core| core.len() < 2);
        let why = "no core here has more than one hardware thread";
        (part == Part::FirstThreads && no_smt).then(|| Examined::bare(Verdict::Missing, why))
    }

    /// Reads a place, and compares it.
    pub fn see(&self, place: Place, want: Result<String, String>, how: Compare, optional: bool) -> Examined {
        let mut place_state = PlaceState { optional, ..PlaceState::unreadable(place) };
        let mut verdict = Verdict::Not;
        match place_state.place.read(self.root) {
            Ok(now) => place_state.now = Some(now),
            Err(PlaceError::Missing) if matches!(place_state.place, Place::DropIn { .. }) => {
                place_state.now = Some(ABSENT.to_owned());
            }
            Err(trouble) => {
                verdict = verdict_of(&trouble, optional);
                place_state.immovable = verdict == Verdict::Immovable;
                place_state.why = Some(match trouble {
                    PlaceError::Invalid(_) => {
                        "the kernel refuses the read: this device does not have it".into()
                    }
                    trouble => trouble.to_string(),
                });
            }
        }
        match want {
            Ok(want) => place_state.want = Some(want),
            Err(why) if verdict == Verdict::Not => {
                verdict = Verdict::Unseen;
                place_state.why = Some(why);
            }
            Err(_) => {}
        }
        if let (Some(now), Some(want)) = (&place_state.now, &place_state.want)
            && compare::counts(&place_state.place, now, want, how, &self.facts.online)
        {
            place_state.done = true;
            verdict = Verdict::Done;
        }
        Examined { verdict, why: place_state.why.clone(), place_state: Some(place_state), by_hand: None }
    }

    /// Marks a file without write permission: a file that exists need not be writable.
    pub fn unless_writable(&self, look: Examined, file: &str, why: &str) -> Examined {
        let mode = fs::metadata(self.root.path(file)).map(|facts| facts.mode());
        match mode.is_ok_and(|mode| mode & 0o222 == 0) {
            true => look.immovable(why),
            false => look,
        }
    }

    fn irq(&self, at: At<'_>, knob: &IrqKnob) -> Vec<Examined> {
        let regex = match regex::Regex::new(&knob.matches) {
            Ok(regex) => regex,
            Err(error) => return vec![Examined::bare(Verdict::Unseen, error.to_string())],
        };
        if let Some(none) = self.no_such_part(knob.want) {
            return vec![none];
        }
        let mine: Vec<&Irq> = self.lists.irqs().iter().filter(|irq| regex.is_match(&irq.name)).collect();
        if mine.is_empty() {
            let why = format!("no interrupt is named like `{}`", knob.matches);
            return vec![Examined::bare(Verdict::NotMissed, why)];
        }
        let look = |irq: &&Irq| {
            let place = Place::Irq { number: irq.number, name: irq.name.clone() };
            let now = place.cpus(&irq.affinity).unwrap_or_default();
            let part = at.filling.cpus(knob.want);
            let want = part.map(|part| at.filling.as_mask(&near(&now, &part, &self.facts.numa)));
            let look = self.see(place, want, Compare::Within, true);
            // Recent kernels show a managed interrupt by its file mode; older ones only refuse the write.
            let look = look.with(|place_state| place_state.may_fail = mine.len() > 1);
            match &irq.immovable {
                Some(why) => look.immovable(why),
                None => look,
            }
        };
        mine.iter().map(look).collect()
    }

    fn hold(&self, at: At<'_>, knob: &HoldKnob) -> Examined {
        let how = match knob.what {
            Held::CpuDmaLatency => Compare::AtMost,
            Held::TimestampSocket => Compare::Equal,
        };
        self.see(Place::Held { what: knob.what }, at.fill(&knob.want), how, false)
    }

    fn cpuset(&self, knob: &CpusetKnob) -> Examined {
        let wanted = |parts: &Parts| {
            cpuset::wanted(knob.what, &parts.compute, &parts.housekeeping, self.root)
                .map_err(|e| e.to_string())
        };
        let want = self.parts.map_err(str::to_owned).and_then(wanted);
        self.see(Place::Cpuset { what: knob.what }, want, Compare::Equal, false)
    }

    fn drop_in(&self, at: At<'_>, knob: &DropInKnob) -> Vec<Examined> {
        if let Some(program) = knob.r#if.as_ref().filter(|program| !self.installed(program)) {
            return vec![Examined::bare(Verdict::NotMissed, format!("`{program}` is not installed"))];
        }
        if let Some(why) = self.no_systemd().filter(|_| knob.path.starts_with("/etc/systemd/")) {
            return vec![Examined::bare(Verdict::Missing, format!("{why}, so nothing reads {}", knob.path))];
        }
        let want = at.fill(&knob.content).map(|text| super::own_file::signed(&at.mitigation.id, &text));
        let later = want.as_ref().map_or_else(|_| Vec::new(), |want| self.later_files(&knob.path, want));
        let look = self.see(Place::DropIn { path: knob.path.clone() }, want, Compare::Equal, false);
        let look = look.with(|place_state| place_state.staged = true);
        std::iter::once(look).chain(later).collect()
    }

    /// Whether a program is installed: a path, or a name in the usual folders for programs.
    fn installed(&self, program: &str) -> bool {
        let folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];
        match program.starts_with('/') {
            true => self.root.has(program),
            false => folders.iter().any(|folder| self.root.has(&format!("{folder}/{program}"))),
        }
    }
}

impl PlaceState {
    /// A place of which nothing is known yet.
    pub(super) fn unreadable(place: Place) -> Self {
        Self {
            place,
            now: None,
            want: None,
            done: false,
            optional: false,
            immovable: false,
            may_fail: false,
            staged: false,
            group: Vec::new(),
            dependents: Vec::new(),
            overruled_by: Vec::new(),
            why: None,
        }
    }
}

fn verdict_of(trouble: &PlaceError, optional: bool) -> Verdict {
    match trouble {
        PlaceError::Immovable(_) => Verdict::Immovable,
        PlaceError::Denied(_) => Verdict::NotReadable,
        trouble if trouble.is_absence() && optional => Verdict::NotMissed,
        // Some devices have a file of a setting that they do not have, and refuse the read.
        PlaceError::Invalid(_) if optional => Verdict::NotMissed,
        trouble if trouble.is_absence() => Verdict::Missing,
        _ => Verdict::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_setting_that_the_kernel_refuses_to_read_is_not_missed() {
        // A disk whose queue has no writeback throttling refuses the read of wbt_lat_usec.
        let refused = PlaceError::from_io(&std::io::Error::from_raw_os_error(libc::EINVAL), "");
        assert_eq!(verdict_of(&refused, true), Verdict::NotMissed);
        assert_eq!(verdict_of(&refused, false), Verdict::Unseen);
        assert_eq!(verdict_of(&PlaceError::Missing, true), Verdict::NotMissed);
        assert_eq!(verdict_of(&PlaceError::Other("x".into()), true), Verdict::Unseen);
    }
}
