//! Kernel files: which files a path with wildcards stands for on this machine.

use super::look::{At, Examined, Examiner, Verdict};
use crate::catalogue::{Compare, EACH_CPU, FileKnob, Where};
use crate::place::Place;

impl Examiner<'_> {
    pub(super) fn file(&self, at: At<'_>, knob: &FileKnob) -> Vec<Examined> {
        let found = match self.paths(at, knob) {
            Ok(found) => found,
            Err(why) => return vec![Examined::bare(Verdict::Unseen, why)],
        };
        let fits = |path: &&String| knob.r#where.as_ref().is_none_or(|test| self.meets(path, test));
        let looks: Vec<Examined> =
            found.iter().filter(fits).map(|path| self.one_file(at, knob, path)).collect();
        match looks.is_empty() {
            true => vec![no_file(knob, !found.is_empty())],
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
        let look = self.see(place, at.fill(&knob.want), compare, knob.optional).or_stricter(stricter);
        let mut look = self.unless_writable(look, path, "its mode lets no one write it, not even root");
        if let Some(place_state) = look.place_state.as_mut().filter(|_| !knob.group.is_empty()) {
            place_state.group = knob.group.clone();
            if !place_state.group.iter().any(|one| one == path) {
                place_state.group.push(path.to_owned());
            }
        }
        look
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
