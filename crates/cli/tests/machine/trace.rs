//! `quell trace` of real MPI programs: what the archive holds, and what quell reports as missing.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::archived::{Archived, read};
use crate::support::disturbers::Chain;
use crate::support::node::{disturb, last_cpu, until};
use crate::support::replaying::launch;
use crate::support::tools::{self, compile};
use crate::support::{json, quell, run, transcript};
use insta::assert_snapshot;
use quell_recording::mpi_log::LogRun;
use quell_testing::{machine, measure, skip};

/// The installed MPIs; compiles the ring for each.
fn mpis(folder: &Path) -> Vec<&'static str> {
    let mpis = tools::mpis();
    mpis.iter().for_each(|mpi| compile(&format!("mpicc.{mpi}"), "ring.c", &folder.join(mpi), &[]));
    mpis
}

/// Traces the ring under an MPI.
fn trace(folder: &Path, mpi: &str, options: &[&str], ring: &[&str]) -> Output {
    let mut command = quell(folder);
    command.env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache")).arg("trace").args(options);
    command.arg("--").args(launch(mpi, 2)).arg(format!("./{mpi}")).args(ring).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether the kernel was recorded; reports the skipped check otherwise.
fn watched(printed: &str) -> bool {
    let watched = !printed.contains("stay unknown");
    if !watched {
        skip("counters, for the kernel may not be watched");
    }
    watched
}

#[test]
fn every_call_is_archived_with_counters_that_rise() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    for mpi in mpis(dir.path()) {
        let stop = AtomicBool::new(false);
        let output = std::thread::scope(|scope| {
            for cpu in 0..=last_cpu() {
                let stop = &stop;
                scope.spawn(move || disturb(cpu, 1_000_000, stop));
            }
            let output = trace(dir.path(), mpi, &["-o", &format!("run-{mpi}")], &["300"]);
            stop.store(true, Ordering::SeqCst);
            output
        });
        let printed = text(&output);
        assert!(output.status.success(), "{mpi}: {printed}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2 ranks, 300 rounds\n", "{mpi}");
        assert!(printed.contains(&format!("quell track run-{mpi}")), "{mpi}: {printed}");
        let folder = dir.path().join(format!("run-{mpi}"));
        let left = |name: &str| folder.join(name).exists();
        assert!(!left("logs") && !left("quell-trace.so") && left("traces.otf2"), "{mpi}: {printed}");
        if let Ok(printed) = Command::new("otf2-print").arg(folder.join("traces.otf2")).output() {
            let text = String::from_utf8_lossy(&printed.stdout).into_owned();
            assert!(printed.status.success() && text.contains("MPI_Allreduce"), "{mpi}: {text}");
        }
        let ranks = read(&folder);
        assert_eq!(ranks.len(), 2, "{mpi}");
        for Archived { allreduces, sends, recvs, .. } in &ranks {
            assert_eq!((*allreduces, *sends, *recvs), (300, 300, 300), "{mpi}: {ranks:?}");
        }
        if watched(&printed) {
            let noise = |source: &str| -> u64 { ranks.iter().map(|rank| rank.noise(source)).sum() };
            assert!(ranks.iter().all(|rank| rank.noise("tick") > 0), "{mpi}: {ranks:?}");
            // Some 30 times in 300 ms on each CPU, 1 ms each.
            assert!(noise("task") > 10_000_000, "{mpi}: {ranks:?}");
        }
    }
}

/// Compares what a rank lost to each task of a chain with what the kernel charged that task.
fn charged_as_it_ran(folder: &Path, mpi: &str, name: &str, chain: &Chain) -> Result<(), String> {
    let (cpu, logs) = (chain.cpu.to_string(), folder.join(name).join("logs"));
    let (output, ran_ns) = std::thread::scope(|scope| {
        let ran_ns = scope.spawn(|| {
            until("a log", || logs.read_dir().is_ok_and(|mut logs| logs.next().is_some()));
            chain.run()
        });
        let mut command = quell(folder);
        command.env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache"));
        command.args(["trace", "-o", name, "--"]).args(launch(mpi, 1));
        let output = command.args(["taskset", "-c", &cpu, &format!("./{mpi}"), "1500"]).output().unwrap();
        (output, ran_ns.join().unwrap())
    });
    assert!(output.status.success(), "{}", text(&output));
    let archived = &read(&folder.join(name))[0];
    let tracked = json(folder, &["track", name, "--json"]);
    let lost_ns = |source: &str| tracked["ranks"][0]["by_source"][source]["local_ns"].as_u64().unwrap_or(0);
    let of_archive = chain.hold_against(&ran_ns, |source| archived.noise(source));
    of_archive.map_err(|wrong| format!("archived: {wrong}"))?;
    chain.hold_against(&ran_ns, lost_ns).map_err(|wrong| format!("tracked: {wrong}"))
}

#[test]
fn a_commands_end_is_its_own_and_its_archive_is_made() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    for mpi in mpis(dir.path()) {
        let failed = trace(dir.path(), mpi, &["-o", &format!("failed-{mpi}"), "--keep-logs"], &["40", "7"]);
        assert_eq!(failed.status.code(), Some(7), "{mpi}: {}", text(&failed));
        let folder = dir.path().join(format!("failed-{mpi}"));
        assert!(folder.join("logs").is_dir());
        assert!(read(&folder).iter().all(|rank| rank.allreduces == 40), "{mpi}");
        let options = ["-o", &format!("killed-{mpi}"), "--sources", "off"];
        let killed = trace(dir.path(), mpi, &options, &["200", "0", "1"]);
        let printed = text(&killed);
        assert!(killed.status.code() > Some(3), "{mpi}: {printed}");
        assert!(printed.contains("MPI_Finalize never ended"), "{mpi}: {printed}");
        let ranks = read(&dir.path().join(format!("killed-{mpi}")));
        assert_eq!((ranks.len(), ranks[1].allreduces), (2, 100), "{mpi}: {ranks:?}");
        assert_eq!(ranks.iter().map(|rank| rank.noise("tick")).sum::<u64>(), 0, "not asked for");
    }
}

/// Another MPI than the tracer's, and a log that is full.
#[test]
fn a_killed_trace_leaves_logs_that_make_its_archive() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    for mpi in mpis(dir.path()) {
        let logs = dir.path().join(mpi_run(mpi)).join("logs");
        let mut command = quell(dir.path());
        command.env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache"));
        command.args(["trace", "-o", &mpi_run(mpi), "--"]).args(launch(mpi, 2));
        let mut traced = command.arg(format!("./{mpi}")).arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let left = || LogRun::open(&logs).ok().map(|run| run.summary().clone());
        until("two logs", || left().is_some_and(|left| left.ranks == 2 && left.missing.is_empty()));
        traced.kill().unwrap();
        traced.wait().unwrap();
        until("the end of the ranks", || left().is_some_and(|left| left.unfinished.is_empty()));
        let refused = run(dir.path(), &["track", &mpi_run(mpi)]);
        assert!(text(&refused).contains("--recover"), "{mpi}: {}", text(&refused));
        let recovered = run(dir.path(), &["trace", "-o", &mpi_run(mpi), "--recover"]);
        assert_eq!(recovered.status.code(), Some(0), "{mpi}: {}", text(&recovered));
        let ranks = read(&dir.path().join(mpi_run(mpi)));
        assert!(ranks.len() == 2 && ranks.iter().all(|rank| rank.allreduces == 1000), "{mpi}: {ranks:?}");
        let again = run(dir.path(), &["trace", "-o", &mpi_run(mpi), "--recover"]);
        assert_eq!(again.status.code(), Some(2), "{mpi}: {}", text(&again));
    }
}

/// The folder of a run under an MPI.
fn mpi_run(mpi: &str) -> String {
    format!("of-{mpi}")
}

#[test]
fn untraced_ranks_are_reported() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let mpis = mpis(dir.path());
    if let [first, second] = mpis[..] {
        let other = trace(dir.path(), first, &["-o", "other", "--mpi", second, "--sources", "off"], &["20"]);
        let printed = text(&other);
        assert_eq!(other.status.code(), Some(1), "{printed}");
        assert!(printed.contains("another MPI") && printed.contains("--mpi"), "{printed}");
    }
    for mpi in mpis {
        let output = format!("full-{mpi}");
        let full = trace(dir.path(), mpi, &["-o", &output, "--limit", "64Ki", "--sources", "off"], &["2000"]);
        let printed = text(&full);
        assert!(full.status.success() && printed.contains("raise --limit"), "{mpi}: {printed}");
        let ranks = read(&dir.path().join(&output));
        assert!(ranks.iter().all(|rank| (20..2000).contains(&rank.allreduces)), "{mpi}: {ranks:?}");
    }
}

#[test]
fn help_and_refusals() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir(dir.path().join("full")).unwrap();
    fs_err::write(dir.path().join("full/file"), "").unwrap();
    assert_snapshot!("help", transcript(dir.path(), &["trace", "--help"]));
    let cases: [&[&str]; 6] = [
        &["trace", "-o", "full", "--", "true"],
        &["trace", "-o", "run"],
        &["trace", "-o", "run", "--mpi", "no-such-mpi", "--", "true"],
        &["trace", "-o", "a;b", "--", "true"],
        &["trace", "-o", "run", "--limit", "much", "--", "true"],
        &["trace", "-o", "run", "--limit", "4000", "--", "true"],
    ];
    let reported: Vec<String> = cases
        .iter()
        .map(|args| format!("$ quell {}\n{}", args.join(" "), transcript(dir.path(), args)))
        .collect();
    assert_snapshot!("refusals", reported.join("\n"));
    assert!(!dir.path().join("run").exists(), "nothing is left of what did not run");
}

#[test]
fn a_program_without_mpi_is_reported() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let Some(mpi) = mpis(dir.path()).first().copied() else { return };
    let words = ["trace", "-o", "run", "--sources", "off", "--mpi", mpi, "--"];
    let output = run(dir.path(), &[&words[..], &["echo", "hello"]].concat());
    let printed = text(&output);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"hello\n"[..]), "{printed}");
    assert!(printed.contains("no MPI call was seen of `echo hello`"), "{printed}");
    let failed = run(dir.path(), &[&words[..2], &["failed"], &words[3..], &["sh", "-c", "exit 3"]].concat());
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    assert!(text(&failed).contains("ended with exit code 3 and left nothing to archive"), "{failed:?}");
    let missing = run(dir.path(), &[&words[..2], &["none"], &words[3..], &["./no-such-program"]].concat());
    assert_eq!(missing.status.code(), Some(127), "{missing:?}");
    assert!(!dir.path().join("none").exists());
}

#[test]
fn a_traced_ring_is_simulated() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    for mpi in mpis(dir.path()) {
        let (archive, goal) = (format!("run-{mpi}"), format!("{mpi}.goal"));
        let mut command = quell(dir.path());
        command.env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache"));
        command.args(["trace", "-o", &archive, "--"]).args(launch(mpi, 2)).arg(format!("./{mpi}")).arg("50");
        let traced = command.output().unwrap();
        assert!(traced.status.success(), "{mpi}: {traced:?}");
        for more in [&[][..], &["--extrapolate", "32"]] {
            let _ = fs_err::remove_file(dir.path().join(&goal));
            let printed = transcript(dir.path(), &[&["track", &archive, "--goal", &goal], more].concat());
            assert!(printed.starts_with("exit 0"), "{mpi}: {printed}");
            let simulated = run(dir.path(), &["simulate", &goal]);
            assert!(simulated.status.success(), "{mpi}: {simulated:?}");
        }
    }
}

mod measured {
    use super::*;

    /// Several tasks take the CPU before a rank has it back: the archive and `track` charge each with what it ran, by its name.
    #[test]
    fn each_task_of_a_chain_is_named() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !tools::may_watch_the_kernel(dir.path()) {
            return;
        }
        for mpi in mpis(dir.path()) {
            for (number, burn_ns) in
                [vec![300_000, 3_000_000], vec![900_000, 200_000, 500_000]].into_iter().enumerate()
            {
                let chain = Chain::on_last_cpu(burn_ns, number == 1);
                measure(|attempt| {
                    charged_as_it_ran(dir.path(), mpi, &format!("{mpi}-{number}-{attempt}"), &chain)
                });
            }
        }
    }
}
