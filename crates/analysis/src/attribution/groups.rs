//! Count, time and period of intervals that share a source or a task.

use std::collections::BTreeMap;
use std::sync::Arc;

use quell_recording::{Cpu, Detour, Interval, Nanos, SourceKind, Span, Trace};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::Side;
use crate::periods::{FEWEST_CYCLES, periods};

/// A name with its count and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Number of occurrences.
    pub count: u64,
    /// Sum of net times.
    pub total_ns: u64,
}

/// A period belongs to the group if at least this share of the intervals is in its train.
const GOOD_SHARE: f64 = 0.5;

/// Maximum number of groups that are searched for a period: those with the most intervals.
const MOST_SEARCHED: usize = 64;

/// Maximum number of names that are kept per group.
const MOST_NAMES: usize = 8;

/// Count, sum, shortest and longest time, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub count: u64,
    pub total_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
}

impl Tally {
    pub fn add(&mut self, ns: u64) {
        self.merge(Self { count: 1, total_ns: ns, min_ns: ns, max_ns: ns });
    }

    pub fn merge(&mut self, other: Self) {
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }

    pub fn mean_ns(self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total_ns as f64 / self.count as f64 }
    }
}

/// Intervals with the same key.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub tally: Tally,
    pub in_detours_ns: u64,
    /// The task of all of them; `None` if they are of several tasks, or of none.
    pub pid: Option<u32>,
    pub period_ns: Option<f64>,
    details: Names,
    causes: Names,
    /// The starts of the intervals on each CPU.
    starts: Vec<(Cpu, Span, Vec<Nanos>)>,
}

type Names = BTreeMap<Arc<str>, Tally>;

impl Group {
    pub fn details(&self) -> Vec<Named> {
        most(&self.details)
    }

    pub fn causes(&self) -> Vec<Named> {
        most(&self.causes)
    }

    fn add(&mut self, one: &Interval, cpu: Cpu, span: Span) {
        let ns = one.net.as_nanos();
        let pid = Some(one.pid).filter(|&pid| pid != 0);
        self.pid = if self.tally.count == 0 || self.pid == pid { pid } else { None };
        self.tally.add(ns);
        for (names, name) in [(&mut self.details, &one.detail), (&mut self.causes, &one.cause)] {
            if let Some(name) = name {
                names.entry(Arc::clone(name)).or_default().add(ns);
            }
        }
        match self.starts.last_mut() {
            Some((last, _, starts)) if *last == cpu => starts.push(one.start),
            _ => self.starts.push((cpu, span, vec![one.start])),
        }
    }

    /// The period on the CPU where it has the most events.
    fn period(&self) -> Option<f64> {
        let of_cpu = |(cpu, span, starts): &(Cpu, Span, Vec<Nanos>)| {
            // Only the starts matter here: with equal durations, all events are searched in one band.
            let detour = |&start: &Nanos| Detour { start, duration: Nanos::from_nanos(1), own: false };
            let trace = Trace { cpu: *cpu, span: *span, detours: starts.iter().map(detour).collect() };
            let strongest = periods(&trace).into_iter().max_by_key(|period| period.events)?;
            let good = strongest.events as f64 >= GOOD_SHARE * starts.len() as f64;
            good.then_some((strongest.events, strongest.period_ns))
        };
        self.starts.iter().filter_map(of_cpu).max_by_key(|found| found.0).map(|found| found.1)
    }
}

fn most(names: &Names) -> Vec<Named> {
    let named = |(name, tally): (&Arc<str>, &Tally)| Named {
        name: name.to_string(),
        count: tally.count,
        total_ns: tally.total_ns,
    };
    let mut all: Vec<Named> = names.iter().map(named).collect();
    all.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(a.name.cmp(&b.name)));
    all.truncate(MOST_NAMES);
    all
}

/// All intervals by `key`, without those that have none and without steal windows in which nothing was stolen.
pub(super) fn groups<K: Ord + Send + Sync>(
    sides: &[Side],
    key: impl Fn(&Interval) -> Option<K>,
) -> BTreeMap<K, Group> {
    let mut groups: BTreeMap<K, Group> = BTreeMap::new();
    for side in sides {
        for one in side.intervals.iter().filter(|one| counts(one)) {
            if let Some(key) = key(one) {
                groups.entry(key).or_default().add(one, side.cpu, side.span);
            }
        }
        for (one, ns) in side.blamed() {
            if let Some(group) = key(one).and_then(|key| groups.get_mut(&key)) {
                group.in_detours_ns = group.in_detours_ns.saturating_add(ns);
            }
        }
    }
    groups
}

/// Searches for the period of each group that may have one.
pub(super) fn find_periods<K: Ord + Send + Sync>(groups: &mut BTreeMap<K, Group>, may: impl Fn(&K) -> bool) {
    let mut searched: Vec<(&K, &mut Group)> =
        groups.iter_mut().filter(|(key, group)| may(key) && group.tally.count >= FEWEST_CYCLES).collect();
    searched.sort_by_key(|(_, group)| std::cmp::Reverse(group.tally.count));
    searched.truncate(MOST_SEARCHED);
    searched.par_iter_mut().for_each(|(_, group)| group.period_ns = group.period());
}

fn counts(one: &Interval) -> bool {
    one.source.kind() != SourceKind::Steal || one.net > Nanos::ZERO
}
