//! The tables of the kernel recorder on disk: complete, missing, damaged; and recordings from before they existed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use quell_recording::{
    Cpu, CpuFacts, Interval, Manifest, Method, Nanos, Recording, Source, SourceKind, Span, State, Taken,
    Thread, Writer,
};

const END: u64 = 1 << 40;

fn any_name() -> impl Strategy<Value = Arc<str>> {
    "[ -~\u{1b}\n\u{202e}é]{0,15}".prop_map(Arc::from)
}

fn any_source() -> impl Strategy<Value = Source> {
    (0..SourceKind::ALL.len(), any_name()).prop_map(|(kind, name)| {
        let kind = SourceKind::ALL[kind];
        Source::new(kind, kind.has_names().then_some(&*name)).unwrap()
    })
}

prop_compose! {
    fn any_interval()(
        start in 0..END / 2,
        duration in 0..END / 2,
        share in 0.0..=1.0,
        source in any_source(),
        (pid, victim) in any::<(u32, u32)>(),
        detail in proptest::option::of(any_name()),
        cause in proptest::option::of(any_name()),
    ) -> Interval {
        let net = (duration as f64 * share) as u64;
        let (start, duration, net) = (Nanos::from_nanos(start), Nanos::from_nanos(duration), Nanos::from_nanos(net));
        Interval { start, duration, net, source, pid, victim, detail, cause }
    }
}

prop_compose! {
    fn any_thread()((tid, pid) in any::<(u32, u32)>(), comm in any_name(), times in any::<[u64; 24]>()) -> Thread {
        let at = |i: usize| Nanos::from_nanos(times[i]);
        let taken = std::array::from_fn(|kind| Taken { time: at(4 + 2 * kind), count: times[5 + 2 * kind] });
        let own = |i: usize| Taken { time: at(i), count: times[i + 1] };
        let (yielded, moved) = (own(20), own(22));
        Thread { tid, pid, comm, start: at(0), end: at(1), on_cpu: at(2), run_delay: at(3), taken, yielded, moved }
    }
}

fn write(folder: &Path, intervals: &[(Cpu, Interval)], threads: &[(Cpu, Thread)]) -> PathBuf {
    let path = folder.join("a.quell");
    let mut manifest = Manifest::new(Method::Kernel, State::Complete);
    let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(END) };
    manifest.cpus = vec![CpuFacts::from_span(Cpu(0), span), CpuFacts::from_span(Cpu(3), span)];
    let mut writer = Writer::create(&path, &manifest).unwrap();
    writer.intervals(intervals).unwrap();
    writer.threads(threads).unwrap();
    writer.finish(&mut manifest).unwrap();
    path
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_read_as_they_were_written(
        mut intervals in proptest::collection::vec((any::<bool>(), any_interval()), 0..40),
        threads in proptest::collection::vec(any_thread(), 0..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let cpu = |second: &bool| Cpu(if *second { 3 } else { 0 });
        let rows: Vec<_> = intervals.iter().map(|(second, interval)| (cpu(second), interval.clone())).collect();
        let thread_rows: Vec<_> = threads.iter().map(|thread| (Cpu(0), thread.clone())).collect();
        let recording = Recording::open(&write(folder.path(), &rows, &thread_rows)).unwrap();
        intervals.sort_by_key(|(second, interval)| (*second, interval.start));
        let read: Vec<_> = recording.intervals.iter().flat_map(|side| side.intervals.clone()).collect();
        prop_assert_eq!(read, intervals.into_iter().map(|row| row.1).collect::<Vec<_>>());
        let mut threads = threads;
        threads.sort_by_key(|thread| (thread.start, thread.tid));
        prop_assert_eq!(recording.threads, threads);
    }

    #[test]
    fn the_name_of_a_source_tells_it(source in any_source()) {
        prop_assert_eq!(source.to_string().parse::<Source>().unwrap(), source);
    }

    #[test]
    fn no_damage_panics(
        rows in proptest::collection::vec(any_interval(), 1..20),
        table in 0usize..2,
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<_> = rows.into_iter().map(|row| (Cpu(0), row)).collect();
        let path = write(folder.path(), &rows, &[]);
        let file = path.join(["intervals.parquet", "manifest.json"][table]);
        let mut bytes = fs_err::read(&file).unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = value }
        fs_err::write(&file, bytes).unwrap();
        let _ = Recording::open(&path);
    }
}

fn one_row(folder: &Path) -> PathBuf {
    let interval = Interval {
        start: Nanos::from_nanos(5),
        duration: Nanos::from_nanos(7),
        net: Nanos::from_nanos(6),
        source: Source::Tick,
        pid: 0,
        victim: 0,
        detail: None,
        cause: None,
    };
    write(folder, &[(Cpu(0), interval)], &[])
}

#[test]
fn a_missing_table_is_no_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = one_row(folder.path());
    fs_err::remove_file(path.join("intervals.parquet")).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(error.contains("counts 1 intervals of CPU 0 and the tables hold 0"), "{error}");
}

#[test]
fn recordings_of_format_one_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = one_row(folder.path());
    fs_err::remove_file(path.join("intervals.parquet")).unwrap();
    let text = fs_err::read(path.join("manifest.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    manifest["version"] = 1.into();
    manifest["method"] = "detour".into();
    manifest.as_object_mut().unwrap().remove("sources");
    for cpu in manifest["cpus"].as_array_mut().unwrap() {
        cpu.as_object_mut().unwrap().remove("intervals");
    }
    fs_err::write(path.join("manifest.json"), manifest.to_string()).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert!(recording.manifest.sources.is_none() && recording.intervals.is_empty());
}
