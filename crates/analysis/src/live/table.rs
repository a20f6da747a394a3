//! Sums per source, in a table of bounded size.

use std::collections::HashMap;
use std::sync::Arc;

use quell_recording::{Interval, Nanos, Source, SourceKind};

use super::document::{Figures, SourceNow};
use crate::attribution::Class;

/// Maximum number of sources with a row of their own. Processes choose their names: without a limit they could fill the memory.
pub(super) const MOST_SOURCES: usize = 1024;
/// Maximum number of names that are kept of what one source worked on.
const MOST_DETAILS: usize = 32;

/// A row's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A source, and whether it is quell itself.
    Source(Source, bool),
    /// Time that is not attributed.
    Unattributed,
    /// Tasks that lost their own row, or arrived when the table was full.
    Others,
}

impl Key {
    /// The key of an interval; `own_pid` is quell's process.
    pub fn from_interval(one: &Interval, own_pid: u32) -> Self {
        Self::Source(one.source.clone(), one.source.kind() == SourceKind::Task && one.pid == own_pid)
    }

    pub fn class(&self) -> Class {
        match self {
            Self::Source(source, own) => Class::from_source(source, *own),
            Self::Unattributed => Class::Unattributed,
            Self::Others => Class::Type2,
        }
    }

    pub fn name(&self) -> String {
        match self {
            Self::Source(source, _) => source.to_string(),
            Self::Unattributed => "unattributed".into(),
            Self::Others => "other tasks".into(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    ns: u64,
    max_ns: u64,
    in_detours_ns: u64,
}

impl Sum {
    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.in_detours_ns = self.in_detours_ns.saturating_add(other.in_detours_ns);
    }

    fn figures(self, span_ns: u64, cpus: usize, probed: bool) -> Figures {
        let watched = span_ns as f64 * cpus as f64;
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Figures {
            percent: 100.0 * ratio(self.ns as f64, watched),
            count: self.count,
            per_s: 1e9 * ratio(self.count as f64, span_ns as f64),
            time_ns: self.ns,
            mean_ns: ratio(self.ns as f64, self.count as f64),
            max_ns: self.max_ns,
            in_detours_ns: probed.then_some(self.in_detours_ns),
        }
    }
}

#[derive(Debug, Default)]
struct Row {
    now: Sum,
    ever: Sum,
    details: HashMap<Arc<str>, u64>,
}

impl Row {
    fn both(&mut self) -> [&mut Sum; 2] {
        [&mut self.now, &mut self.ever]
    }

    fn detail(&self) -> Option<String> {
        self.details.iter().max_by_key(|(name, ns)| (**ns, *name)).map(|(name, _)| name.to_string())
    }
}

/// All sources.
#[derive(Debug, Default)]
pub(super) struct Table(HashMap<Key, Row>);

impl Table {
    /// Counts one event of `ns`.
    pub fn add(&mut self, key: Key, ns: u64, detail: Option<&Arc<str>>) {
        let row = self.row(key);
        for sum in row.both() {
            sum.count += 1;
            sum.ns = sum.ns.saturating_add(ns);
            sum.max_ns = sum.max_ns.max(ns);
        }
        if let Some(detail) = detail
            && (row.details.len() < MOST_DETAILS || row.details.contains_key(detail))
        {
            *row.details.entry(Arc::clone(detail)).or_default() += ns;
        }
    }

    /// Attributes a part of a detour to a source.
    pub fn blame(&mut self, key: Key, ns: u64) {
        for sum in self.row(key).both() {
            sum.in_detours_ns = sum.in_detours_ns.saturating_add(ns);
        }
    }

    fn row(&mut self, key: Key) -> &mut Row {
        let full = self.0.len() >= MOST_SOURCES && !self.0.contains_key(&key);
        self.0.entry(if full { Key::Others } else { key }).or_default()
    }

    /// All rows with their figures in the interval and since the start, by time in the interval, quell's own last.
    pub fn rows(&self, interval: Nanos, all: Nanos, cpus: usize, probed: bool) -> Vec<SourceNow> {
        let row = |(key, row): (&Key, &Row)| SourceNow {
            source: key.name(),
            class: key.class(),
            now: row.now.figures(interval.as_nanos(), cpus, probed),
            since_start: row.ever.figures(all.as_nanos(), cpus, probed),
            detail: row.detail(),
        };
        let mut rows: Vec<SourceNow> = self.0.iter().map(row).collect();
        rows.sort_by(|a, b| {
            let key = |row: &SourceNow| {
                let own = row.class == Class::Own;
                (own, std::cmp::Reverse((row.now.time_ns, row.since_start.time_ns)))
            };
            key(a).cmp(&key(b)).then_with(|| a.source.cmp(&b.source))
        });
        rows
    }

    /// Begins a new interval. If the table is more than half full, it removes tasks that did nothing in the last interval, those with the
    /// least time first: only tasks can have any number of names.
    pub fn turn(&mut self) {
        if self.0.len() > MOST_SOURCES / 2 {
            self.make_room();
        }
        self.0.values_mut().for_each(|row| row.now = Sum::default());
    }

    fn make_room(&mut self) {
        let idle = |(key, row): &(&Key, &Row)| {
            matches!(key, Key::Source(Source::Task(_), false)) && row.now.count == 0
        };
        let mut idle: Vec<(u64, Key)> =
            self.0.iter().filter(idle).map(|(key, row)| (row.ever.ns, key.clone())).collect();
        idle.sort_by_key(|(ns, _)| *ns);
        let surplus = self.0.len() - MOST_SOURCES / 4;
        for (_, key) in idle.into_iter().take(surplus) {
            if let Some(gone) = self.0.remove(&key) {
                self.0.entry(Key::Others).or_default().ever.merge(gone.ever);
            }
        }
    }
}
