//! Loads the catalogue, and rejects invalid entries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::site::read_site;
use super::{EACH_CPU, Fills, Knob, Mitigation, Part, Risk};
use crate::built_in::{FILES, boot_options};
use crate::deny;
use crate::suggestions;

/// Why a catalogue cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct CatalogueError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// All known mitigations, by id.
#[derive(Clone, Debug)]
pub struct Catalogue {
    by_id: BTreeMap<String, Mitigation>,
}

impl Catalogue {
    /// quell's own catalogue.
    ///
    /// # Panics
    /// Never: the tests read every file.
    pub fn built_in() -> Self {
        let mut catalogue = Self { by_id: BTreeMap::new() };
        for (name, text) in FILES {
            if let Err(error) = catalogue.add(Path::new(name), text) {
                unreachable!("{error}");
            }
        }
        catalogue
    }

    /// quell's own catalogue plus the files `*.toml` of a site's folder. A site's entry replaces the one of quell's with the same id. A
    /// folder that does not exist adds nothing.
    ///
    /// # Errors
    /// The first file that cannot be read, is not a mitigation, names one that does not exist, or can be written by users other than root
    /// if root reads it: its contents are written into the kernel.
    pub fn with_site(folder: &Path) -> Result<Self, CatalogueError> {
        let mut catalogue = Self::built_in();
        for (file, text) in read_site(folder)? {
            catalogue.add(&file, &text)?;
        }
        let failed = |reason: String| CatalogueError { file: folder.to_owned(), reason };
        catalogue.check_references().map_err(failed)?;
        Ok(catalogue)
    }

    fn add(&mut self, file: &Path, text: &str) -> Result<(), CatalogueError> {
        let failed = |reason: String| CatalogueError { file: file.to_owned(), reason };
        let mitigation: Mitigation = toml::from_str(text).map_err(|e| failed(e.to_string()))?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        if *stem != mitigation.id {
            return Err(failed(format!(
                "it is named {stem}, and holds the mitigation `{}`: rename one of them",
                mitigation.id
            )));
        }
        check(&mitigation).map_err(failed)?;
        self.by_id.insert(mitigation.id.clone(), mitigation);
        Ok(())
    }

    /// The mitigation with this id.
    pub fn get(&self, id: &str) -> Option<&Mitigation> {
        self.by_id.get(id)
    }

    /// An error for an unknown id, with similar ids.
    pub fn unknown(&self, id: &str) -> String {
        suggestions::unknown(id, self.by_id.keys().map(String::as_str))
    }

    /// All, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Mitigation> {
        self.by_id.values()
    }

    /// These, and the mitigations without which they are changed back.
    pub fn and_what_keeps(&self, ids: &[String]) -> Vec<String> {
        let kept = ids.iter().filter_map(|id| self.get(id)).flat_map(|one| &one.undone_without);
        ids.iter().chain(kept).cloned().collect()
    }

    fn check_references(&self) -> Result<(), String> {
        for one in self.iter() {
            let before = one.after.iter().chain(&one.undone_without);
            let named = before.chain(&one.conflicts).chain(&one.see_also).chain(&one.successor);
            if let Some(stranger) = named.into_iter().find(|id| !self.by_id.contains_key(*id)) {
                return Err(format!("`{}` names `{stranger}`, which is not in the catalogue", one.id));
            }
        }
        let mut done = BTreeSet::new();
        self.iter().try_for_each(|one| self.no_circle(one, &mut Vec::new(), &mut done))
    }

    fn no_circle<'a>(
        &'a self,
        one: &'a Mitigation,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Result<(), String> {
        if path.contains(&one.id.as_str()) {
            return Err(format!("`{}` comes after itself: {} → {}", one.id, path.join(" → "), one.id));
        }
        if done.insert(&one.id) {
            path.push(&one.id);
            for before in one.after.iter().filter_map(|id| self.get(id)) {
                self.no_circle(before, path, done)?;
            }
            path.pop();
        }
        Ok(())
    }
}

/// Fills in placeholder values where the real ones are not known yet, so that the rest of a text can be checked.
struct Anything;

impl Fills for Anything {
    fn list(&self, _part: Part) -> Result<String, String> {
        Ok("0".into())
    }

    fn mask(&self, _part: Part) -> Result<String, String> {
        Ok("1".into())
    }

    fn value(&self) -> Result<String, String> {
        Ok("0".into())
    }
}

fn check(one: &Mitigation) -> Result<(), String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if one.id.is_empty() || one.id.len() > 64 || !one.id.chars().all(good) {
        return Err(format!("`{}` is not an id: use lower-case letters, digits and hyphens", one.id));
    }
    let by_hand = one.knob.iter().all(|knob| matches!(knob, Knob::ByHand(_)));
    if one.risk == Risk::External && !by_hand {
        return Err("its risk is external, so its knobs must have the kind by-hand".into());
    }
    for knob in &one.knob {
        match knob {
            Knob::File(file) => {
                if file.cpus != Part::All && !file.path.contains(EACH_CPU) {
                    return Err(format!(
                        "`{}` is not of a CPU, so it has no `cpus`: write `/cpu*/`",
                        file.path
                    ));
                }
                std::iter::once(&file.path).chain(&file.group).try_for_each(|path| deny::file(path))?;
                file.dependents_of(&file.path).try_for_each(|path| deny::file(&path))?;
            }
            Knob::DropIn(file) => {
                let text = file.content.fill(&Anything)?;
                deny::contents(&file.path, &text)?;
            }
            Knob::Boot(boot) if !boot_options().contains(&boot.option) => {
                return Err(format!(
                    "`{}` is not a boot option that quell knows to be harmless",
                    boot.option
                ));
            }
            Knob::Unit(unit) => deny::unit(&unit.name)?,
            Knob::Irq(irq) => regex(&irq.matches)?,
            Knob::KernelThread(threads) => regex(&threads.matches)?,
            _ => {}
        }
    }
    Ok(())
}

fn regex(text: &str) -> Result<(), String> {
    regex::Regex::new(text).map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn quells_own_files_are_mitigations_that_name_each_other() {
        for (name, text) in FILES {
            let mut catalogue = Catalogue { by_id: BTreeMap::new() };
            catalogue.add(Path::new(name), text).unwrap();
        }
        Catalogue::built_in().check_references().unwrap();
    }

    #[test]
    fn a_site_gets_no_further_than_a_plan_would() {
        let head = "id = \"x\"\ntitle = \"t\"\ncategory = \"boot\"\nwhat = \"w\"\ncaveat = \"c\"\nrisk = \"low\"\n\
            kernel = \"any\"\nprovenance = []\nnoise = []\n[[knob]]\n";
        let add = |knob: &str| {
            let mut catalogue = Catalogue { by_id: BTreeMap::new() };
            catalogue.add(Path::new("x.toml"), &format!("{head}{knob}")).map_err(|error| error.reason)
        };
        for (knob, part) in [
            ("kind = \"file\"\npath = \"/proc/sys/vm/x\"\nwant = \"1\"\ncpus = \"compute\"", "`cpus`"),
            ("kind = \"file\"\npath = \"/sys//x\"\nwant = \"1\"", "plain path"),
            (
                "kind = \"file\"\npath = \"/sys/x/cpu*/y\"\nwant = \"1\"\ngroup = [\"/proc/sys//x\"]",
                "plain path",
            ),
            ("kind = \"file\"\npath = \"/sys/x\"\nwant = \"1\"\ndependents = [\"../y\"]", "plain path"),
            (
                "kind = \"file\"\npath = \"/sys/x\"\nwant = \"1\"\ndependents = [\"/etc/passwd\"]",
                "/etc/passwd",
            ),
            ("kind = \"boot\"\noption = \"init\"\nwant = \"/x\"", "not a boot option"),
            (
                "kind = \"drop-in\"\npath = \"/etc/systemd/system/x.service.d/90-quell.conf\"\ncontent = \"[Service]\\nExecStart=/x\"",
                "not a line that quell puts",
            ),
            (
                "kind = \"drop-in\"\npath = \"/etc/udev/rules.d/90-quell.rules\"\ncontent = \"\"",
                "not a drop-in",
            ),
        ] {
            let reported = add(knob).unwrap_err();
            assert!(reported.contains(part), "{knob}: {reported}");
        }
        for knob in [
            "kind = \"file\"\npath = \"/sys/x/cpu*/y\"\nwant = \"1\"\ncpus = \"compute\"",
            "kind = \"boot\"\noption = \"nohz_full\"\nwant = \"${compute}\"",
            "kind = \"drop-in\"\npath = \"/etc/systemd/system/x.service.d/90-quell.conf\"\ncontent = \"[Service]\\nCPUAffinity=${housekeeping}\"",
        ] {
            assert_eq!(add(knob), Ok(()), "{knob}");
        }
    }
}
