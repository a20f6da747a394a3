//! Profiles: mitigations of quell's catalogue that belong together on one kind of node (`crates/tune/catalogue/profiles`).

use serde::Deserialize;

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
    /// The ids of its mitigations, in any order: a plan orders them.
    pub mitigations: Vec<String>,
    /// Sources of the choice.
    pub provenance: Vec<String>,
}

impl Profile {
    /// All profiles, by name.
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

    /// The profile with this name.
    pub fn get(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| profile.name == name)
    }
}
