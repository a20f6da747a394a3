//! What detours are shared out among, summed up under one name.

use std::collections::HashMap;
use std::sync::Arc;

use quell_recording::{Interval, Source, SourceKind};

/// What nothing explains, and noise whose sources nobody recorded.
pub const UNATTRIBUTED: &str = "unattributed";

/// What took part of a detour: a source at work on something, a model's component, or nobody known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The source, where it is known.
    pub source: Option<Source>,
    /// What it worked at, where that is known.
    pub detail: Option<Arc<str>>,
    /// The name under which it is summed up; see [`family`].
    pub family: Arc<str>,
}

impl Kind {
    pub(crate) fn of(interval: &Interval) -> Self {
        let family = family(&interval.source).into();
        Self {
            source: Some(interval.source.clone()),
            detail: interval.detail.as_deref().map(Arc::from),
            family,
        }
    }

    /// One that has but a name; a name of a source's form is that source.
    pub(crate) fn named(name: &str) -> Self {
        let source: Option<Source> = name.parse().ok();
        let family = source.as_ref().map_or_else(|| name.to_owned(), family);
        Self { source, detail: None, family: family.into() }
    }
}

/// The name of a source without the numbers that tell one CPU's worker from another's: `task:kworker/1:2` is `task:kworker`.
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
    /// The number of a kind, which is the next one if it is new.
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
