//! Collects rows and makes frames of them.

use std::collections::VecDeque;

use quell_recording::{Cpu, Detour, Interval, Nanos, Source, SourceKind};

use super::document::{CpuNow, Culprit, Frame, LongestDetour, Overhead, SourceNow};
use super::join::Joiner;
use super::table::{Key, Table};
use crate::attribution::Blame;

/// Length of the history of a CPU, and its maximum number of intervals.
const HISTORY: Nanos = Nanos::from_secs(60);
const MOST_HISTORY: usize = 120;
/// Maximum number of detours that are joined at a time, which bounds the memory however long an interval is.
const MOST_DETOURS: usize = 1 << 17;
/// Maximum number of record-breaking detours that are kept per interval.
const MOST_LONGEST: usize = 256;

/// Sums of one CPU over a period of time.
#[derive(Clone, Copy, Debug, Default)]
struct CpuSum {
    noise_ns: u64,
    detours: u64,
    max_ns: u64,
    own_detours: u64,
    own_ns: u64,
    kernel_ns: u64,
    tasks_ns: u64,
}

impl CpuSum {
    fn detour(&mut self, detour: &Detour) {
        let ns = detour.duration.as_nanos();
        if detour.own {
            self.own_detours += 1;
            self.own_ns = self.own_ns.saturating_add(ns);
        } else {
            self.detours += 1;
            self.noise_ns = self.noise_ns.saturating_add(ns);
            self.max_ns = self.max_ns.max(ns);
        }
    }

    fn interval(&mut self, one: &Interval, own: bool) {
        let sum = match one.source.kind() {
            SourceKind::Task if own => return,
            SourceKind::Task => &mut self.tasks_ns,
            _ => &mut self.kernel_ns,
        };
        *sum = sum.saturating_add(one.net.as_nanos());
    }

    /// Share of the time in which noise could be observed.
    fn noise_percent(&self, span_ns: u64) -> f64 {
        percent(self.noise_ns, span_ns.saturating_sub(self.own_ns))
    }
}

/// A row that ends in an interval may have begun before it, so the percentage is limited to 100.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (100.0 * part as f64 / whole as f64).min(100.0) }
}

#[derive(Debug, Default)]
struct CpuState {
    now: CpuSum,
    ever: CpuSum,
    history: VecDeque<f64>,
    /// The longest detour that was joined.
    longest_ns: u64,
}

/// Collects rows as they arrive and makes a [`Frame`] of them at the end of each interval.
#[derive(Debug)]
pub struct Gatherer {
    cpus: Vec<Cpu>,
    states: Vec<CpuState>,
    joiner: Joiner,
    table: Table,
    longest: Vec<LongestDetour>,
    own_pid: u32,
    probed: bool,
    unknown: Option<String>,
    begun: Nanos,
}

impl Gatherer {
    /// A gatherer for the observed CPUs, in their order. `unknown` is why sources are not known; `own_pid` is quell's process.
    pub fn new(cpus: &[Cpu], probed: bool, unknown: Option<String>, own_pid: u32) -> Self {
        Self {
            cpus: cpus.to_vec(),
            states: cpus.iter().map(|_| CpuState::default()).collect(),
            joiner: Joiner::new(cpus),
            table: Table::default(),
            longest: Vec::new(),
            own_pid,
            probed,
            unknown,
            begun: Nanos::ZERO,
        }
    }

    /// Adds detours; those of one CPU must be in order.
    pub fn detours(&mut self, rows: &[(Cpu, Detour)]) {
        for (cpu, detour) in rows {
            let Some(index) = self.place(*cpu) else { continue };
            let state = &mut self.states[index];
            state.now.detour(detour);
            state.ever.detour(detour);
            self.joiner.detour(index, *detour);
        }
        if self.joiner.detours() >= MOST_DETOURS {
            self.join();
        }
    }

    /// Adds intervals, in any order.
    pub fn intervals(&mut self, rows: impl Iterator<Item = (Cpu, Interval)>) {
        for (cpu, one) in rows {
            let Some(index) = self.place(cpu) else { continue };
            let key = Key::from_interval(&one, self.own_pid);
            let own = matches!(key, Key::Source(_, true));
            let state = &mut self.states[index];
            state.now.interval(&one, own);
            state.ever.interval(&one, own);
            // The kernel checks for stolen time often, and mostly finds none.
            if one.source.kind() != SourceKind::Steal || one.net > Nanos::ZERO {
                self.table.add(key, one.net.as_nanos(), one.detail.as_ref());
            }
            if self.probed {
                self.joiner.interval(index, one);
            }
        }
    }

    /// Ends an interval at `time`; all rows up to then were added.
    pub fn frame(&mut self, time: Nanos, overhead: Overhead) -> Frame {
        self.join();
        let interval = time - self.begun;
        let own = self.states.iter().fold((0, 0), |sum, s| (sum.0 + s.now.own_detours, sum.1 + s.now.own_ns));
        let frame = Frame {
            schema: "quell.watch/1".into(),
            time_ns: time.as_nanos(),
            interval_ns: interval.as_nanos(),
            passive: !self.probed,
            sources_unknown_because: self.unknown.clone(),
            cpus: self.cpu_rows(interval, time),
            sources: self.source_rows(interval, time),
            longest: std::mem::take(&mut self.longest),
            overhead: Overhead { own_detours: own.0, own_ns: own.1, ..overhead },
        };
        self.table.turn();
        self.states.iter_mut().for_each(|state| state.now = CpuSum::default());
        self.begun = time;
        frame
    }

    fn place(&self, cpu: Cpu) -> Option<usize> {
        self.cpus.binary_search(&cpu).ok()
    }

    fn cpu_rows(&mut self, interval: Nanos, all: Nanos) -> Vec<CpuNow> {
        let (span, all) = (interval.as_nanos(), all.as_nanos());
        let (probed, known) = (self.probed, self.unknown.is_none());
        let kept = (HISTORY.as_nanos() / span.max(1)).clamp(1, MOST_HISTORY as u64) as usize;
        let row = |(cpu, state): (&Cpu, &mut CpuState)| {
            let CpuState { now, ever, history, .. } = state;
            let noise = now.noise_percent(span);
            history.push_back(if probed { noise } else { percent(now.kernel_ns, span) });
            history.drain(..history.len().saturating_sub(kept));
            CpuNow {
                cpu: cpu.0,
                noise_percent: probed.then_some(noise),
                noise_percent_since_start: probed.then(|| ever.noise_percent(all)),
                detours_per_s: probed.then(|| now.detours as f64 * 1e9 / span.max(1) as f64),
                max_ns: probed.then_some(now.max_ns),
                max_ns_since_start: probed.then_some(ever.max_ns),
                kernel_percent: known.then(|| percent(now.kernel_ns, span)),
                kernel_percent_since_start: known.then(|| percent(ever.kernel_ns, all)),
                tasks_percent: known.then(|| percent(now.tasks_ns, span)),
                tasks_percent_since_start: known.then(|| percent(ever.tasks_ns, all)),
                own_detours: now.own_detours,
                own_ns: now.own_ns,
                history: history.iter().copied().collect(),
            }
        };
        self.cpus.iter().zip(&mut self.states).map(row).collect()
    }

    fn source_rows(&self, interval: Nanos, all: Nanos) -> Option<Vec<SourceNow>> {
        self.unknown.is_none().then(|| self.table.rows(interval, all, self.cpus.len(), self.probed))
    }

    /// Attributes the detours that have arrived, and finds those that are longer than any before.
    fn join(&mut self) {
        let (table, longest, own_pid) = (&mut self.table, &mut self.longest, self.own_pid);
        let (states, cpus, known) = (&mut self.states, &self.cpus, self.unknown.is_none());
        let first = self.begun == Nanos::ZERO;
        self.joiner.join(|index, blames, intervals| {
            let mut most = states[index].longest_ns;
            for blame in blames {
                count(table, blame, intervals, own_pid);
                let ns = blame.detour.duration.as_nanos();
                if ns > most {
                    most = ns;
                    // At first every detour is a record; only the last record is worth a line.
                    if first {
                        longest.retain(|one| one.cpu != cpus[index].0);
                    }
                    longest.push(line(cpus[index], blame, intervals, known));
                }
            }
            states[index].longest_ns = most;
        });
        longest.sort_by_key(|one| one.start_ns);
        longest.drain(..longest.len().saturating_sub(MOST_LONGEST));
    }
}

/// Attributes a detour to its sources.
fn count(table: &mut Table, blame: &Blame, intervals: &[Interval], own_pid: u32) {
    for part in &blame.parts {
        table.blame(Key::from_interval(&intervals[part.interval], own_pid), part.ns);
    }
    if blame.stolen_ns > 0 {
        table.blame(Key::Source(Source::Steal, false), blame.stolen_ns);
    }
    if blame.left_ns > 0 {
        table.add(Key::Unattributed, blame.left_ns, None);
        table.blame(Key::Unattributed, blame.left_ns);
    }
}

/// A detour with the sources that took it.
fn line(cpu: Cpu, blame: &Blame, intervals: &[Interval], known: bool) -> LongestDetour {
    let of_part = |part: &crate::attribution::Part| {
        let one = &intervals[part.interval];
        Culprit {
            source: one.source.to_string(),
            detail: one.detail.as_ref().map(|detail| detail.to_string()),
            ns: part.ns,
        }
    };
    let other = |source: &str, ns| Culprit { source: source.into(), detail: None, ns };
    let mut culprits: Vec<Culprit> = blame.parts.iter().map(of_part).collect();
    culprits.push(other("steal", blame.stolen_ns));
    culprits.push(other("unattributed", blame.left_ns));
    culprits.retain(|one| known && one.ns > 0);
    culprits.sort_by_key(|one| std::cmp::Reverse(one.ns));
    let detour = blame.detour;
    let (start_ns, duration_ns) = (detour.start.as_nanos(), detour.duration.as_nanos());
    LongestDetour { start_ns, cpu: cpu.0, duration_ns, culprits }
}
