//! [`Counters`] of a complete recording, in which the sources with most time have their names from the start.

use quell_recording::{Nanos, Recording};

use super::Counters;
use super::counters::Sum;

impl Counters {
    /// Adds a whole recording. The time of each CPU is the longest span.
    pub fn from_recording(recording: &Recording) -> Self {
        let manifest = &recording.manifest;
        let cpus: Vec<_> = manifest.cpus.iter().map(|facts| facts.cpu).collect();
        let probed = recording.traces.iter().any(|trace| !trace.detours.is_empty());
        let facts = manifest.sources.as_ref();
        // No process has this id.
        let own_pid = facts.and_then(|facts| facts.own_pid).unwrap_or(u32::MAX);
        let until = manifest.cpus.iter().map(|facts| facts.end_ns).max().unwrap_or(Nanos::ZERO);
        let lost = [facts.map_or(0, |facts| facts.lost), manifest.lost()];
        let fill = |counters: &mut Self| {
            for side in &recording.intervals {
                counters.intervals(side.intervals.iter().map(|one| (side.cpu, one.clone())));
            }
            for trace in &recording.traces {
                let rows: Vec<_> = trace.detours.iter().map(|detour| (trace.cpu, *detour)).collect();
                counters.detours(&rows);
            }
            counters.observe(until, |_| true);
            counters.turn(lost[0], lost[1]);
        };
        let mut first = Self::new(&cpus, probed, own_pid);
        fill(&mut first);
        let mut all = Self::new(&cpus, probed, own_pid);
        let none = || vec![Sum::default(); cpus.len()];
        all.named.extend(first.named.into_keys().map(|name| (name, none())));
        fill(&mut all);
        all
    }
}

#[cfg(test)]
mod tests {
    use quell_recording::Cpu;

    use super::*;
    use crate::attribution::fixture::{recording, task, tick, trace};

    #[test]
    fn what_took_most_has_its_name_from_the_start() {
        let rows = vec![tick(0, 100), task("app", 3, 200, 9_000)];
        let made = recording(vec![trace(10_000, Vec::new())], vec![rows]);
        let counters = Counters::from_recording(&made);
        assert_eq!(counters.named["task:app"][0], Sum { count: 1, ns: 9_000 });
        assert_eq!(counters.named["other"][0], Sum::default());
        assert_eq!(counters.cpus, made.manifest.cpus.iter().map(|facts| facts.cpu).collect::<Vec<Cpu>>());
    }
}
