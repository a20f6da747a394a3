//! Recordings on disk: complete, cut off, damaged and hostile.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use quell_recording::{
    Cpu, CpuFacts, Detour, Error, FORMAT_VERSION, Manifest, Method, MpiFacts, Nanos, Phase, Progress,
    Recording, Span, State, Warning, Writer, add_phases, formats, read_phases,
};

fn ns(n: u64) -> Nanos {
    Nanos::from_nanos(n)
}

fn detour(start: u64, duration: u64) -> Detour {
    Detour { start: ns(start), duration: ns(duration), own: duration.is_multiple_of(5) }
}

fn manifest(cpus: &[u32], end: u64) -> Manifest {
    let mut manifest = Manifest::new(Method::Detour, State::Recording);
    let span = Span { start: Nanos::ZERO, end: ns(end) };
    manifest.cpus = cpus.iter().map(|&cpu| CpuFacts::from_span(Cpu(cpu), span)).collect();
    manifest
}

fn rows(cpu: u32, count: u64) -> Vec<(Cpu, Detour)> {
    (0..count).map(|i| (Cpu(cpu), detour(i * 1_000, 100 + i % 700))).collect()
}

/// A recording of two CPUs in three flushes, closed as `close` does.
fn make(folder: &Path, close: impl FnOnce(Writer, Manifest)) {
    let mut writer = Writer::create(folder, &manifest(&[0, 1], 0)).unwrap();
    for flush in 0..3 {
        for cpu in [0, 1] {
            let part: Vec<_> = rows(cpu, 300).into_iter().skip(flush * 100).take(100).collect();
            writer.detours(&part).unwrap();
        }
        let until = (flush as u64 + 1) * 100_000;
        let lost = vec![0, flush as u64];
        writer.progress(&Progress { until_ns: ns(until), lost, intervals_lost: 0 }).unwrap();
    }
    close(writer, manifest(&[0, 1], 300_000));
}

fn finish(writer: Writer, mut manifest: Manifest) {
    manifest.state = State::Complete;
    writer.finish(&mut manifest).unwrap();
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.quell");
    (dir, path)
}

/// A recording of one trace, not on disk.
fn holding(trace: &quell_recording::Trace) -> Recording {
    Recording {
        path: PathBuf::from("a.quell"),
        manifest: manifest(&[trace.cpu.0], trace.span.end.as_nanos()),
        traces: vec![trace.clone()],
        quanta: Vec::new(),
        intervals: Vec::new(),
        threads: Vec::new(),
        histograms: Vec::new(),
    }
}

#[test]
fn a_whole_recording_reads_as_written() {
    let (_dir, path) = folder();
    make(&path, finish);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.name(), "a");
    for (trace, cpu) in recording.traces.iter().zip([0, 1]) {
        let expected: Vec<Detour> = rows(cpu, 300).into_iter().map(|row| row.1).collect();
        assert_eq!((trace.cpu, &trace.detours), (Cpu(cpu), &expected));
    }
    let files: Vec<_> = fs_err::read_dir(&path).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "the manifest and one table: {files:?}");
}

#[test]
fn what_was_flushed_before_a_crash_is_there() {
    let (_dir, path) = folder();
    make(&path, |writer, _| std::mem::forget(writer));
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.manifest.state, State::Recording);
    assert_eq!(recording.traces[1].detours.len(), 300);
    assert_eq!(recording.manifest.cpus[0].end_ns, ns(300_000));
    assert_eq!(recording.manifest.lost(), 2);
}

#[test]
fn a_stream_torn_anywhere_reads_up_to_the_tear() {
    let (_dir, path) = folder();
    make(&path, |writer, _| std::mem::forget(writer));
    let table = path.join("detours.arrow");
    let bytes = fs_err::read(&table).unwrap();
    let mut last = usize::MAX;
    for keep in (0..bytes.len()).rev().step_by(97) {
        fs_err::write(&table, &bytes[..keep]).unwrap();
        let rows: usize = Recording::open(&path).unwrap().traces.iter().map(|t| t.detours.len()).sum();
        assert!(rows <= last && rows.is_multiple_of(100), "whole flushes only: {rows} of {keep} bytes");
        last = rows;
    }
    assert_eq!(last, 0);
}

#[test]
fn a_torn_progress_line_is_passed_over() {
    let (_dir, path) = folder();
    make(&path, |writer, _| std::mem::forget(writer));
    let progress = path.join("progress.jsonl");
    let text = fs_err::read_to_string(&progress).unwrap();
    fs_err::write(&progress, &text[..text.len() - 10]).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.manifest.lost(), 1, "of the line before");
    assert!(recording.manifest.cpus[0].end_ns >= recording.traces[0].detours[299].end());
}

#[test]
fn refusals_name_the_thing_and_the_way_out() {
    let (dir, path) = folder();
    let text = |path: &Path| Recording::open(path).unwrap_err().to_string();
    assert!(text(&path).contains("is not a quell recording: there is no such folder"));
    assert!(text(dir.path()).contains("no manifest.json"));
    make(&path, finish);
    assert!(matches!(Writer::create(&path, &manifest(&[0], 0)), Err(Error::Exists { .. })));
    let lost = dir.path().join("missing/a.quell");
    let refused = Writer::create(&lost, &manifest(&[0], 0)).unwrap_err().to_string();
    assert!(refused.contains("there is no folder") && refused.contains("create it first"), "{refused}");
    assert!(!dir.path().join("missing").exists());
    let beyond = dir.path().join("b.quell");
    let refused = Writer::create(&beyond, &manifest(&[65_536], 0)).unwrap_err().to_string();
    assert!(refused.contains("CPU 65536 is beyond 65535") && !beyond.exists(), "{refused}");
    let file = path.join("manifest.json");
    let good = fs_err::read_to_string(&file).unwrap();
    let ours = format!("\"version\": {FORMAT_VERSION}");
    for (from, to, expected) in [
        (ours.as_str(), "\"version\": 99", "newer than the 6 that this quell reads"),
        ("quell.recording", "other.thing", "`format` is `other.thing`"),
        ("\"cpu\": 1", "\"cpu\": 0", "listed twice"),
        ("\"cpu\": 1", "\"cpu\": 65536", "CPU 65536 is beyond 65535"),
        ("\"end_ns\": 300000", "\"end_ns\": 17", "ends after the CPU's span"),
        ("{", "", "not a manifest"),
    ] {
        fs_err::write(&file, good.replacen(from, to, 1)).unwrap();
        assert!(text(&path).contains(expected), "{}", text(&path));
    }
    fs_err::write(&file, &good).unwrap();
    fs_err::write(path.join("detours.parquet"), b"PAR1 no table PAR1").unwrap();
    assert!(text(&path).contains("not a whole Parquet table"), "{}", text(&path));
}

#[test]
fn an_older_manifest_has_sentences_for_warnings() {
    let (_dir, path) = folder();
    make(&path, finish);
    let file = path.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
    manifest["version"] = 4.into();
    let virtual_machine = "this is a virtual machine: what its hypervisor takes shows as detours";
    manifest["warnings"] = serde_json::json!([virtual_machine, "said by an older quell"]);
    fs_err::write(&file, manifest.to_string()).unwrap();
    let sentence = Warning::Sentence { text: "said by an older quell".into() };
    assert_eq!(Recording::open(&path).unwrap().manifest.warnings, [Warning::VirtualMachine, sentence]);
    manifest["warnings"] = serde_json::json!([{"code": "unheard-of"}]);
    fs_err::write(&file, manifest.to_string()).unwrap();
    let refused = Recording::open(&path).unwrap_err().to_string();
    assert!(refused.contains("neither a known `code` with its facts nor a sentence"), "{refused}");
}

#[test]
fn a_missing_table_is_no_silence() {
    let (_dir, path) = folder();
    make(&path, finish);
    fs_err::remove_file(path.join("detours.parquet")).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(error.contains("counts 300 rows of CPU 0 and the tables hold 0"), "{error}");
}

#[test]
fn real_netgauge_files_are_read() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let selfish = formats::import(&data.join("netgauge_selfish_thr40000.out")).unwrap();
    let trace = &selfish.traces[0];
    assert_eq!(trace.detours[1], Detour { start: ns(568_247), duration: ns(170), own: false });
    assert_eq!(trace.span.end, trace.detours.last().unwrap().end());
    assert_eq!(selfish.manifest.threshold_ns.map(f64::round), Some(154.0));
    assert!(formats::import(&data.join("netgauge_selfish_default_BROKEN_thr.out")).is_ok());
}

#[test]
fn hostile_text_gives_the_line_and_the_reason() {
    let (dir, _) = folder();
    let file = dir.path().join("in");
    for (text, expected) in [
        ("", "the file is empty"),
        ("# x\n1 2\n3 NaN\n", "line 3: `NaN` is not a time"),
        ("# x\n1 2\n1 2 3\n", "line 3"),
        ("1 -2\n", "`-2` is not a time"),
        ("5 1\n18446744073709551615 9\n", "ends beyond all time"),
        ("1 100\n2 100\n", "starts before the one before it ends"),
        ("cpu,start_ns\n1,2\n", "column `duration_ns` is missing"),
        ("cpu,start_ns,duration_ns\n1,2\n", "line 2: column 3 is missing"),
        ("cpu,start_ns,duration_ns\n\u{1b}[31m,2,3\n", "`\u{fffd}[31m` is not a CPU number"),
        ("<html>\n", "the format is not known"),
    ] {
        fs_err::write(&file, text).unwrap();
        let error = formats::import(&file).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    fs_err::write(&file, b"\xff\xfe\x00").unwrap();
    assert!(formats::import(&file).unwrap_err().to_string().contains("not text"));
}

fn any_detours() -> impl Strategy<Value = Vec<Detour>> {
    proptest::collection::vec((0u64..10_000_000, 1u64..1_000_000, any::<bool>()), 0..200).prop_map(|gaps| {
        let mut end = 0;
        let next = |(gap, duration, own)| {
            let start = end + gap;
            end = start + duration;
            Detour { start: ns(start), duration: ns(duration), own }
        };
        gaps.into_iter().map(next).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn csv_and_netgauge_survive_the_round_trip(detours in any_detours()) {
        prop_assume!(!detours.is_empty());
        let (dir, _) = folder();
        let file = dir.path().join("out");
        let end = detours.last().unwrap().end();
        let trace = quell_recording::Trace { cpu: Cpu(0), span: Span { start: Nanos::ZERO, end }, detours };
        for format in [formats::Format::Csv, formats::Format::Netgauge] {
            let mut out = Vec::new();
            formats::export(&holding(&trace), format, &mut out).unwrap();
            fs_err::write(&file, &out).unwrap();
            let back = formats::import(&file).unwrap().traces.remove(0);
            let expected: Vec<Detour> = match format {
                formats::Format::Csv => trace.detours.clone(),
                _ => trace.noise().copied().collect(),
            };
            prop_assert_eq!(&back.detours, &expected);
        }
    }

    #[test]
    fn no_damage_panics(file in 0usize..3, at in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<bool>()) {
        let (_dir, path) = folder();
        if file == 2 { make(&path, |writer, _| std::mem::forget(writer)) } else { make(&path, finish) };
        let name = path.join(["manifest.json", "detours.parquet", "detours.arrow"][file]);
        let mut bytes = fs_err::read(&name).unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = value }
        fs_err::write(&name, bytes).unwrap();
        let _ = Recording::open(&path);
    }

    #[test]
    fn no_text_panics_an_importer(text in "(#[ -~]*\n|[0-9.\\-eNa]{1,6}[ \t,][0-9.\\-eNa]{1,25}\n|cpu,start_ns,duration_ns\n){0,8}") {
        let (dir, _) = folder();
        let file = dir.path().join("in");
        fs_err::write(&file, text).unwrap();
        let _ = formats::import(&file);
    }
}

#[test]
fn phases_stand_next_to_the_kernels_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a.quell");
    let mut manifest = Manifest::new(Method::Kernel, State::Complete);
    let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(10) };
    manifest.cpus = vec![CpuFacts::from_span(Cpu(0), span)];
    Writer::create(&folder, &manifest).unwrap().finish(&mut manifest).unwrap();
    let phase = |rank, index| {
        let ns = Nanos::from_nanos;
        Phase { rank, index, start: ns(100 * index), work: 7, compute: ns(60), wait: ns(u64::from(rank)) }
    };
    let rows = [(Cpu(1), phase(1, 0)), (Cpu(0), phase(0, 1)), (Cpu(0), phase(0, 0))];
    let mpi = MpiFacts {
        bench: "bsp".into(),
        library: "none".into(),
        operation: "barrier".into(),
        bytes: 8,
        ranks: 2,
        here: Vec::new(),
    };
    add_phases(&folder, &mut manifest, mpi.clone(), &rows).unwrap();
    assert_eq!(read_phases(&folder).unwrap(), [rows[2], rows[1], rows[0]]);
    let read = Recording::open(&folder).unwrap();
    assert_eq!((read.manifest.method, &read.manifest.mpi), (Method::Phases, &Some(mpi.clone())));
    assert_eq!(read.quanta[0].quanta.len(), 2);
    assert_eq!(read.manifest.cpus[1].end_ns, rows[0].1.end());
    assert!(matches!(add_phases(&folder, &mut manifest, mpi, &rows), Err(Error::Exists { .. })));
}
