//! `quell convert` between recordings and the files of quantum benchmarks, from outside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use insta::assert_snapshot;
use quell_recording::{
    Cpu, Manifest, Method, MpiFacts, Nanos, Phase, Quantum, RankFacts, Recording, State, Writer, add_phases,
    read_phases,
};
use support::{run, transcript};

fn us(us: u64) -> Nanos {
    Nanos::from_nanos(us * 1_000)
}

/// Two ranks, five iterations each.
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
    let said = calls.map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(folder, args)));
    assert_snapshot!(said.concat() + &text(folder, "one.vpsum") + "\n" + &text(folder, "h.psnap"));
    assert_eq!(text(folder, "one.vpsum"), text(folder, "all.vpsum/vpsum.1"));
    assert_eq!(text(folder, "h.psnap"), text(folder, "again.psnap"));
    // All but the work and the wait, which vpsum has no room for.
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
        manifest.cpus = vec![quell_recording::CpuFacts::of_span(Cpu(1), span)];
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
