//! Counters of noise that only grow, under a bounded number of names, for monitoring systems that poll them.

use std::collections::{BTreeMap, HashMap};

use quell_recording::{Cpu, Detour, Interval, Nanos, SourceKind, one_line};

use crate::whatif::family;

/// Maximum number of names with their own counters; fewer on machines with many CPUs.
const MOST_NAMED: usize = 48;
const FEWEST_NAMED: usize = 16;
/// Target for the number of series of one metric: names times CPUs.
const MOST_SERIES: usize = 10_000;
/// Maximum number of names that wait for their own counters. Processes choose their names: without a limit they could fill the memory.
const MOST_WAITING: usize = 1024;
/// Minimum share of all noise for a name to get its own counters.
const LEAST_SHARE: f64 = 0.001;
/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 64;
/// Name of the sum over names without their own counters.
pub(super) const OTHER: &str = "other";

/// Upper bounds of the histogram's buckets, in ns; one more bucket holds what is above the last.
pub(super) const BOUNDS: [u64; 19] = {
    let mut bounds = [0; 19];
    let (mut at, mut power) = (0, 1_000);
    while at < 19 {
        bounds[at] = power * [10, 25, 50][at % 3] / 10;
        if at % 3 == 2 {
            power *= 10;
        }
        at += 1;
    }
    bounds
};

/// Number of events, and sum of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub count: u64,
    pub ns: u64,
}

impl Sum {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }
}

/// Durations of one kind of source.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    pub buckets: [u64; BOUNDS.len() + 1],
    pub sum: Sum,
}

impl Histogram {
    fn add(&mut self, ns: u64) {
        self.buckets[BOUNDS.partition_point(|&bound| bound < ns)] += 1;
        self.sum.add(ns);
    }
}

/// The noise of this node since the start of the run.
#[derive(Debug)]
pub struct Counters {
    pub(super) cpus: Vec<Cpu>,
    /// For each name its sums, one per CPU. Names are never removed.
    pub(super) named: BTreeMap<String, Vec<Sum>>,
    waiting: HashMap<String, u64>,
    most_named: usize,
    pub(super) kinds: BTreeMap<&'static str, Histogram>,
    pub(super) detours: Option<Vec<Sum>>,
    all_ns: u64,
    own_pid: u32,
    /// The time that quell's own process took, one sum per CPU.
    pub(super) own: Vec<Sum>,
    until: Nanos,
    /// For how long each CPU was observed.
    pub(super) observed: Vec<Nanos>,
    pub(super) lost_intervals: u64,
    pub(super) lost_detours: u64,
}

impl Counters {
    /// Counters for the observed CPUs, in their order, with or without probes. `own_pid` is quell's process.
    pub fn new(cpus: &[Cpu], probed: bool, own_pid: u32) -> Self {
        let none = || vec![Sum::default(); cpus.len()];
        Self {
            cpus: cpus.to_vec(),
            named: [(OTHER.to_owned(), none())].into(),
            waiting: HashMap::new(),
            most_named: (MOST_SERIES / cpus.len().max(1)).clamp(FEWEST_NAMED, MOST_NAMED),
            kinds: BTreeMap::new(),
            detours: probed.then(none),
            all_ns: 0,
            own_pid,
            own: none(),
            until: Nanos::ZERO,
            observed: vec![Nanos::ZERO; cpus.len()],
            lost_intervals: 0,
            lost_detours: 0,
        }
    }

    /// Adds intervals, in any order.
    pub fn intervals(&mut self, rows: impl Iterator<Item = (Cpu, Interval)>) {
        for (cpu, one) in rows {
            let Ok(at) = self.cpus.binary_search(&cpu) else { continue };
            let (kind, ns) = (one.source.kind(), one.net.as_nanos());
            if kind == SourceKind::Task && one.pid == self.own_pid {
                self.own[at].add(ns);
            } else if ns > 0 || kind != SourceKind::Steal {
                self.all_ns = self.all_ns.saturating_add(ns);
                self.kinds.entry(kind.name()).or_default().add(ns);
                // Devices and processes can have any number of names; the other kinds have few.
                let free = matches!(kind, SourceKind::Task | SourceKind::Irq);
                self.count(name(&one), free, at, ns);
            }
        }
    }

    fn count(&mut self, name: String, free: bool, at: usize, ns: u64) {
        if let Some(sums) = self.named.get_mut(&name) {
            return sums[at].add(ns);
        }
        if !free && self.named.len() < self.most_named {
            let mut sums = vec![Sum::default(); self.cpus.len()];
            sums[at].add(ns);
            self.named.insert(name, sums);
            return;
        }
        if let Some(other) = self.named.get_mut(OTHER) {
            other[at].add(ns);
        }
        if let Some(waiting) = self.waiting.get_mut(&name) {
            *waiting = waiting.saturating_add(ns);
        } else if self.waiting.len() < MOST_WAITING {
            self.waiting.insert(name, ns);
        }
    }

    /// Adds detours of the probe.
    pub fn detours(&mut self, rows: &[(Cpu, Detour)]) {
        let Some(detours) = &mut self.detours else { return };
        for (cpu, detour) in rows.iter().filter(|(_, detour)| !detour.own) {
            if let Ok(at) = self.cpus.binary_search(cpu) {
                let ns = detour.duration.as_nanos();
                detours[at].add(ns);
                self.kinds.entry("detour").or_default().add(ns);
            }
        }
    }

    /// The time since the last call, up to `until`, counts as observed on CPUs that were `open`.
    pub fn observe(&mut self, until: Nanos, open: impl Fn(Cpu) -> bool) {
        let interval = until.saturating_sub(self.until);
        self.until = self.until.max(until);
        for (_, observed) in self.cpus.iter().zip(&mut self.observed).filter(|(cpu, _)| open(**cpu)) {
            *observed += interval;
        }
    }

    /// Ends an interval: all rows up to what was observed were added, except for those that were lost. From now on, names that took much time get
    /// their own counters. Their earlier time stays where it was counted, so that no counter decreases.
    pub fn turn(&mut self, lost_intervals: u64, lost_detours: u64) {
        self.lost_intervals = self.lost_intervals.max(lost_intervals);
        self.lost_detours = self.lost_detours.max(lost_detours);
        let least = (LEAST_SHARE * self.all_ns as f64) as u64;
        let mut waiting: Vec<(&String, u64)> = self.waiting.iter().map(|(name, ns)| (name, *ns)).collect();
        waiting.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let free = self.most_named.saturating_sub(self.named.len());
        let chosen: Vec<String> = waiting
            .iter()
            .take_while(|(_, ns)| *ns >= least.max(1))
            .take(free)
            .map(|(name, _)| (*name).clone())
            .collect();
        // The names that took least time make room for others.
        let crowd: Vec<String> =
            waiting.iter().skip(MOST_WAITING / 2).map(|(name, _)| (*name).clone()).collect();
        for name in crowd.iter().chain(&chosen) {
            self.waiting.remove(name);
        }
        for name in chosen {
            self.named.insert(name, vec![Sum::default(); self.cpus.len()]);
        }
    }
}

/// The name under which an interval is counted: without the numbers of workers, and valid as a label. A process must not be able to choose a
/// name that splits another counter in two, or that collides with the sum of the others.
fn name(one: &Interval) -> String {
    one_line(&family(&one.source)).chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_recording::Source;

    use super::*;
    use crate::attribution::fixture::{interval, task, tick};

    fn take(counters: &mut Counters, rows: Vec<Interval>) {
        counters.intervals(rows.into_iter().map(|one| (Cpu(1), one)));
    }

    fn total(counters: &Counters) -> u64 {
        counters.named.values().flatten().map(|sum| sum.ns).sum()
    }

    #[test]
    fn much_gets_a_name_and_nothing_goes_down() {
        let mut counters = Counters::new(&[Cpu(1)], false, 7);
        let rows =
            || vec![tick(0, 100), task("app", 3, 0, 9_000), task("mine", 7, 0, 5), task("rare", 8, 0, 1)];
        take(&mut counters, rows());
        assert_eq!((counters.named["tick"][0].ns, counters.named[OTHER][0].ns), (100, 9_001));
        counters.observe(Nanos::from_nanos(10), |_| true);
        counters.turn(0, 0);
        take(&mut counters, rows());
        assert_eq!((counters.named["task:app"][0].ns, counters.named[OTHER][0].ns), (9_000, 9_002));
        assert!(!counters.named.contains_key("task:rare") && counters.own[0].ns == 10);
        assert_eq!((total(&counters), counters.kinds["task"].sum.count), (18_202, 4));
    }

    #[test]
    fn names_without_number_stay_within_bounds() {
        let mut counters = Counters::new(&[Cpu(1)], false, 0);
        for round in 0..5_u64 {
            for n in 0..500 {
                take(&mut counters, vec![task(&format!("t{n}\u{1b}{round}"), 1, 0, 10_000 + n)]);
            }
            counters.observe(Nanos::from_nanos(round), |_| true);
            counters.turn(0, 0);
        }
        assert_eq!(counters.named.len(), MOST_NAMED);
        assert!(counters.waiting.len() <= MOST_WAITING);
        assert_eq!(total(&counters), 5 * (0..500).map(|n| 10_000 + n).sum::<u64>());
        assert!(counters.named.keys().all(|name| !name.contains('\u{1b}')));
    }

    #[test]
    fn a_task_cannot_pass_for_the_rest() {
        let mut counters = Counters::new(&[Cpu(1)], false, 7);
        take(&mut counters, vec![interval(Source::Task("other".into()), 0, 5)]);
        counters.observe(Nanos::ZERO, |_| true);
        counters.turn(0, 0);
        assert!(counters.named.contains_key("task:other"));
    }

    #[test]
    fn bounds_rise_from_a_microsecond_to_a_second() {
        assert_eq!((BOUNDS[0], BOUNDS[1], BOUNDS[2], BOUNDS[3]), (1_000, 2_500, 5_000, 10_000));
        assert_eq!(BOUNDS[18], 1_000_000_000);
        let mut histogram = Histogram::default();
        [1_000, 1_001, u64::MAX].into_iter().for_each(|ns| histogram.add(ns));
        assert_eq!((histogram.buckets[0], histogram.buckets[1], histogram.buckets[19]), (1, 1, 1));
    }
}
