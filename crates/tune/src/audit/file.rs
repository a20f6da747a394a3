//! Kernel files: which files a path with wildcards stands for on this machine.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;

use fs_err as fs;

use super::look::{At, Examined, Examiner, Verdict};
use crate::catalogue::{Compare, EACH_CPU, FileKnob, Part, Where};
use crate::deny;
use crate::place::Place;

impl Examiner<'_> {
    pub(super) fn file(&self, at: At<'_>, knob: &FileKnob) -> Vec<Examined> {
        if knob.want.has(Part::FirstThreads)
            && let Some(none) = self.no_such_part(Part::FirstThreads)
        {
            return vec![none];
        }
        let found = match self.paths(at, knob) {
            Ok(found) => found,
            Err(why) => return vec![Examined::bare(Verdict::Unseen, why)],
        };
        let fits = |path: &&String| knob.r#where.as_ref().is_none_or(|test| self.meets(path, test));
        let looks: Vec<Examined> =
            found.iter().filter(fits).map(|path| self.one_file(at, knob, path)).collect();
        match looks.is_empty() {
            true if found.is_empty() => {
                vec![self.behind_a_mount(&knob.path).unwrap_or_else(|| no_file(knob, false))]
            }
            true => vec![no_file(knob, true)],
            false => looks,
        }
    }

    /// The paths that a pattern stands for. A CPU that has vanished has no files.
    fn paths(&self, at: At<'_>, knob: &FileKnob) -> Result<Vec<String>, String> {
        let Some((before, after)) = knob.path.split_once(EACH_CPU) else {
            return Ok(self.root.glob(&knob.path));
        };
        let cpus = at.filling.cpus(knob.cpus)?;
        Ok(cpus.iter().flat_map(|cpu| self.root.glob(&format!("{before}/cpu{cpu}/{after}"))).collect())
    }

    fn meets(&self, path: &str, test: &Where) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text = self.root.read(&format!("{folder}/{}", test.file)).unwrap_or_default();
        regex::Regex::new(&test.matches).is_ok_and(|regex| regex.is_match(text.trim()))
    }

    fn one_file(&self, at: At<'_>, knob: &FileKnob, path: &str) -> Examined {
        let place = Place::File { path: path.to_owned() };
        // A value that the user gave must match exactly.
        let (compare, stricter) = match at.instead {
            Some(_) => (Compare::Equal, &[][..]),
            None => (knob.compare, &knob.stricter[..]),
        };
        let want = at.fill(&knob.want).map(|want| self.for_each_element(path, compare, want));
        let look = self.see(place, want, compare, knob.optional).or_stricter(stricter);
        let mut look = self.unless_writable(look, path, "its mode lets no one write it, not even root");
        if let Some(place_state) = look.place_state.as_mut().filter(|_| !knob.group.is_empty()) {
            place_state.group = knob.group.clone();
            if !place_state.group.iter().any(|one| one == path) {
                place_state.group.push(path.to_owned());
            }
        }
        if let Some(place_state) = look.place_state.as_mut() {
            place_state.dependents = self.dependents(knob, path);
        }
        match &knob.in_bytes {
            Some(bytes) if at.instead.is_none() => self.unless_in_bytes(look, bytes),
            _ => look,
        }
    }

    /// A module's parameter may be an array with a number for each device. One number would set only the first.
    fn for_each_element(&self, path: &str, compare: Compare, want: String) -> String {
        let is_array = compare == Compare::AtMostNotZero && path.starts_with("/sys/module/");
        let elements = self.root.read(path).map_or(1, |now| now.trim().split(',').count());
        if is_array { vec![want; elements].join(",") } else { want }
    }

    /// The dependents that can be written.
    fn dependents(&self, knob: &FileKnob, path: &str) -> Vec<String> {
        let is_writable = |one: &String| {
            let facts = fs::metadata(self.root.path(one));
            facts.is_ok_and(|facts| facts.is_file() && facts.mode() & 0o222 != 0)
        };
        let found: BTreeSet<String> =
            knob.dependents_of(path).flat_map(|pattern| self.root.glob(&pattern)).collect();
        let others = found.into_iter().filter(|one| one != path && deny::file(one).is_ok());
        others.filter(is_writable).collect()
    }

    /// Of a limit in percent of memory and the same one in bytes the kernel uses the one that was written last, and shows the other
    /// as 0. What was set in bytes counts if it is no more memory than the wanted percentage. If both are 0, the limit is no memory at all.
    fn unless_in_bytes(&self, mut look: Examined, path: &str) -> Examined {
        let number = |text: String| text.trim().parse::<u128>().ok();
        let bytes = self.root.read(path).ok().and_then(number);
        let Some((bytes, place_state)) = bytes.zip(look.place_state.as_mut()) else { return look };
        if bytes == 0 {
            if place_state.now.clone().and_then(number) == Some(0) {
                place_state.done = true;
                look.verdict = Verdict::Done;
            }
            return look;
        }
        let percent = place_state.want.as_deref().and_then(|want| want.trim().parse::<u128>().ok());
        let (verdict, why) = match percent.zip(self.memory()) {
            None => (Verdict::Unseen, format!("{path} has {bytes}, and the size of the memory is not known")),
            Some((percent, memory)) if bytes.saturating_mul(100) <= percent.saturating_mul(memory) => {
                (Verdict::Done, format!("{path} has {bytes}, which is at most {percent} % of memory"))
            }
            Some((percent, _)) => {
                (Verdict::Not, format!("{path} has {bytes}, which is more than {percent} % of memory"))
            }
        };
        look.verdict = verdict;
        look.why = Some(why.clone());
        place_state.why = Some(why);
        place_state.done = verdict == Verdict::Done;
        if verdict != Verdict::Not {
            // There is nothing to write: neither now nor at boot.
            place_state.want = None;
        }
        look
    }

    /// The memory of this machine, in bytes.
    fn memory(&self) -> Option<u128> {
        let text = self.root.read("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u128 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kilobytes.checked_mul(1024).filter(|bytes| *bytes > 0)
    }
}

fn no_file(knob: &FileKnob, some: bool) -> Examined {
    let verdict = if knob.optional { Verdict::NotMissed } else { Verdict::Missing };
    let why = match &knob.r#where {
        Some(test) if some => {
            format!("none of {} has a `{}` that matches `{}`", knob.path, test.file, test.matches)
        }
        _ => format!("{} is not there", knob.path),
    };
    Examined::bare(verdict, why)
}
