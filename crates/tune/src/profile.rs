//! Profiles: mitigations that belong together on one kind of node. quell's are in `crates/tune/catalogue/profiles`, a site's in
//! the folder `profiles` within
//! the site's folder of mitigations.
//!
//! A profile may include others, leave some of their mitigations out, set values, depend on facts of the machine, and name alternatives of which
//! the first that this machine has is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::catalogue::{Catalogue, CatalogueError, read_site};
use super::facts::{self, Facts};
use super::root::{Root, fits};

include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// A set of mitigations for one kind of node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// Its name, which is the file's.
    #[serde(skip)]
    pub name: String,
    /// One line, for tables.
    pub title: String,
    /// Its purpose, and what it does not touch.
    pub what: String,
    /// Profiles that it extends, by name.
    #[serde(default)]
    pub include: Vec<String>,
    /// The ids of its mitigations, in any order: a plan orders them.
    #[serde(default)]
    pub mitigations: Vec<String>,
    /// Alternatives: of each list, the first that this machine has.
    #[serde(default)]
    pub first_of: Vec<Vec<String>>,
    /// Ids that it leaves out, of those that it includes.
    #[serde(default)]
    pub without: Vec<String>,
    /// Values, by mitigation, as with `--set`.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// What is added or left out on some machines.
    #[serde(default)]
    pub when: Vec<When>,
    /// Sources of the choice.
    #[serde(default)]
    pub provenance: Vec<String>,
}

/// A part of a profile for some machines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct When {
    /// The machines.
    pub is: Condition,
    /// See [`Profile::mitigations`].
    #[serde(default)]
    pub mitigations: Vec<String>,
    /// See [`Profile::first_of`].
    #[serde(default)]
    pub first_of: Vec<Vec<String>>,
    /// See [`Profile::without`].
    #[serde(default)]
    pub without: Vec<String>,
    /// See [`Profile::values`].
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

/// Facts of a machine, all of which must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Condition {
    /// The host's name, in which `*` stands for any text.
    pub host: Option<String>,
    /// The processor is one of these, as in `uname -m`.
    #[serde(default)]
    pub arch: Vec<String>,
    /// The kernel is this one or later, as in `6.1`.
    pub kernel_from: Option<String>,
    /// The kernel is earlier than this one.
    pub kernel_before: Option<String>,
    /// It has this many CPUs or more online.
    pub cpus_from: Option<usize>,
    /// Whether a core has several hardware threads online.
    pub smt: Option<bool>,
    /// Whether it has several NUMA nodes.
    pub numa: Option<bool>,
    /// Whether it runs under a hypervisor. Where that is not known, neither holds.
    pub guest: Option<bool>,
}

impl Condition {
    /// Whether a machine is one of those.
    ///
    /// # Errors
    /// A kernel version that is none.
    fn holds(&self, root: &Root, facts: &Facts) -> Result<bool, String> {
        let kernel = version(&facts.kernel).unwrap_or_default();
        let wanted = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => {
                version(text).map(Some).ok_or_else(|| format!("`{text}` is not a kernel version, as in 6.1"))
            }
        };
        let (from, before) = (wanted(&self.kernel_from)?, wanted(&self.kernel_before)?);
        let smt = facts.cores.iter().any(|threads| threads.len() > 1);
        Ok(self.host.as_ref().is_none_or(|pattern| fits(pattern, &facts.host))
            && facts.is_one_of(&self.arch)
            && from.is_none_or(|from| kernel >= from)
            && before.is_none_or(|before| kernel < before)
            && self.cpus_from.is_none_or(|least| facts.online.len() >= least)
            && self.smt.is_none_or(|wanted| wanted == smt)
            && self.numa.is_none_or(|wanted| wanted == (facts.numa.len() > 1))
            && self.guest.is_none_or(|wanted| facts::is_guest(root) == Some(wanted)))
    }
}

/// The numbers at the beginning of a kernel's release: `6.1` of `6.1.0-28-amd64`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What a profile is on one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Ids of mitigations.
    pub mitigations: Vec<String>,
    /// Alternatives of which the first that is here is to be taken.
    pub first_of: Vec<Vec<String>>,
    /// Values, by mitigation.
    pub values: BTreeMap<String, String>,
}

impl Resolved {
    /// The mitigations, with one of each list of alternatives: the first that is here, or else none.
    pub fn chosen(&self, is_here: impl Fn(&str) -> bool) -> Vec<String> {
        let firsts = self.first_of.iter().filter_map(|list| list.iter().find(|id| is_here(id)));
        let mut seen = BTreeSet::new();
        self.mitigations.iter().chain(firsts).filter(|id| seen.insert(*id)).cloned().collect()
    }

    /// All ids that occur.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.mitigations.iter().chain(self.first_of.iter().flatten())
    }

    fn add(&mut self, mitigations: &[String], first_of: &[Vec<String>], values: &BTreeMap<String, String>) {
        self.mitigations.extend(mitigations.iter().cloned());
        self.first_of.extend(first_of.iter().cloned());
        self.values.extend(values.clone());
    }

    fn drop(&mut self, without: &[String]) {
        self.mitigations.retain(|id| !without.contains(id));
        self.first_of.iter_mut().for_each(|list| list.retain(|id| !without.contains(id)));
        self.first_of.retain(|list| !list.is_empty());
        self.values.retain(|id, _| !without.contains(id));
    }
}

/// quell's profiles, and a site's.
#[derive(Clone, Debug)]
pub struct Profiles {
    by_name: BTreeMap<String, Profile>,
}

impl Profiles {
    /// quell's profiles, and the files `profiles/*.toml` in a site's folder, which replace those of the same name. A folder that does not exist adds
    /// nothing.
    ///
    /// # Errors
    /// The first file that cannot be read, is no profile, or can be written by users other than root if root reads it.
    pub fn with_site(site: &Path) -> Result<Self, CatalogueError> {
        let folder = &site.join("profiles");
        let mut by_name: BTreeMap<String, Profile> =
            Profile::all().into_iter().map(|profile| (profile.name.clone(), profile)).collect();
        for (file, text) in read_site(folder)? {
            let profile: Profile = toml::from_str(&text)
                .map_err(|error| CatalogueError { file: file.clone(), reason: error.to_string() })?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            by_name.insert(name.clone(), Profile { name, ..profile });
        }
        Ok(Self { by_name })
    }

    /// The mitigations of a profile on a machine.
    ///
    /// # Errors
    /// A name that is none, profiles that include each other, an id that the catalogue does not have.
    pub fn resolve(
        &self,
        name: &str,
        root: &Root,
        facts: &Facts,
        catalogue: &Catalogue,
    ) -> Result<Resolved, String> {
        let resolved = self.expand(name, root, facts, &mut Vec::new())?;
        let stranger =
            resolved.ids().chain(resolved.values.keys()).find(|id| catalogue.get(id).is_none()).cloned();
        if let Some(stranger) = stranger {
            return Err(format!("profile {name}: {}", catalogue.unknown(&stranger)));
        }
        Ok(resolved)
    }

    fn expand(
        &self,
        name: &str,
        root: &Root,
        facts: &Facts,
        above: &mut Vec<String>,
    ) -> Result<Resolved, String> {
        let Some(profile) = self.by_name.get(name) else {
            let names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            let name = quell_recording::one_line(name);
            return Err(format!("`{name}` is not a profile: choose one of {}", names.join(", ")));
        };
        if above.iter().any(|one| one == name) {
            return Err(format!("profiles include each other: {} → {name}", above.join(" → ")));
        }
        above.push(name.to_owned());
        let mut resolved = Resolved::default();
        for included in &profile.include {
            let of = self.expand(included, root, facts, above)?;
            resolved.add(&of.mitigations, &of.first_of, &of.values);
        }
        above.pop();
        resolved.drop(&profile.without);
        resolved.add(&profile.mitigations, &profile.first_of, &profile.values);
        for when in &profile.when {
            if when.is.holds(root, facts).map_err(|why| format!("profile {name}: {why}"))? {
                resolved.drop(&when.without);
                resolved.add(&when.mitigations, &when.first_of, &when.values);
            }
        }
        Ok(resolved)
    }
}

impl Profile {
    /// quell's profiles, by name.
    ///
    /// # Panics
    /// Never: the tests read every file.
    pub fn all() -> Vec<Self> {
        let read = |(file, text): &(&str, &str)| match toml::from_str::<Self>(text) {
            Ok(profile) => Self { name: file.trim_end_matches(".toml").to_owned(), ..profile },
            Err(error) => unreachable!("{file}: {error}"),
        };
        PROFILES.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests;
