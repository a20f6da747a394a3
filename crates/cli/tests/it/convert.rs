//! `quell convert` between recordings and the files of quantum benchmarks, run as a program.

use std::path::Path;

use crate::support;
use crate::support::{run, transcript};
use insta::assert_snapshot;
use quell_recording::{
    Cpu, Manifest, Method, MpiFacts, Nanos, Phase, Quantum, RankFacts, Recording, State, Writer, add_phases,
    read_phases,
};

fn us(us: u64) -> Nanos {
    Nanos::from_nanos(us * 1_000)
}

/// A recording of two ranks with five iterations each.
fn record(folder: &Path) -> Vec<(Cpu, Phase)> {
    let phase = |rank: u32, index: u64| {
        let (start, compute) = (us(1_100 * index + 3), us(1_000 + index % 2));
        (Cpu(rank + 4), Phase { rank, index, start, work: 50, compute, wait: us(20) })
    };
    let rows: Vec<_> = (0..2).flat_map(|rank| (0..5).map(move |index| phase(rank, index))).collect();
    let mut manifest = Manifest::new(Method::Kernel, State::Complete);
    manifest.zero_unix_ns = Some(1_700_000_000_000_000_000);
    manifest.host = Some("n1".into());
    let path = folder.join("fwq.quell");
    Writer::create(&path, &manifest).unwrap().finish(&mut manifest).unwrap();
    let facts = |rank: u32| RankFacts {
        rank,
        pid: 90 + rank,
        cpus: (rank + 4).to_string(),
        ns_per_iteration: 20.0,
        timing_ns: 0.0,
        clock_offset_ns: 0,
        clock_error_ns: 0,
    };
    let here = vec![facts(0), facts(1)];
    let (bench, library, operation) = ("fwq".into(), "an MPI".into(), "barrier".into());
    let mpi = MpiFacts { bench, library, operation, bytes: 0, ranks: 2, here };
    add_phases(&path, &mut manifest, mpi, &rows).unwrap();
    rows
}

fn text(folder: &Path, name: &str) -> String {
    fs_err::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn phases_go_into_the_files_of_other_tools_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let rows = record(folder);
    let calls: [&[&str]; 10] = [
        &["convert", "fwq.quell", "all.vpsum"],
        &["convert", "all.vpsum", "back.quell"],
        &["convert", "fwq.quell", "one.vpsum", "--rank", "1"],
        &["convert", "fwq.quell", "h.psnap"],
        &["convert", "h.psnap", "h.quell"],
        &["convert", "h.quell", "again.psnap"],
        &["show", "h.quell"],
        &["convert", "fwq.quell", "copy.quell"],
        &["convert", "fwq.quell", "none.vpsum", "--rank", "7"],
        &["convert", "fwq.quell", "none.csv"],
    ];
    let printed = calls.map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(folder, args)));
    assert_snapshot!(printed.concat() + &text(folder, "one.vpsum") + "\n" + &text(folder, "h.psnap"));
    assert_eq!(text(folder, "one.vpsum"), text(folder, "all.vpsum/vpsum.1"));
    assert_eq!(text(folder, "h.psnap"), text(folder, "again.psnap"));
    // Except for work and wait, which vpsum's format cannot hold.
    let back = read_phases(&folder.join("back.quell")).unwrap();
    let kept = |&(cpu, phase): &(Cpu, Phase)| (cpu, Phase { work: 0, wait: Nanos::ZERO, ..phase });
    assert_eq!(back, rows.iter().map(kept).collect::<Vec<_>>());
    assert_eq!(read_phases(&folder.join("copy.quell")).unwrap(), rows);
    let histogram = Recording::open(&folder.join("h.quell")).unwrap().manifest;
    assert!(histogram.unordered && !histogram.warnings.is_empty());
    assert!(!folder.join("none.vpsum").exists() && !folder.join("none.csv").exists());
}

#[test]
fn quanta_go_into_netgauges_files_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    for (method, name) in [(Method::Fwq, "fwq"), (Method::Ftq, "ftq")] {
        let mut manifest = Manifest::new(method, State::Complete);
        manifest.quantum_ns = Some(us(1_000));
        let span = quell_recording::Span { start: Nanos::ZERO, end: us(9_000) };
        manifest.cpus = vec![quell_recording::CpuFacts::from_span(Cpu(1), span)];
        let mut writer = Writer::create(&folder.join(format!("{name}.quell")), &manifest).unwrap();
        let quantum = |i: u64| (Cpu(1), Quantum { start: us(1_000 * i), duration: us(1_000), work: 70 + i });
        writer.quanta(&(0..5).map(quantum).collect::<Vec<_>>()).unwrap();
        writer.finish(&mut manifest).unwrap();
        let [out, back, again] = [".out", "2.quell", "2.out"].map(|end| format!("{name}{end}"));
        assert!(run(folder, &["convert", &format!("{name}.quell"), &out]).status.success());
        assert!(run(folder, &["convert", &out, &back]).status.success());
        assert!(run(folder, &["convert", &back, &again]).status.success());
        assert_eq!(text(folder, &out), text(folder, &again));
        let quanta = Recording::open(&folder.join(&back)).unwrap().quanta.remove(0).quanta;
        assert_eq!((quanta.len(), quanta[3].start), (5, us(3_000)));
    }
}

fn samples() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/samples");
    let mut files: Vec<_> = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_none_or(|extension| extension != "md"));
    files.sort();
    files
}

#[test]
fn every_sample_becomes_a_recording_that_is_shown_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let mut refused = String::new();
    for path in samples() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        fs_err::copy(&path, folder.join(&name)).unwrap();
        let recording = format!("{name}.quell");
        let converted = run(folder, &["convert", &name, &recording]);
        if !converted.status.success() {
            refused +=
                &format!("$ quell convert {name}\n{}\n", transcript(folder, &["convert", &name, &recording]));
            continue;
        }
        let shown = run(folder, &["show", &recording]);
        assert!(shown.status.success(), "{name}: {}", String::from_utf8_lossy(&shown.stderr));
        let document = support::json(folder, &["show", &recording, "--json"]);
        let method = Recording::open(&folder.join(&recording)).unwrap().manifest.method;
        assert_eq!(document["method"], method.to_string(), "{name}");
        let rows = ["cpus", "quanta", "histograms", "sources"]
            .map(|key| document[key].as_array().map_or(0, Vec::len));
        assert!(rows.iter().sum::<usize>() > 0, "{name}: {rows:?}");
        // Reading the other tool's file gives the same as reading its recording.
        let again = format!("{name}.csv");
        assert!(run(folder, &["convert", &recording, &again]).status.success(), "{name}");
    }
    assert_snapshot!(refused);
}

#[test]
fn histograms_are_shown_and_refused_by_all_that_needs_starts() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    for name in ["oslat_two_cores.txt", "rtla_timerlat_hist.txt"] {
        let path = samples().into_iter().find(|path| path.ends_with(name)).unwrap();
        fs_err::copy(path, folder.join(name)).unwrap();
    }
    let calls: [&[&str]; 10] = [
        &["convert", "oslat_two_cores.txt", "gaps.quell"],
        &["show", "gaps.quell"],
        &["convert", "rtla_timerlat_hist.txt", "late.quell"],
        &["show", "late.quell"],
        &["convert", "gaps.quell", "gaps.hlog"],
        &["predict", "gaps.quell"],
        &["compare", "gaps.quell", "late.quell"],
        &["advise", "gaps.quell", "--ranks", "64"],
        &["convert", "gaps.quell", "gaps.pftrace"],
        &["simulate", "--pattern", "barrier", "--ranks", "4", "--noise", "gaps.quell"],
    ];
    let printed = calls.map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(folder, args)));
    assert_snapshot!(printed.concat());
    let replayed = run(folder, &["replay", "gaps.quell", "--", "true"]);
    assert!(!replayed.status.success());
    let printed = String::from_utf8_lossy(&replayed.stderr).into_owned();
    assert!(printed.contains("neither order nor starts"), "{printed}");
}

#[test]
fn a_recording_goes_into_every_format_that_has_room_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let path = samples().into_iter().find(|path| path.ends_with("osnoise_trace_events.txt")).unwrap();
    fs_err::copy(path, folder.join("trace.txt")).unwrap();
    let calls: [&[&str]; 12] = [
        &["convert", "trace.txt", "a.quell"],
        &["convert", "a.quell", "a.csv"],
        &["convert", "a.quell", "a.out"],
        &["convert", "a.quell", "noise.txt", "--to", "loggopsim"],
        &["convert", "a.quell", "a.hlog"],
        &["convert", "a.quell", "a.pftrace"],
        &["convert", "a.quell", "a.trace.json"],
        &["convert", "a.quell", "a.otf2"],
        &["convert", "a.quell", "a.prom"],
        &["convert", "a.quell", "a.vpsum"],
        &["convert", "a.hlog", "log.quell"],
        &["convert", "a.quell", "a.csv"],
    ];
    let printed = calls.map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(folder, args)));
    let texts = ["a.csv", "noise.txt", "a.trace.json", "a.prom"]
        .map(|name| format!("== {name}\n{}", text(folder, name)));
    // The bucket bounds are those of `serve-metrics`.
    let texts = texts.concat();
    let texts = texts.lines().filter(|line| !line.contains("_bucket{") || line.contains("+Inf"));
    assert_snapshot!(printed.concat() + &texts.collect::<Vec<_>>().join("\n"));
    assert_eq!(text(folder, "a.out"), text(folder, "noise.txt"));

    // Our own reader of foreign archives reads it: a location for the CPU, and each enter has a leave.
    use quell_recording::mpi::{Run as _, What};
    let mut archive = quell_otf2::Archive::open(&folder.join("a.otf2")).unwrap();
    let names: Vec<String> = archive.definitions().regions.iter().map(|region| region.name.clone()).collect();
    for name in ["detour", "tick", "nmi", "task:migration/8", "softirq:SCHED"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert_eq!(archive.definitions().locations.len(), 1);
    let mut events = Vec::new();
    while archive.read(0, &mut events).unwrap() {}
    let mut open = Vec::new();
    for event in &events {
        match event.what {
            What::Enter(region) => open.push(region),
            What::Leave(region) => assert_eq!(open.pop(), Some(region)),
            _ => {}
        }
    }
    assert!(open.is_empty() && events.len() >= 14, "{events:?}");
}

#[test]
fn a_network_of_netgauges_is_one_for_simulate() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let path = samples().into_iter().find(|path| path.ends_with("netgauge_loggp.out")).unwrap();
    fs_err::copy(path, folder.join("loggp.out")).unwrap();
    let calls: [&[&str]; 3] = [
        &["convert", "loggp.out", "net.toml"],
        &["convert", "loggp.out", "net.quell"],
        &["convert", "loggp.out", "net.toml"],
    ];
    let printed = calls.map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(folder, args)));
    assert_snapshot!(printed.concat() + &text(folder, "net.toml"));
    let simulated = run(folder, &["simulate", "--pattern", "barrier", "--ranks", "4", "--net", "net.toml"]);
    assert!(simulated.status.success(), "{}", String::from_utf8_lossy(&simulated.stderr));
}

#[test]
fn the_list_of_formats_is_a_table_a_document_and_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let listed = transcript(folder, &["convert", "--list"]);
    let document = support::json(folder, &["convert", "--list", "--json"]);
    let formats = document["formats"].as_array().unwrap();
    assert!(formats.len() > 20 && document["schema"] == "quell.formats/1");
    for format in formats {
        assert!(listed.contains(format["name"].as_str().unwrap()), "{format}");
    }
    // The formats that quell writes are those that `--to` accepts.
    let help = transcript(folder, &["convert", "--help"]);
    for word in formats.iter().filter_map(|format| format["written"].as_str()) {
        assert!(help.contains(&format!("- {word}:")), "{word}: {help}");
    }
}
