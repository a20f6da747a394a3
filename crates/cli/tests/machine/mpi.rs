//! Benchmarks under the MPIs of this machine: how they start, how they end, and which culprits they name.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::disturbers::rename_this_thread;
use crate::support::node::{disturb, last_cpu, until};
use crate::support::small_disk::SmallDisk;
use crate::support::tools::{has_two_cpus, is_root, mpis};
use crate::support::{Guard, cpus, json, quell, run};
use quell_recording::rank_file::RankFile;
use quell_recording::read_phases;
use quell_testing::{machine, measure, skip};
use serde_json::Value;

fn signal(pid: u32, signal: i32) {
    // SAFETY: a plain system call on a process that this test started.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// The ids of the ranks' processes, once every rank has written phases.
fn ranks_at_work(folder: &Path, ranks: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    until("phases of every rank", || {
        let files = (0..ranks).map(|rank| RankFile::open(&folder.join(format!("ranks/{rank:06}.rank"))));
        let files: Vec<RankFile> = files.filter_map(Result::ok).collect();
        let worked = |file: &&RankFile| file.series.first().is_some_and(|series| !series.is_empty());
        pids = files.iter().filter(worked).filter_map(|file| file.number("pid")).collect();
        pids.len() == ranks
    });
    pids
}

fn gone(pid: u32) -> bool {
    // A process without a program is a zombie.
    std::fs::read_link(format!("/proc/{pid}/exe")).is_err()
}

/// The number of phases in the recordings of a run's folder, by host.
fn phases_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let recordings = entries.filter(|path| path.join("quanta.parquet").exists());
    recordings.map(|path| read_phases(&path).unwrap().len()).sum()
}

/// Starts a long run in the background; returns it and its folder.
fn long_run(folder: &Path, mpi: &str) -> (Guard, PathBuf) {
    let child = quell(folder)
        .args([
            "bench",
            "bsp",
            "-n",
            "2",
            "--duration",
            "10min",
            "--sources",
            "off",
            "--mpi",
            mpi,
            "-o",
            "run",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (Guard(child), folder.join("run"))
}

fn ended(mut guard: Guard) -> (Option<i32>, String) {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut guard.0.stderr.take().unwrap(), &mut text).unwrap();
    (guard.0.wait().unwrap().code(), text)
}

#[test]
fn ranks_have_a_cpu_each_or_share_them() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let ranks = cpus().min(2).to_string();
        let few = ["bench", "bsp", "-n", &ranks, "--phases", "30", "--mpi", mpi, "-o", "few", "--json"];
        let few = json(dir.path(), &few);
        assert_eq!(few["run"]["state"], "complete");
        assert_eq!(few["phases"], 30, "{few}");
        let on: Vec<_> = few["by_rank"].as_array().unwrap().iter().map(|row| row["cpus"].clone()).collect();
        assert!(on.len().to_string() == ranks && (on.len() < 2 || on[0] != on[1]), "{mpi}: {on:?}");
        let many = ["bench", "bsp", "-n", "8", "--phases", "30", "--mpi", mpi, "-o", "many", "--json"];
        let many = json(dir.path(), &many);
        assert_eq!(many["by_rank"].as_array().unwrap().len(), 8);
        assert_eq!(phases_in(&dir.path().join("many")), 8 * many["phases"].as_u64().unwrap() as usize);
    }
}

#[test]
fn an_ordinary_user_runs_them_too() {
    let _machine = machine();
    if !is_root() {
        return;
    }
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        open(dir.path());
        let program = dir.path().join("quell");
        std::fs::copy(env!("CARGO_BIN_EXE_quell"), &program).unwrap();
        open(&program);
        let output = Command::new(&program)
            .args(["bench", "bsp", "-n", "2", "--phases", "50", "--mpi", mpi, "-o", "run", "--json"])
            .current_dir(dir.path())
            .env("HOME", "/nonexistent")
            .env("TMPDIR", dir.path())
            .env_remove("XDG_CACHE_HOME")
            .uid(65_534)
            .gid(65_534)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{mpi}: {printed}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&document["phases"], &document["run"]["state"]), (&50.into(), &"complete".into()));
        let warnings = document["warnings"].to_string();
        assert!(
            warnings.contains("culprits-unknown") || warnings.contains("kernel-not-watched"),
            "no reason for missing culprits: {warnings}"
        );
    }
}

#[test]
fn a_prediction_stands_next_to_the_run() {
    let _machine = machine();
    let Some(mpi) = mpis().first().copied() else { return };
    let dir = tempfile::tempdir().unwrap();
    let bench =
        ["bench", "bsp", "-n", "1", "--duration", "1s", "--mpi", mpi, "-o", "run", "--json", "--predict"];
    let document = json(dir.path(), &bench);
    let predicted = &document["predicted"];
    assert_eq!(predicted["from"], serde_json::json!(["before", "after"]));
    assert!(predicted["mean_phase_ns"].as_f64().unwrap() > 1e6);
}

#[test]
fn a_rank_that_dies_ends_the_run_and_keeps_what_is_finished() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let (child, folder) = long_run(dir.path(), mpi);
        let pids = ranks_at_work(&folder, 2);
        signal(pids[1], libc::SIGKILL);
        let (code, printed) = ended(child);
        assert_eq!(code, Some(1), "{mpi}: {printed}");
        assert!(printed.contains("the run failed: a rank died"), "{mpi}: {printed}");
        until("the end of all ranks", || pids.iter().all(|&pid| gone(pid)));
        assert!(phases_in(&folder) > 0, "{mpi}: nothing was kept");
    }
}

#[test]
fn an_interrupt_ends_the_run_in_order() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let (child, folder) = long_run(dir.path(), mpi);
        let pids = ranks_at_work(&folder, 2);
        signal(child.0.id(), libc::SIGINT);
        let (code, printed) = ended(child);
        assert_eq!(code, Some(0), "{mpi}: {printed}");
        assert!(printed.contains("interrupted: the phases that were finished are kept"), "{mpi}: {printed}");
        until("the end of all ranks", || pids.iter().all(|&pid| gone(pid)));
        assert!(phases_in(&folder) > 0, "{mpi}: nothing was kept");
    }
}

#[test]
fn an_interrupt_ends_the_second_of_several_runs_too() {
    let _machine = machine();
    let Some(mpi) = mpis().first().copied() else { return };
    let dir = tempfile::tempdir().unwrap();
    let child = quell(dir.path())
        .args(["bench", "fwq", "-n", "1,2", "--duration", "6s", "--mpi", mpi, "-o", "run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pids = ranks_at_work(&dir.path().join("run/n00002"), 2);
    signal(child.id(), libc::SIGINT);
    let (code, printed) = ended(Guard(child));
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("interrupted: the phases that were finished are kept"), "{printed}");
    until("the end of all ranks", || pids.iter().all(|&pid| gone(pid)));
    assert!(phases_in(&dir.path().join("run/n00001")) > 0 && phases_in(&dir.path().join("run/n00002")) > 0);
}

#[test]
fn ranks_end_with_quell_and_their_phases_are_collected_later() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let (child, folder) = long_run(dir.path(), mpi);
        let pids = ranks_at_work(&folder, 2);
        drop(child);
        until("the end of all ranks", || pids.iter().all(|&pid| gone(pid)));
        let shown = json(dir.path(), &["bench", "show", "run", "--json"]);
        assert_eq!(shown["run"]["state"], "failed");
        assert!(shown["phases"].as_u64().unwrap() > 0, "{mpi}: nothing was kept");
        // The state of a run whose quell was killed while it collected.
        let facts = fs_err::read_to_string(folder.join("run.json")).unwrap();
        fs_err::write(folder.join("run.json"), facts.replace("\"failed\"", "\"running\"")).unwrap();
        let again = json(dir.path(), &["bench", "show", "run", "--json"]);
        assert_eq!(again["phases"], shown["phases"], "{mpi}");
    }
}

#[test]
fn a_full_disk_is_named() {
    let _machine = machine();
    let Some(small) = SmallDisk::mount(2 << 20) else {
        return skip("this user may not mount a small file system");
    };
    for mpi in mpis() {
        let words = ["bench", "fwq", "-n", "2", "--quantum", "10us", "--barrier-every", "1000", "--duration"];
        let output = run(small.path(), &[&words[..], &["5min", "--mpi", mpi, "-o", mpi]].concat());
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{mpi}: {printed}");
        assert!(printed.contains("No space left on device"), "{mpi}: {printed}");
        std::fs::remove_dir_all(small.path().join(mpi)).unwrap();
    }
}

/// Runs a benchmark with a disturber on one of its CPUs; returns the number of operations that it mostly delayed, and how many of them name
/// it.
fn disturbed(words: &[&str], mpi: &str) -> (usize, usize) {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let (document, burns) = std::thread::scope(|scope| {
        // It burns every 10 ms on one of the ranks' CPUs.
        let disturber = scope.spawn(|| {
            rename_this_thread(DISTURBER.as_bytes());
            disturb(last_cpu(), 300_000, &stop)
        });
        let common = ["-n", "2", "--mpi", mpi, "--json", "--sources", "on", "-o", "run"];
        let document = json(dir.path(), &[&["bench"], words, &common].concat());
        stop.store(true, Ordering::Relaxed);
        (document, disturber.join().unwrap())
    });
    let found = if words[0] == "bsp" { &document } else { &document["runs"][0] };
    blamed(&found["anomalies"]["listed"], &burns)
}

const DISTURBER: &str = "known-burner";

/// The number of anomalies that are mostly caused by a burn, and how many of them name it as culprit.
fn blamed(listed: &serde_json::Value, burns: &[(u64, u64)]) -> (usize, usize) {
    let (mut hit, mut named) = (0, 0);
    for anomaly in listed.as_array().unwrap() {
        let ns = |key: &str| anomaly[key].as_u64().unwrap();
        let (start, end) = (ns("start_ns"), ns("start_ns") + ns("total_ns"));
        let common = |&(from, to): &(u64, u64)| to.min(end).saturating_sub(from.max(start));
        if burns.iter().map(common).max().unwrap_or(0) * 4 < ns("excess_ns") * 3 {
            continue;
        }
        hit += 1;
        named += usize::from(anomaly["culprit"]["source"] == format!("task:{DISTURBER}"));
    }
    (hit, named)
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn a_disturber_is_blamed_for_what_it_held_up() {
        let _machine = machine();
        if !is_root() || !has_two_cpus() {
            return;
        }
        let Some(mpi) = mpis().first().copied() else { return };
        let benches: [&[&str]; 2] = [&["bsp", "--duration", "4s"], &["allreduce", "--count", "64Ki"]];
        for words in benches {
            measure(|_| {
                let (hit, named) = disturbed(words, mpi);
                let reported =
                    format!("{}: {named} of {hit} that the disturber held up are blamed on it", words[0]);
                // On a busy machine, the disturber causes too few of the anomalies to judge by.
                if hit > 20 && named * 100 >= hit * 95 { Ok(()) } else { Err(reported) }
            });
        }
    }

    #[test]
    fn every_benchmark_reports_its_findings() {
        let _machine = machine();
        let Some(mpi) = mpis().first().copied() else { return };
        let dir = tempfile::tempdir().unwrap();
        let bench = |words: &[&str]| {
            let mut all = vec!["bench", words[0], "--mpi", mpi, "--json"];
            all.extend(&words[1..]);
            json(dir.path(), &all)
        };
        let mut reduced = Value::Null;
        measure(|n| {
            let folder = format!("a{n}");
            reduced = bench(&["allreduce", "-n", "1,2", "--count", "5000", "--work", "5us", "-o", &folder]);
            let slope = reduced["fit"]["b_ns"].as_f64().unwrap();
            assert_eq!(json(dir.path(), &["bench", "show", &folder, "--json"]), reduced, "{folder}");
            if slope > 0.0 { Ok(()) } else { Err(format!("two ranks are quicker than one: {reduced}")) }
        });
        assert_eq!(reduced["runs"].as_array().unwrap().len(), 2);
        assert_eq!(reduced["runs"][1]["operations"], 5000);
        let halo = bench(&[
            "halo", "-n", "2", "--leave", "1", "--dims", "3", "--count", "500", "--rounds", "2", "-o", "h",
        ]);
        let layouts = halo["layouts"].as_array().unwrap();
        assert_eq!(
            (layouts[0]["run"]["ranks"].clone(), layouts[1]["run"]["ranks"].clone()),
            (2.into(), 1.into())
        );
        assert_eq!(layouts[0]["rounds"], 2);
        let fwq = bench(&["fwq", "-n", "2", "--count", "200", "--quantum", "500us", "-o", "f"]);
        assert_eq!(fwq["iterations"], 200);
        // `bench show` prints the same document from the folder, to the last digit.
        for (name, document) in [("h", halo), ("f", fwq)] {
            assert_eq!(json(dir.path(), &["bench", "show", name, "--json"]), document, "{name}");
        }
    }
}
