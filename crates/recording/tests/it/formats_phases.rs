//! Files of vpsum, PSNAP and other quantum benchmarks: read, written, and read again.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use quell_recording::formats::{self, Format, Imported};
use quell_recording::{Cpu, Manifest, Method, MpiFacts, Nanos, Phase, RankFacts, State, Warning};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> Imported {
    formats::import_all(&data(name)).unwrap()
}

fn parse(text: &str) -> Result<Imported, String> {
    formats::parse_all(Path::new("in"), text.as_bytes()).map_err(|error| error.to_string())
}

fn written(manifest: &Manifest, phases: &[(Cpu, Phase)], format: Format) -> String {
    let mut out = Vec::new();
    formats::export_phases(manifest, phases, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn us(us: u64) -> Nanos {
    Nanos::from_nanos(us * 1_000)
}

#[test]
fn the_papers_vpsum_sample_is_read() {
    let Imported { recording, phases } = read("vpsum_paper.txt");
    let manifest = &recording.manifest;
    assert_eq!((manifest.method, phases.len()), (Method::Phases, 13));
    let fourth = phases[4].1;
    assert_eq!((fourth.index, fourth.start, fourth.compute), (4, us(4_003), us(1_003)));
    assert!(
        manifest.warnings[1] == Warning::StartsUnknown { ticks: true } && manifest.zero_unix_ns.is_none()
    );
    assert_eq!(manifest.mpi.as_ref().unwrap().operation, "barrier");
    assert_eq!(recording.quanta[0].quanta.len(), 13);
    // Written by quell and read again, they are the same.
    let again = parse(&written(manifest, &phases, Format::Vpsum)).unwrap();
    assert_eq!(again.phases, phases);
}

#[test]
fn the_papers_psnap_histogram_survives_the_round_trip() {
    let Imported { recording, phases } = read("psnap_paper.txt");
    let manifest = &recording.manifest;
    assert_eq!(
        (phases.len(), manifest.unordered, manifest.host.as_deref()),
        (49_932, true, Some("p6ihhpc5"))
    );
    assert_eq!((phases[37_174].1.compute, phases[0].1.work), (us(101), 94_161));
    let text = manifest.warnings[1].to_string();
    assert!(text.contains("5009267 us of 5016986 us"), "{text}");
    let original = fs_err::read_to_string(data("psnap_paper.txt")).unwrap();
    // Only the sum differs, because the rows in the paper do not add up to it.
    assert_eq!(written(manifest, &phases, Format::Psnap), original.replace("5016986", "5009267"));
}

#[test]
fn ranks_of_several_hosts_stay_where_they_were() {
    let text = "# 0 30 n1\n0 10 3 n1\n# 7 24 n2\n7 10 1 n2\n7 14 1 n2\n";
    let found = parse(text).unwrap();
    let manifest = &found.recording.manifest;
    assert_eq!(
        (manifest.host_of(0), manifest.host_of(7), manifest.host.as_deref()),
        (Some("n1"), Some("n2"), None)
    );
    assert_eq!(written(manifest, &found.phases, Format::Psnap), text, "unknown work is left out");
}

#[test]
fn steps_of_work_are_those_of_a_rank_only_where_all_did_the_same() {
    let calibrated = "my_count= 7 global_min= 5 min_loc= 1 global_max= 9 max_loc= 2\n";
    let work = |used: &str| parse(&format!("{calibrated}{used}0 10 3 n1\n")).unwrap().phases[0].1.work;
    assert_eq!((work("Using Global max for calibration\n"), work("")), (9, 0));
}

#[test]
fn quantum_files_of_other_tools_are_read() {
    let fwq = read("netgauge_fwq.out").recording;
    let quanta = &fwq.quanta[0].quanta;
    assert_eq!((fwq.manifest.method, fwq.manifest.quantum_ns), (Method::Fwq, Some(us(1_000))));
    assert_eq!(
        (quanta[1].start, quanta[1].duration, fwq.manifest.host.as_deref()),
        (us(1_010), us(1_032), Some("vm"))
    );
    let llnl = read("llnl_fwq-th.dat").recording;
    let first = llnl.quanta[0].quanta[0];
    assert_eq!((llnl.quanta[0].cpu, first.duration.as_nanos()), (Cpu(1), 35_503));
    let ftq = read("minnich_ftq_0.dat").recording;
    let second = ftq.quanta[0].quanta[1];
    assert_eq!((ftq.manifest.method, second.start.as_nanos(), second.work), (Method::Ftq, 100_018, 3_009));
    assert_eq!(second.duration, us(100));
}

#[test]
fn netgauge_quanta_survive_the_round_trip() {
    let ftq = "# Benchmark Method: ftq\n# Compute-Cycle Duration: 500 usec\n# Number of Cycles/Detours: 2\n\
               # Fixed Time Quantum Benchmark\n# cycle number    workload iterations\n 0                812\n 1                799\n";
    let fwq = fs_err::read_to_string(data("netgauge_fwq.out")).unwrap();
    for text in [ftq, &fwq] {
        let recording = parse(text).unwrap().recording;
        let mut out = Vec::new();
        formats::export(&recording, Format::Netgauge, &mut out).unwrap();
        let rows = |text: &str| {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        let out = String::from_utf8(out).unwrap();
        assert_eq!(rows(&out), rows(text));
        assert_eq!(parse(&out).unwrap().recording, recording);
    }
}

#[test]
fn refusals_give_the_line_and_the_reason() {
    for (text, expected) in [
        ("0 1 99999999999 n\n", "line 1: with this row the histogram counts more than 16777216 quanta"),
        ("0 1 16000000 n\n1 1 16000000 n\n", "line 2: with this row"),
        ("0 1 1 n\n0 2 1 m\n", "line 2: rank 0 is on the host `m`, and was on `n`"),
        ("0 1 1 n\n0 2\n", "line 2: `0 2` is not `rank us count host`"),
        ("0 18446744073709551615 2 n\n", "last beyond all time"),
        ("4294967296 1 1 n\n", "line 1"),
        ("0 5 9\n0 6 9\n", "line 2: iteration 0 follows 0"),
        ("0 5 9\n1 x 9\n", "line 2: `1 x 9` is not `iteration us clock`"),
        ("0 18446744073709551615 9\n", "line 1: the iteration ends beyond all time"),
        ("# quell vpsum 1\n# zero, us since 1970: 50\n0 5 49\n", "line 3: the iteration began before"),
        ("# Benchmark Method: fwq\n0 1\n0 1\n", "line 3: quantum 0 follows quantum 0"),
        ("# Benchmark Method: ftq\n0 1\n", "line 2: no `Compute-Cycle Duration`"),
        ("# Benchmark Method: fwq\n0 1.5\n", "line 2: `0 1.5` is not the number and the value"),
        ("Speed: thread 0, GHz -1\n", "line 1: `Speed: thread 0, GHz -1` does not end with"),
        ("Speed: thread 0, GHz 2\nSpeed: thread 1, GHz 2\n", "line 2: a second thread"),
        ("Speed: thread 0, GHz 1e-300\n5\n", "line 2: `5` is not a number of clock ticks"),
        ("# Frequency 10\n5 1\n4 1\n", "line 3: it begins before"),
        ("# Frequency 0\n5 1\n", "line 2: no `# Frequency`"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn a_folder_of_files_is_one_recording() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs_err::write(dir.path().join(name), text).unwrap();
    let error = || formats::import_all(dir.path()).unwrap_err().to_string();
    assert!(error().contains("no files of vpsum's"), "{}", error());
    write("vpsum.10", "# quell vpsum 1\n# host: b\n# zero, us since 1970: 70\n3 9 75\n");
    write("vpsum.2", "# quell vpsum 1\n# host: a\n# zero, us since 1970: 50\n3 8 50\n");
    let found = formats::import_all(dir.path()).unwrap();
    let rows: Vec<_> = found.phases.iter().map(|(_, p)| (p.rank, p.index, p.start, p.compute)).collect();
    assert_eq!(rows, [(2, 3, us(0), us(8)), (10, 3, us(25), us(9))]);
    let manifest = &found.recording.manifest;
    assert_eq!((manifest.zero_unix_ns, manifest.host_of(10)), (Some(50_000), Some("b")));
    // No other file of ranks 0 to 10 is there.
    assert!(
        manifest.warnings.contains(&Warning::RankFilesMissing { ranks: 9, rank: 0 }),
        "{:?}",
        manifest.warnings
    );
    write("vpsum.0", "# quell vpsum 1\n# rank: 0 of 12\n3 8 50\n");
    let warnings = formats::import_all(dir.path()).unwrap().recording.manifest.warnings;
    assert!(warnings.contains(&Warning::RankFilesMissing { ranks: 9, rank: 1 }), "{warnings:?}");
    write("again.2", "0 1 1\n");
    assert!(error().contains("vpsum.2: it is of rank 2, as another file"), "{}", error());
    write("again.2", "1 2\n");
    assert!(error().contains("again.2: it is no file of vpsum's"), "{}", error());
    write("again.2", "");
    assert!(error().contains("again.2: the file is empty"), "{}", error());
}

/// Phases of up to three ranks, each on its own CPU.
fn any_phases() -> impl Strategy<Value = Vec<(Cpu, Phase)>> {
    let of_rank = prop::collection::vec((1u64..9, 0u64..1 << 40, 0u64..1 << 34), 1..30);
    prop::collection::vec(of_rank, 1..4).prop_map(|ranks| {
        let mut all = Vec::new();
        for (rank, rows) in (0u32..).map(|rank| rank * 5).zip(ranks) {
            let mut index = 0;
            for (step, start, compute) in rows {
                let [start, compute] = [start, compute].map(Nanos::from_nanos);
                all.push((Cpu(rank + 2), Phase { rank, index, start, work: 4, compute, wait: Nanos::ZERO }));
                index += step;
            }
        }
        all
    })
}

fn manifest(ranks: &[u32], zero: Option<u64>) -> Manifest {
    let mut manifest = Manifest::new(Method::Phases, State::Complete);
    manifest.zero_unix_ns = zero;
    manifest.host = Some("n 1".into());
    let facts = |&rank: &u32| RankFacts {
        rank,
        pid: 1,
        cpus: "0".into(),
        ns_per_iteration: 1.0,
        timing_ns: 0.0,
        clock_offset_ns: 0,
        clock_error_ns: 0,
    };
    let here: Vec<RankFacts> = ranks.iter().map(facts).collect();
    let (library, operation) = ("any".into(), "none".into());
    let ranks = here.len() as u32;
    manifest.mpi = Some(MpiFacts { bench: "fwq".into(), library, operation, bytes: 0, ranks, here });
    manifest
}

/// The phase as the format keeps it.
fn cut_to_us(phase: &Phase) -> Phase {
    let whole = |time: Nanos| us(time.as_nanos() / 1_000);
    Phase { start: whole(phase.start), compute: whole(phase.compute), work: 0, ..*phase }
}

proptest! {
    #[test]
    fn vpsum_keeps_whole_microseconds(phases in any_phases(), zero in prop::option::of(0u64..1 << 61)) {
        let dir = tempfile::tempdir().unwrap();
        let ranks: Vec<u32> = phases.chunk_by(|a, b| a.1.rank == b.1.rank).map(|rank| rank[0].1.rank).collect();
        let manifest = manifest(&ranks, zero);
        for of_rank in phases.chunk_by(|a, b| a.1.rank == b.1.rank) {
            let file = dir.path().join(format!("vpsum.{}", of_rank[0].1.rank));
            fs_err::write(file, written(&manifest, of_rank, Format::Vpsum)).unwrap();
        }
        let back = formats::import_all(dir.path()).unwrap();
        let expected: Vec<_> = phases.iter().map(|(cpu, phase)| (*cpu, cut_to_us(phase))).collect();
        prop_assert_eq!(&back.phases, &expected);
        let reported = back.recording.manifest;
        prop_assert_eq!(reported.zero_unix_ns.map(|ns| ns / 1_000), zero.map(|ns| ns / 1_000));
        prop_assert_eq!((reported.host.as_deref(), reported.mpi.unwrap().ranks), (Some("n 1"), ranks.len() as u32));
    }

    #[test]
    fn psnap_keeps_the_histogram(phases in any_phases()) {
        let ranks: Vec<u32> = phases.iter().map(|(_, phase)| phase.rank).collect();
        let text = written(&manifest(&ranks, None), &phases, Format::Psnap);
        let back = parse(&text).unwrap();
        prop_assert_eq!(&written(&back.recording.manifest, &back.phases, Format::Psnap), &text);
        prop_assert_eq!(back.recording.manifest.warnings.len(), 1, "the sums are right");
        let lengths = |phases: &[(Cpu, Phase)]| {
            let mut all: Vec<_> = phases.iter().map(|(_, p)| (p.rank, p.compute.as_nanos() / 1_000)).collect();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(lengths(&back.phases), lengths(&phases));
    }

    #[test]
    fn any_lines_end_in_a_recording_or_a_reason(
        head in "(my_count= 1 global_max= 9\n|# Benchmark Method: f[wt]q\n|# Frequency [0-9]\n|Speed: thread 0, GHz [0-9]\n|# quell vpsum 1\n|)",
        body in "(# [ -~]{0,20}\n|[0-9]{1,20}[ ,][0-9]{1,4}([ ,]-?[0-9]{1,20})?( [a-z]{1,3})?\n|[ -~]{0,12}\n){0,8}",
    ) {
        // Whatever can be read must satisfy what users of phases rely on.
        if let Ok(found) = parse(&(head + &body)) {
            for (_, phase) in &found.phases {
                prop_assert!(phase.start.checked_add(phase.compute).is_some());
            }
        }
    }

    #[test]
    fn any_bytes_end_in_a_recording_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = formats::parse(Path::new("in"), &bytes);
    }
}
