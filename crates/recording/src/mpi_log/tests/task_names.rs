//! Tasks' counters against runs whose every piece is known.

use std::collections::BTreeMap;

use super::*;
use crate::manifest::{Method, State as Progress};
use crate::{Cpu, CpuFacts, Interval, Manifest, Nanos, Source, Span, Taken, Thread, Writer};

/// CLOCK_MONOTONIC at the recording's zero.
const ZERO_NS: u64 = 1_000;
/// Of `head`.
const TID: u32 = 100;
const OTHER_RANK: u32 = 101;
const OWN_THREAD: u32 = 900;

/// A run of a task while the rank's thread waited, with its end on CLOCK_MONOTONIC.
#[derive(Clone, Debug)]
struct Ran {
    end_ns: u64,
    ns: u64,
    pid: u32,
    name: String,
}

fn ran(end_ns: u64, ns: u64, pid: u32, name: &str) -> Ran {
    Ran { end_ns, ns, pid, name: name.to_owned() }
}

/// A recording of the host in which rank 0's thread waited for these.
fn recording(folder: &Path, runs: &[Ran]) -> PathBuf {
    let mut manifest = Manifest::new(Method::Kernel, Progress::Recording);
    manifest.host = Some("here".into());
    manifest.zero_monotonic_ns = Some(ZERO_NS);
    let span = Span { start: Nanos::from_nanos(0), end: Nanos::from_secs(10) };
    manifest.cpus = vec![CpuFacts::from_span(Cpu(0), span)];
    let path = folder.join("here.quell");
    let mut writer = Writer::create(&path, &manifest).unwrap();
    let row = |run: &Ran| Interval {
        start: Nanos::from_nanos(run.end_ns - run.ns - ZERO_NS),
        duration: Nanos::from_nanos(run.ns),
        net: Nanos::from_nanos(run.ns),
        source: Source::Task(run.name.as_str().into()),
        pid: run.pid,
        victim: TID,
        detail: None,
        cause: None,
    };
    let thread = |tid, pid| Thread {
        tid,
        pid,
        comm: "ring".into(),
        start: Nanos::from_nanos(0),
        end: Nanos::from_secs(10),
        on_cpu: Nanos::from_secs(10),
        run_delay: Nanos::from_nanos(0),
        taken: [Taken::default(); SourceKind::ALL.len()],
        yielded: Taken::default(),
        moved: Taken::default(),
    };
    writer.intervals(&runs.iter().map(|run| (Cpu(0), row(run))).collect::<Vec<_>>()).unwrap();
    let threads = [(TID, TID), (OTHER_RANK, OTHER_RANK), (OWN_THREAD, TID)];
    writer.threads(&threads.map(|(tid, pid)| (Cpu(0), thread(tid, pid)))).unwrap();
    writer.finish(&mut manifest).unwrap();
    path
}

/// Entries of calls with the kernel's counter of preemptions: its time, and the total.
fn read_at(totals: &[(u64, u64)]) -> Vec<u8> {
    let enter = |&(time_ns, total_ns): &(u64, u64)| record(kind::ENTER, 0b10_0000, 1, time_ns, &[total_ns]);
    [record(kind::REGION, 1, 1, 0, &words("MPI_Send\0\0"))]
        .into_iter()
        .chain(totals.iter().map(enter))
        .collect::<Vec<_>>()
        .concat()
}

/// The counters of rank 0 by name after each entry. They never fall.
fn counters(runs: &[Ran], totals: &[(u64, u64)]) -> Vec<BTreeMap<String, u64>> {
    let mut tid = log(0, 2, &read_at(totals));
    tid[field::TID.at..field::TID.at + 4].copy_from_slice(&TID.to_le_bytes());
    let dir = folder_with(&[tid, log(1, 2, &[])]);
    let mut run = LogRun::open(dir.path()).unwrap();
    run.name_tasks(&[recording(dir.path(), runs)]).unwrap();
    let (events, damage) = all(&mut run, 0);
    assert_eq!(damage, None);
    let (mut now, mut after) = (BTreeMap::new(), Vec::new());
    for event in events {
        match event.what {
            What::Noise { source, total_ns } => {
                let name = run.definitions().sources[source as usize].clone();
                assert!(now.insert(name, total_ns) < Some(total_ns), "it fell or stayed");
            }
            What::Enter(_) => after.push(now.clone()),
            _ => {}
        }
    }
    assert_eq!(after.len(), totals.len());
    after
}

fn named(parts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    parts.iter().map(|&(name, ns)| (name.to_owned(), ns)).collect()
}

#[test]
fn each_task_has_the_time_that_it_ran() {
    let runs = [
        ran(50_000, 1_000, 7, "evil"),
        ran(53_000, 3_000, 8, "hog"),
        ran(150_000, 500, OTHER_RANK, "ring"),
        ran(160_000, 400, OWN_THREAD, "ring"),
    ];
    let found = counters(&runs, &[(40_000, 0), (60_000, 4_000), (200_000, 4_900)]);
    let first = named(&[("task:evil", 1_000), ("task:hog", 3_000)]);
    assert_eq!(found[1], first);
    let rest = named(&[(OTHER_RANKS, 500), (OWN_THREADS, 400)]);
    assert_eq!(found[2], first.into_iter().chain(rest).collect());
}

#[test]
fn runs_that_are_longer_than_all_time_together_have_a_name() {
    let ns = u64::MAX - 2 * ZERO_NS;
    let runs = [(7, "evil"), (7, "evil"), (8, "hog")].map(|(pid, name)| ran(u64::MAX, ns, pid, name));
    let found = counters(&runs, &[(40_000, 0), (60_000, 4_000)]);
    assert_eq!(found[1], named(&[("task", 4_000)]));
}

/// The recorder lost two intervals: the kernel's counter has their time, and no name.
#[test]
fn what_was_lost_stays_without_a_name() {
    let runs = [ran(50_000, 1_000, 7, "evil"), ran(250_000, 1_000, 7, "evil")];
    let found = counters(&runs, &[(60_000, 1_000), (200_000, 3_500), (300_000, 4_600)]);
    let at = |evil, task| named(&[("task:evil", evil), ("task", task)]);
    assert_eq!(found[1..], [at(1_000, 2_500), at(2_000, 2_600)]);
}

/// A thread that loses its CPU between reading the clock and reading the counter.
#[test]
fn a_task_that_ran_between_clock_and_counter_has_its_name() {
    let runs = [ran(104_000, 3_000, 7, "evil"), ran(109_000, 5_000, 8, "hog")];
    let found = counters(&runs, &[(100_000, 8_000), (200_000, 8_000)]);
    assert_eq!(found, vec![named(&[("task:evil", 3_000), ("task:hog", 5_000)]); 2]);
}

#[test]
fn a_bounded_number_of_tasks_has_a_name() {
    let runs: Vec<Ran> =
        (0..40).map(|task| ran(10_000 * (task + 1), 1_000 + task, 7, &format!("task{task}"))).collect();
    let total = runs.iter().map(|run| run.ns).sum();
    let found = counters(&runs, &[(1_000_000, total)]).remove(0);
    assert_eq!(found.len(), 13);
    assert_eq!(found["task"], (1_000..1_028).sum::<u64>());
    assert_eq!(found["task:task28"], 1_028);
    assert!(!found.contains_key("task:task27"));
}

#[test]
fn another_hosts_recording_names_nothing() {
    let dir = folder_with(&[log(0, 1, &read_at(&[(60_000, 1_000)]))]);
    let path = recording(dir.path(), &[ran(50_000, 1_000, 7, "evil")]);
    let mut manifest = Manifest::read(&path).unwrap();
    manifest.host = Some("there".into());
    fs::write(path.join("manifest.json"), serde_json::to_string(&manifest).unwrap()).unwrap();
    let mut run = LogRun::open(dir.path()).unwrap();
    let before = run.definitions().clone();
    run.name_tasks(&[path]).unwrap();
    assert_eq!(*run.definitions(), before);
    assert!(run.name_tasks(&[dir.path().join("no.quell")]).is_err());
    assert_eq!(*run.definitions(), before);
}

proptest! {
    /// Whatever was lost, the names and the rest add up to the kernel's counter; what was not lost has its name.
    #[test]
    fn names_add_up_to_the_kernels_counter(
        // Longer than reading the clock and the counters takes.
        pieces in prop::collection::vec((20_000u64..100_000, 1u64..50_000, 0u64..5, prop::bool::weighted(0.8)), 1..60),
        every in 1usize..5,
    ) {
        let (mut now, mut total, mut kept, mut truth) = (100_000, 0, Vec::new(), BTreeMap::<String, u64>::new());
        let (mut reads, mut expected) = (Vec::new(), Vec::new());
        for (at, (gap, ns, task, recorded)) in pieces.into_iter().enumerate() {
            now += gap + ns;
            total += ns;
            let name = format!("t{task}");
            if recorded {
                kept.push(ran(now, ns, 7, &name));
                *truth.entry(format!("task:{name}")).or_default() += ns;
            } else {
                *truth.entry("task".into()).or_default() += ns;
            }
            if at % every == 0 {
                reads.push((now, total));
                expected.push(truth.clone());
            }
        }
        let found = counters(&kept, &reads);
        for ((found, &(_, total)), expected) in found.iter().zip(&reads).zip(&expected) {
            prop_assert_eq!(found.values().sum::<u64>(), total);
            for (name, &ns) in found.iter().filter(|(name, _)| *name != "task") {
                prop_assert!(ns <= expected[name], "{} has more than it ran", name);
            }
            // Tasks below the least part have no name.
            if expected.values().all(|&ns| ns * 100 > total) && expected.len() == 5 {
                prop_assert!(found.values().all(|&ns| ns > 0));
            }
        }
        let lossless = !expected.last().is_some_and(|last| last.contains_key("task"));
        let last = truth.values().sum::<u64>();
        if lossless && truth.values().all(|&ns| ns * 100 > last) {
            prop_assert_eq!(found, expected);
        }
    }
}
