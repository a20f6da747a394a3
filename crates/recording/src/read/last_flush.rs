//! What the manifest of a recording lacks that its writer did not finish.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::write::{PROGRESS, Progress};
use crate::{Cpu, Detour, Interval, Manifest, Method, Nanos, Quantum, whole_file};

/// The end of the progress file in which its last complete line is looked for.
const END_BYTES: u64 = 1 << 20;

/// Sets the ends of CPUs that the manifest does not have, from the last complete line of the progress file and from later rows. Adds the CPUs
/// that came online while a command was followed.
///
/// # Errors
/// If the progress file cannot be read.
pub(super) fn complete(
    folder: &Path,
    manifest: &mut Manifest,
    detours: &[(Cpu, Detour)],
    quanta: &[(Cpu, Quantum)],
    intervals: &[(Cpu, Interval)],
) -> io::Result<()> {
    let last = last_progress(&folder.join(PROGRESS))?;
    if let (Some(sources), Some(progress)) = (&mut manifest.sources, &last) {
        sources.lost = progress.intervals_lost;
    }
    // By position, so before any CPU is added.
    for (index, cpu) in manifest.cpus.iter_mut().enumerate() {
        cpu.lost = last.as_ref().and_then(|progress| progress.lost.get(index)).copied().unwrap_or(cpu.lost);
    }
    manifest.add_cpus(intervals.iter().map(|row| row.0).filter(|&cpu| cpu <= Cpu::LAST));
    let detours = detours.iter().map(|(cpu, detour)| (*cpu, detour.end()));
    let quanta = quanta.iter().map(|(cpu, quantum)| (*cpu, quantum.start + quantum.duration));
    let mut ends: BTreeMap<Cpu, Nanos> = BTreeMap::new();
    for (cpu, row_end) in detours.chain(quanta) {
        let end = ends.entry(cpu).or_default();
        *end = row_end.max(*end);
    }
    // The rings of all CPUs are emptied together, so one without intervals was quiet. Probes write their rows less often than these come.
    let all = Some(intervals).filter(|_| manifest.method == Method::Kernel);
    let end_of_all = all.into_iter().flatten().map(|(_, interval)| interval.end()).max().unwrap_or_default();
    let flushed = last.as_ref().map_or(Nanos::ZERO, |progress| progress.until_ns);
    for cpu in &mut manifest.cpus {
        let last_row = ends.get(&cpu.cpu).copied().unwrap_or_default().max(end_of_all);
        // The end is known of a CPU that was closed, and of a run that has ended; rows that could not be written then are missing.
        let known = Some(cpu.end_ns).filter(|&end| end > Nanos::ZERO);
        cpu.end_ns = flushed.min(known.unwrap_or(flushed)).max(last_row).max(cpu.start_ns);
    }
    Ok(())
}

/// The last complete line of the progress file, if there is one.
fn last_progress(path: &Path) -> io::Result<Option<Progress>> {
    let text = match whole_file::read_end(path, END_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut lines = text.rsplit(|&byte| byte == b'\n');
    Ok(lines.find_map(|line| serde_json::from_slice(line).ok()))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use crate::manifest::State;
    use crate::{
        Cpu, CpuFacts, Interval, Manifest, Method, Nanos, Progress, Quantum, Recording, Source, Span, Writer,
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

    fn ends(recording: &Recording) -> Vec<u64> {
        recording.manifest.cpus.iter().map(|cpu| cpu.end_ns.as_nanos()).collect()
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
    #[test]
    fn what_was_written_after_the_last_progress_counts() {
        let rows = [(Cpu(0), interval(1, 2)), (Cpu(1), interval(10, 5))];
        let kernel = killed(Method::Kernel, |writer| writer.intervals(&rows).unwrap());
        assert_eq!(ends(&kernel), [15, 15], "a CPU without intervals was quiet");
        let probe = killed(Method::Detour, |writer| {
            writer.progress(&progress(12)).unwrap();
            writer.intervals(&rows).unwrap();
        });
        assert_eq!(ends(&probe), [12, 12], "of detours after that nothing is known");
        let quantum = Quantum { start: ns(20), duration: ns(4), work: 1 };
        let quanta = killed(Method::Fwq, |writer| writer.quanta(&[(Cpu(1), quantum)]).unwrap());
        assert_eq!(ends(&quanta), [0, 24]);
    }

    #[test]
    fn an_end_that_is_known_is_kept() {
        let mut manifest = Manifest::new(Method::Detour, State::Recording);
        manifest.cpus = [0, 1, 2].map(|cpu| CpuFacts::from_span(Cpu(cpu), Span::default())).into();
        for (cpu, end) in [(1, 60), (2, 200)] {
            manifest.cpus[cpu].end_ns = ns(end);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(&folder.path().join("a.quell"), &manifest).unwrap();
        writer.progress(&progress(100)).unwrap();
        for state in [State::Recording, State::Failed] {
            if state == State::Failed {
                manifest.state = state;
                manifest.write(writer.folder()).unwrap();
            }
            assert_eq!(ends(&Recording::open(writer.folder()).unwrap()), [100, 60, 100]);
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        for name in ["progress.jsonl", "detours.arrow", "intervals.parquet"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.quell");
            drop(Writer::create(&path, &Manifest::new(Method::Detour, State::Recording)).unwrap());
            let file = path.join(name);
            let _ = fs_err::remove_file(&file);
            fs_err::os::unix::fs::symlink("/dev/zero", &file).unwrap();
            let refused = Recording::open(&path).unwrap_err().to_string();
            assert!(refused.contains(name) && refused.contains("not a regular file"), "{refused}");
        }
    }

    #[test]
    fn a_progress_file_of_any_size_is_read_at_its_end() {
        let recording = killed(Method::Detour, |writer| {
            let mut file = fs_err::File::create(writer.folder().join("progress.jsonl")).unwrap();
            file.seek(SeekFrom::Start(200 << 30)).unwrap();
            let line = serde_json::to_string(&progress(100)).unwrap();
            file.write_all(format!("\n{line}\n").as_bytes()).unwrap();
        });
        assert_eq!(ends(&recording), [100, 100]);
    }
}
