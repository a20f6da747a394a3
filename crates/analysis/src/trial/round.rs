//! The noise of one recording of a trial.

use std::collections::BTreeMap;

use quell_recording::{Recording, SourceKind, SourcePattern};

use crate::attribution::{is_own, own_pid};
use crate::whatif::{family, is_of_user};

/// Noise of one recording, each figure in nanoseconds per second of a CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// All detours, by the program's own clock.
    pub detours: f64,
    /// Noise that the mitigation's patterns match.
    pub addressed: f64,
    /// Load of others: tasks of users, and time that the hypervisor took, except what the patterns match.
    pub load: f64,
    /// Noise by source; workers of one kind count as one source.
    pub sources: BTreeMap<String, f64>,
    /// The smallest difference in detours that the recording can show: the shortest detour that its probe counts, or one step of its clock if
    /// that is longer, over the time observed.
    pub step: f64,
    /// The same for what the kernel recorder sees: one step of the clock.
    pub clock_step: f64,
    /// The time that all CPUs were observed.
    pub watched_ns: u64,
}

impl Round {
    /// The noise of a recording, over all CPUs.
    pub fn from_recording(recording: &Recording, patterns: &[SourcePattern]) -> Self {
        let watched_ns = recording.manifest.cpus.iter().map(|cpu| cpu.span().length().as_nanos()).sum();
        if watched_ns == 0 {
            return Self::default();
        }
        let watched = watched_ns as f64 / 1e9;
        let clock = recording.manifest.clock.as_ref().map_or(1.0, |clock| clock.granularity_ns);
        let shortest = recording.manifest.threshold_ns.map_or(clock, |threshold| threshold.max(clock));
        let mut round =
            Self { step: shortest / watched, clock_step: clock / watched, watched_ns, ..Self::default() };
        let detours = recording.traces.iter().flat_map(|trace| &trace.detours);
        round.detours =
            detours.filter(|detour| !detour.own).map(|detour| detour.duration.as_nanos() as f64).sum::<f64>()
                / watched;
        let own = own_pid(recording);
        let noise = recording.intervals.iter().flat_map(|cpu| &cpu.intervals);
        for interval in noise.filter(|interval| !is_own(interval, own)) {
            let rate = interval.net.as_nanos() as f64 / watched;
            *round.sources.entry(family(&interval.source)).or_default() += rate;
            if patterns.iter().any(|one| one.matches(&interval.source, interval.detail.as_deref())) {
                round.addressed += rate;
            } else if is_of_user(&interval.source) || interval.source.kind() == SourceKind::Steal {
                round.load += rate;
            }
        }
        round
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use crate::attribution::fixture;

    #[test]
    fn a_round_is_in_ns_for_each_second_that_was_watched() {
        let traces =
            vec![fixture::trace(2_000_000_000, vec![fixture::detour(10, 300), fixture::detour(1_000, 100)])];
        let intervals = vec![vec![fixture::tick(10, 80), fixture::softirq("TIMER", 95, 20)]];
        let recording = fixture::recording(traces, intervals);
        let round = Round::from_recording(&recording, &["tick".parse().unwrap()]);
        assert_eq!((round.detours, round.addressed), (200.0, 40.0));
        assert_eq!(round.sources.values().copied().collect::<Vec<_>>(), [10.0, 40.0]);
        assert_eq!((round.step, round.clock_step), (5.0, 5.0), "the clock's step of 10 ns, over 2 s");
        assert_eq!(round.watched_ns, 2_000_000_000);
        assert_eq!(round.load, 0.0, "the system's own noise");
    }

    #[test]
    fn load_is_what_users_and_other_guests_take_and_no_pattern_matches() {
        let intervals = vec![
            fixture::task("cc1", 7, 10, 200),
            fixture::task("daemon", 8, 300, 100),
            fixture::task("kworker/0:1", 9, 500, 50),
            fixture::task("quell", 4_242, 560, 30),
            fixture::steal(600, 100, 40),
        ];
        let traces = vec![fixture::trace(2_000_000_000, Vec::new())];
        let recording = fixture::recording(traces, vec![intervals]);
        let load = |pattern: &str| Round::from_recording(&recording, &[pattern.parse().unwrap()]).load;
        assert_eq!(
            (load("task:^daemon$"), load("tick"), load("task:."), load("steal")),
            (120.0, 170.0, 20.0, 150.0)
        );
    }
}
