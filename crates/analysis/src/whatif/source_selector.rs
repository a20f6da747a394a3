//! Selects the noise of a what-if.

use std::fmt;
use std::str::FromStr;

use quell_recording::SourcePattern;

use crate::attribution::{Kind, UNATTRIBUTED};
use crate::predict::NodeNoise;

use super::attributed_noise::AttributedNoise;

/// A selector of noise, as typed: a pattern of sources (`tick`, `task:^kworker`, `timer:CALLBACK`), `unattributed`, or the name of a model's component.
#[derive(Clone, Debug)]
pub enum SourceSelector {
    /// Sources, or what they worked on.
    Pattern(SourcePattern),
    /// Time that is not attributed.
    Unattributed,
    /// A family of sources by its full name, or a model's component.
    Named(String),
}

impl SourceSelector {
    /// Whether it selects this kind.
    pub fn matches(&self, kind: &Kind) -> bool {
        match self {
            Self::Pattern(pattern) => {
                kind.source.as_ref().is_some_and(|source| pattern.matches(source, kind.detail.as_deref()))
            }
            Self::Unattributed => *kind.family == *UNATTRIBUTED,
            Self::Named(name) => *kind.family == **name,
        }
    }
}

impl FromStr for SourceSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("no source is named: write `tick`, `task:NAME`, `unattributed` …".into()),
            UNATTRIBUTED => Ok(Self::Unattributed),
            // With a colon, or if it is the name of a kind, it is a pattern or an error.
            _ if text.contains(':') => text.parse().map(Self::Pattern),
            _ => Ok(text.parse().map_or_else(|_| Self::Named(text.to_owned()), Self::Pattern)),
        }
    }
}

impl fmt::Display for SourceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => pattern.fmt(f),
            Self::Unattributed => f.write_str(UNATTRIBUTED),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl AttributedNoise {
    /// The noise without some sources; it is not an error if it does not have them.
    pub fn without(&self, which: &[SourceSelector]) -> NodeNoise {
        let gone = SelectedSources::select(self, which);
        self.weighed(|kind| if gone.has(kind) { 0.0 } else { 1.0 }).noise()
    }
}

/// The selected kinds of one node, by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SelectedSources(Vec<bool>);

impl SelectedSources {
    /// The kinds that any of the selectors matches.
    pub fn select(node: &AttributedNoise, which: &[SourceSelector]) -> Self {
        Self::by(node, |kind| which.iter().any(|one| one.matches(kind)))
    }

    /// The kinds that a mitigation's patterns match.
    pub fn addressed(node: &AttributedNoise, patterns: &[SourcePattern]) -> Self {
        Self::by(node, |kind| {
            let detail = kind.detail.as_deref();
            kind.source.as_ref().is_some_and(|source| patterns.iter().any(|one| one.matches(source, detail)))
        })
    }

    /// The kinds for which `meant` holds.
    pub fn by(node: &AttributedNoise, meant: impl Fn(&Kind) -> bool) -> Self {
        Self(node.kinds().iter().map(meant).collect())
    }

    /// Whether the kind with this number is selected.
    pub fn has(&self, kind: usize) -> bool {
        self.0.get(kind).copied().unwrap_or(false)
    }

    /// Whether no kind is selected.
    pub fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    /// The union of both selections.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self((0..self.0.len().max(other.0.len())).map(|kind| self.has(kind) || other.has(kind)).collect())
    }
}
