//! The kinds of noise that detours are divided into, grouped by name.

use std::collections::HashMap;
use std::sync::Arc;

use quell_recording::{Interval, Source, SourceKind};

/// Name of time that is not attributed, and of noise whose sources were not recorded.
pub const UNATTRIBUTED: &str = "unattributed";

/// What took part of a detour: a source with what it worked on, a component of a model, or an unknown source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The source, if it is known.
    pub source: Option<Source>,
    /// What it worked on, if that is known.
    pub detail: Option<Arc<str>>,
    /// The name under which it is grouped; see [`family`].
    pub family: Arc<str>,
}

impl Kind {
    pub(crate) fn from_interval(interval: &Interval) -> Self {
        let family = family(&interval.source).into();
        Self {
            source: Some(interval.source.clone()),
            detail: interval.detail.as_deref().map(Arc::from),
            family,
        }
    }

    /// A kind with only a name; a name in the form of a source becomes that source.
    pub(crate) fn named(name: &str) -> Self {
        let source: Option<Source> = name.parse().ok();
        let family = source.as_ref().map_or_else(|| name.to_owned(), family);
        Self { source, detail: None, family: family.into() }
    }
}

/// The name of a source without the numbers that distinguish the workers of CPUs: `task:kworker/1:2` becomes `task:kworker`.
pub fn family(source: &Source) -> String {
    match (source.kind(), source.name()) {
        (SourceKind::Task, Some(name)) => {
            format!("task:{}", name.split_once('/').map_or(name, |(first, _)| first))
        }
        _ => source.to_string(),
    }
}

/// Kinds by number, in order of appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    all: Vec<Kind>,
    numbers: HashMap<Kind, u32>,
}

impl Kinds {
    /// The number of a kind; the next number if the kind is new.
    pub(crate) fn number(&mut self, kind: Kind) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(kind).or_insert_with_key(|kind| {
            self.all.push(kind.clone());
            next
        })
    }

    pub(crate) fn into_vec(self) -> Vec<Kind> {
        self.all
    }
}
