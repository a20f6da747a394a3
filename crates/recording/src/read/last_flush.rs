//! What the manifest of a recording lacks that its writer did not finish.

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;

use crate::write::{PROGRESS, Progress};
use crate::{Cpu, Detour, Interval, Manifest, Nanos};

/// Sets the end of the recording from the last complete line of the progress file; without one, from the last row. Adds the CPUs that came
/// online while a command was followed.
pub(super) fn complete(
    folder: &Path,
    manifest: &mut Manifest,
    detours: &[(Cpu, Detour)],
    intervals: &[(Cpu, Interval)],
) {
    let text = fs::read_to_string(folder.join(PROGRESS)).unwrap_or_default();
    let last = text.lines().rev().find_map(|line| serde_json::from_str::<Progress>(line).ok());
    if let (Some(sources), Some(progress)) = (&mut manifest.sources, &last) {
        sources.lost = progress.intervals_lost;
    }
    // By position, so before any CPU is added.
    for (index, cpu) in manifest.cpus.iter_mut().enumerate() {
        cpu.lost = last.as_ref().and_then(|progress| progress.lost.get(index)).copied().unwrap_or(cpu.lost);
    }
    manifest.add_cpus(intervals.iter().map(|row| row.0));
    let mut ends: BTreeMap<Cpu, Nanos> = BTreeMap::new();
    for (cpu, detour) in detours {
        let end = ends.entry(*cpu).or_default();
        *end = (*end).max(detour.end());
    }
    let flushed = last.as_ref().map_or(Nanos::ZERO, |progress| progress.until_ns);
    for cpu in &mut manifest.cpus {
        let last_row = ends.get(&cpu.cpu).copied().unwrap_or(Nanos::ZERO);
        cpu.end_ns = flushed.max(last_row).max(cpu.start_ns);
    }
}

#[cfg(test)]
mod tests {
    use crate::manifest::State;
    use crate::{
        Cpu, CpuFacts, Interval, Manifest, Method, Nanos, Progress, Recording, Source, Span, Writer,
    };

    fn ns(n: u64) -> Nanos {
        Nanos::from_nanos(n)
    }

    fn interval(start: u64, duration: u64) -> Interval {
        Interval {
            start: ns(start),
            duration: ns(duration),
            net: ns(duration),
            source: Source::Tick,
            pid: 0,
            victim: 0,
            detail: None,
            cause: None,
        }
    }

    /// Reads a recording of CPUs 0 and 1 that was killed after `write`.
    fn killed(method: Method, write: impl FnOnce(&mut Writer)) -> Recording {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.quell");
        let mut manifest = Manifest::new(method, State::Recording);
        manifest.cpus = [0, 1].map(|cpu| CpuFacts::from_span(Cpu(cpu), Span::default())).into();
        let mut writer = Writer::create(&path, &manifest).unwrap();
        write(&mut writer);
        Recording::open(&path).unwrap()
    }

    fn progress(until: u64) -> Progress {
        Progress { until_ns: ns(until), lost: vec![0, 7], intervals_lost: 0 }
    }

    #[test]
    fn a_cpu_that_came_later_is_added() {
        let recording = killed(Method::Kernel, |writer| {
            writer.intervals(&[(Cpu(5), interval(10, 5)), (Cpu(0), interval(1, 2))]).unwrap();
            writer.progress(&progress(100)).unwrap();
        });
        let cpus = &recording.manifest.cpus;
        assert_eq!(
            cpus.iter().map(|cpu| (cpu.cpu.0, cpu.lost)).collect::<Vec<_>>(),
            [(0, 0), (1, 7), (5, 0)]
        );
        assert_eq!(cpus[2].end_ns, ns(100));
        assert_eq!(recording.intervals[2].intervals, [interval(10, 5)]);
    }
}
