//! The probe on the kernel that runs these tests, with real disturbers, real signals and a really full disk.

use std::ffi::CString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::node::{Offline, disturb, last_cpu, median, monotonic_ns, until};
use crate::support::tools::{has_two_cpus, may_watch_the_kernel};
use crate::support::{Guard, json, quell, run};
use quell_testing::{machine, measure, skip};
use serde_json::Value;

/// The detours of a recording as (start, end) on CLOCK_MONOTONIC, read from its CSV export.
fn detours(folder: &Path, name: &str) -> Vec<(u64, u64)> {
    let manifest: Value =
        serde_json::from_slice(&fs_err::read(folder.join(name).join("manifest.json")).unwrap()).unwrap();
    let zero = manifest["zero_monotonic_ns"].as_u64().unwrap();
    assert!(run(folder, &["convert", name, "rows.csv"]).status.success());
    let text = fs_err::read_to_string(folder.join("rows.csv")).unwrap();
    fs_err::remove_file(folder.join("rows.csv")).unwrap();
    let row = |line: &str| {
        let fields: Vec<u64> = line.split(',').take(3).map(|field| field.parse().unwrap()).collect();
        (zero + fields[1], zero + fields[1] + fields[2])
    };
    text.lines().skip(1).map(row).collect()
}

/// What a recording shows of a disturber whose burns are known.
struct Disturbed {
    burns: usize,
    /// Number of burns whose middle is in a detour.
    found: usize,
    /// Median duration of those detours.
    median_ns: u64,
    /// Median duration of the burns.
    burned_ns: u64,
    /// Whether 10 ms is among the detected periods.
    ten_ms: bool,
}

fn record_disturber(folder: &Path, name: &str, burn_ns: u64) -> Disturbed {
    let cpu = last_cpu();
    let stop = AtomicBool::new(false);
    let burns = std::thread::scope(|scope| {
        let disturber = scope.spawn(|| disturb(cpu, burn_ns, &stop));
        let args = ["record", "-o", name, "--cpus", &cpu.to_string(), "--duration", "5s", "-q"];
        let output = run(folder, &args);
        stop.store(true, Ordering::Relaxed);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        disturber.join().unwrap()
    });
    let found = detours(folder, name);
    let (first, last) = (found[0].0, found[found.len() - 1].1);
    let burns: Vec<_> = burns.into_iter().filter(|burn| burn.0 > first && burn.1 < last).collect();
    let over = |burn: &(u64, u64)| {
        let middle = burn.0.midpoint(burn.1);
        found.iter().find(|detour| detour.0 <= middle && middle <= detour.1).map(|detour| detour.1 - detour.0)
    };
    let durations: Vec<u64> = burns.iter().filter_map(over).collect();
    let show = json(folder, &["show", name, "--json"]);
    let periods = show["cpus"][0]["periods"].as_array().unwrap();
    Disturbed {
        burns: burns.len(),
        found: durations.len(),
        median_ns: median(durations),
        burned_ns: median(burns.iter().map(|burn| burn.1 - burn.0).collect()),
        ten_ms: periods.iter().any(|p| (p["period_ns"].as_f64().unwrap() / 1e7 - 1.0).abs() < 0.01),
    }
}

/// Compares a disturber with one that only wakes up: the cost of waking and switching depends on the machine (about 20 µs on a virtual
/// one), and is part of what the program sees. Returns what does not match.
fn find_the_disturber(folder: &Path, n: usize) -> Result<(), String> {
    let waking = record_disturber(folder, &format!("{n}-waking.quell"), 0);
    let burning = record_disturber(folder, &format!("{n}-burning.quell"), 200_000);
    let (felt, burned) = (burning.median_ns.saturating_sub(waking.median_ns), burning.burned_ns);
    if burning.burns < 400 || burning.found * 100 < burning.burns * 98 {
        Err(format!("{} of {} burns found", burning.found, burning.burns))
    } else if felt.abs_diff(burned) * 10 > burned {
        Err(format!(
            "felt {} ns, of them {} for waking; burned {burned} ns",
            burning.median_ns, waking.median_ns
        ))
    } else if !burning.ten_ms {
        Err("10 ms is not among the periods".into())
    } else {
        Ok(())
    }
}

/// Starts a recording that runs until it is stopped; returns after its second flush.
fn started(folder: &Path) -> Guard {
    let args = ["record", "-o", "a.quell", "--duration", "600s", "-q"];
    let child = quell(folder).args(args).stderr(Stdio::piped()).spawn().unwrap();
    let progress = folder.join("a.quell/progress.jsonl");
    until("the second flush", || {
        fs_err::read_to_string(&progress).is_ok_and(|text| text.lines().count() >= 2)
    });
    Guard(child)
}

#[test]
fn an_interrupt_keeps_what_was_seen() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    // SAFETY: the child is ours and has not been waited for.
    unsafe { libc::kill(child.0.id() as i32, libc::SIGINT) };
    assert!(child.0.wait().unwrap().success());
    let show = json(dir.path(), &["show", "a.quell", "--json"]);
    assert_eq!(show["state"], "interrupted");
    assert!(dir.path().join("a.quell/detours.parquet").exists());
}

/// A tiny file system, which is unmounted at the end of the test.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let target = CString::new(dir.path().to_str().unwrap()).unwrap();
        let options = CString::new(options).unwrap();
        // SAFETY: all strings live through the call.
        let code = unsafe {
            libc::mount(c"none".as_ptr(), target.as_ptr(), c"tmpfs".as_ptr(), 0, options.as_ptr().cast())
        };
        (code == 0).then_some(Self(dir))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let target = CString::new(self.0.path().to_str().unwrap()).unwrap();
        // SAFETY: the path lives through the call; it was mounted by `mount`.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_full_disk_ends_the_run_with_an_error_and_a_recording() {
    let Some(disk) = Tmpfs::mount("size=3m") else {
        return skip("mounting a tmpfs needs root");
    };
    let _machine = machine();
    let args = ["record", "-o", "a.quell", "--threshold", "0ns", "--duration", "60s", "-q"];
    let output = run(disk.0.path(), &args);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("ended early") && printed.matches("No space left").count() == 1, "{printed}");
    let show = json(disk.0.path(), &["show", "a.quell", "--json"]);
    assert!(["failed", "recording"].contains(&show["state"].as_str().unwrap()));
    // Whether rows of the probes or of the kernel were written first depends on timing.
    let sum = |rows: &str, field: &str| {
        let rows = show[rows].as_array().map(Vec::as_slice).unwrap_or_default();
        rows.iter().filter_map(|row| row[field].as_u64()).sum::<u64>()
    };
    let (detours, intervals) = (sum("cpus", "detours"), sum("sources", "count"));
    assert!(detours + intervals > 1_000, "{detours} detours and {intervals} intervals are left");
}

#[test]
fn quells_own_work_is_marked_and_kept_out() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["record", "-o", "a.quell", "--duration", "3s", "-q"]);
    assert!(output.status.success());
    let show = json(dir.path(), &["show", "a.quell", "--json"]);
    let cpus = show["cpus"].as_array().unwrap();
    // The writer shares the first CPU, and wakes up at least every 750 ms.
    let own = cpus[0]["own_detours"].as_u64().unwrap();
    assert!(own >= 3, "{own} own detours");
    assert!(cpus[1..].iter().all(|cpu| cpu["own_detours"] == 0));
    for cpu in cpus {
        let of = |field: &str| cpu[field].as_u64().unwrap();
        assert_eq!(of("observed_ns"), of("span_ns") - of("own_ns"));
    }
}

#[test]
fn fixed_work_and_fixed_time_fill_the_quanta_table() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    for method in ["fwq", "ftq"] {
        let name = format!("{method}.quell");
        let args = ["record", "-o", &name, "--method", method, "--quantum", "1ms", "--duration", "1s", "-q"];
        assert!(run(dir.path(), &args).status.success());
        let show = json(dir.path(), &["show", &name, "--json"]);
        let quanta = show["quanta"][0].clone();
        assert!(quanta["quanta"].as_u64().unwrap() > 50, "{quanta}");
        assert!((0.0..100.0).contains(&quanta["overhead_percent"].as_f64().unwrap()), "{quanta}");
        let refused = run(dir.path(), &["predict", &name]);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("record with --method detour"));
    }
}

#[test]
fn a_study_leaves_a_folder_with_all_of_it() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let args = ["study", "--duration", "2s", "-o", "s", "--ranks", "16,1Ki", "--phases", "50"];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in ["node.quell/manifest.json", "report.html", "report.txt", "show.json", "predict-none.json"] {
        assert!(dir.path().join("s").join(file).is_file(), "{file}");
    }
    let page = fs_err::read_to_string(dir.path().join("s/report.html")).unwrap();
    assert!(
        page.contains("quell.predict/2") && !page.contains("src=\"http") && !page.contains("href=\"http")
    );
    let again = run(dir.path(), &args);
    assert_eq!(again.status.code(), Some(1), "a study never overwrites another");
}

#[test]
fn a_study_that_is_ended_while_it_predicts_leaves_what_it_measured() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let args = ["study", "--duration", "60s", "-o", "s", "--ranks", "1Mi", "--phases", "1000000"];
    let mut child =
        Guard(quell(dir.path()).args(args).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    // SAFETY: the child is ours and has not been waited for.
    let interrupt = |child: &Guard| unsafe { libc::kill(child.0.id() as i32, libc::SIGINT) };
    let progress = dir.path().join("s/node.quell/progress.jsonl");
    until("the first flush", || fs_err::read_to_string(&progress).is_ok_and(|text| !text.is_empty()));
    interrupt(&child);
    let folder = dir.path().join("s");
    until("the page", || folder.join("report.txt").is_file());
    interrupt(&child);
    assert_eq!(child.0.wait().unwrap().signal(), Some(libc::SIGINT));
    let page = fs_err::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("quell.show/") && !page.contains("quell.predict/"));
    assert!(fs_err::read_to_string(folder.join("report.txt")).unwrap().contains("detours"));
}

#[test]
fn what_is_written_at_the_loops_edge_can_be_read() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let cpu = last_cpu().to_string();
    let mut ran = 0;
    for n in 0..12 {
        let name = format!("{n}.quell");
        let args = ["record", "-o", &name, "--cpus", &cpu, "--threshold", "0ns", "--duration", "30ms", "-q"];
        assert!(run(dir.path(), &args).status.success());
        let show = json(dir.path(), &["show", &name, "--json"]);
        let warned = show["warnings"].to_string().contains("threshold-inside-loop");
        // A CPU that stood still until the end has no turn.
        if show["cpus"][0]["span_ns"] != 0 {
            assert!(show["cpus"][0]["detours"].as_u64().unwrap() > 0 && warned, "{show}");
            ran += 1;
        }
    }
    assert!(ran > 0, "no recording has a turn");
}

#[test]
fn a_real_time_probe_ends_at_its_deadline() {
    if !has_two_cpus() {
        return;
    }
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let cpu = last_cpu().to_string();
    let args = ["record", "-o", "a.quell", "--cpus", &cpu, "--duration", "500ms", "--realtime", "1", "-q"];
    let output = run(dir.path(), &args);
    let printed = String::from_utf8_lossy(&output.stderr);
    if printed.contains("real-time priority was refused") {
        return skip("real-time priority needs root or CAP_SYS_NICE");
    }
    assert!(output.status.success(), "{printed}");
    let unbounded =
        run(dir.path(), &["record", "-o", "b.quell", "--cpus", &cpu, "--count", "9", "--realtime", "1"]);
    assert_eq!(unbounded.status.code(), Some(2));
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    /// If other programs load the machine, one detour may hold their time in addition to the disturber's.
    #[test]
    fn a_known_disturber_is_found() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        measure(|n| find_the_disturber(dir.path(), n));
    }

    #[test]
    fn a_million_detours_are_kept_in_little_memory() {
        if !has_two_cpus() {
            return;
        }
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        // The recorder's own effect is measured from as many detours as the recording has.
        let effect = if may_watch_the_kernel(dir.path()) { "30" } else { "0" };
        measure(|n| keep_a_million(dir.path(), &format!("{n}.quell"), effect));
    }

    /// Memory is bounded and losses are counted on any machine; on a quiet one, nothing is lost.
    #[expect(clippy::zombie_processes, reason = "wait4 waits for it, and reports its memory")]
    fn keep_a_million(folder: &Path, name: &str, effect: &str) -> Result<(), String> {
        let args =
            ["record", "-o", name, "--threshold", "5ns", "--count", "1000000", "--duration", "120s", "-q"];
        let child = quell(folder)
            .args(args)
            .args(["--cpus", &last_cpu().to_string()])
            .args(["--effect", effect])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut status = 0;
        // SAFETY: an all-zero usage is a valid place for the answer, and the child is not waited for elsewhere.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage), child.id() as i32);
            usage
        };
        assert!(std::process::ExitStatus::from_raw(status).success());
        assert!(usage.ru_maxrss < 200 << 10, "{} KiB resident", usage.ru_maxrss);
        let show = json(folder, &["show", name, "--json"]);
        let (found, lost) = (show["cpus"][0]["detours"].as_u64().unwrap(), show["lost"].as_u64().unwrap());
        // It ends soon after the count, however fast the probe is: a ring has 2^20 rows.
        assert!((1_000_000..4_000_000).contains(&found), "{found} found, {lost} lost");
        assert_eq!(lost > 0, show["warnings"].to_string().contains("rows-lost"), "{show}");
        // A clock that jitters by more than 5 ns fills the rings faster than they are emptied.
        if lost == 0 || found > 1_500_000 { Ok(()) } else { Err(format!("{found} found, {lost} lost")) }
    }

    #[test]
    fn a_killed_recording_misses_a_second_at_most() {
        let _machine = machine();
        // Kills at several distances from the last flush, because recordings flush at fixed intervals.
        measure(|_| [0, 230, 480, 690].into_iter().try_for_each(kill_after));
    }

    /// Kills a recording `wait` milliseconds after a flush.
    fn kill_after(wait: u64) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let mut child = started(dir.path());
        let seen = monotonic_ns();
        until("the moment of the kill", || monotonic_ns() >= seen + wait * 1_000_000);
        let killed = monotonic_ns();
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        let manifest = fs_err::read(dir.path().join("a.quell/manifest.json")).unwrap();
        let zero = serde_json::from_slice::<Value>(&manifest).unwrap()["zero_monotonic_ns"].as_u64().unwrap();
        let show = json(dir.path(), &["show", "a.quell", "--json"]);
        assert_eq!(show["state"], "recording");
        for cpu in show["cpus"].as_array().unwrap() {
            let end = zero + cpu["span_ns"].as_u64().unwrap();
            if end + 1_000_000_000 < killed {
                return Err(format!("the last {} ms are missing", (killed - end) / 1_000_000));
            }
            assert!(cpu["detours"].as_u64().unwrap() > 0);
        }
        // A copy has the same span, and states that the recording was interrupted.
        assert!(run(dir.path(), &["convert", "a.quell", "b.quell"]).status.success());
        let copy = json(dir.path(), &["show", "b.quell", "--json"]);
        assert_eq!(copy["cpus"], show["cpus"]);
        assert_eq!(copy["state"], "interrupted");
        Ok(())
    }
}

#[test]
fn a_cpu_that_goes_offline_and_returns_has_no_rows_of_another() {
    if !has_two_cpus() || !crate::support::tools::is_root() {
        return;
    }
    let _turn = machine();
    let cpu = last_cpu();
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    let Some(offline) = Offline::make(cpu) else {
        return quell_testing::skip_for_hardware("the CPU cannot go offline");
    };
    let offline_ns = monotonic_ns();
    offline.end();
    // SAFETY: a plain system call; the child has not been waited for.
    unsafe { libc::kill(child.0.id() as i32, libc::SIGINT) };
    child.0.wait().unwrap();
    let folder = fs_err::read_dir(dir.path()).unwrap().next().unwrap().unwrap();
    let name = folder.file_name().into_string().unwrap();
    let manifest: Value =
        serde_json::from_slice(&fs_err::read(folder.path().join("manifest.json")).unwrap()).unwrap();
    let closed = serde_json::json!({ "code": "cpu-closed", "cpu": cpu });
    assert!(manifest["warnings"].as_array().unwrap().contains(&closed), "{manifest}");
    let zero = manifest["zero_monotonic_ns"].as_u64().unwrap();
    let facts = manifest["cpus"].as_array().unwrap().iter().find(|facts| facts["cpu"] == cpu).unwrap();
    assert!(zero + facts["end_ns"].as_u64().unwrap() <= offline_ns, "{facts}");
    let args = ["convert", &name, "one.csv", "--cpu", &cpu.to_string()];
    assert!(run(dir.path(), &args).status.success());
    let rows = fs_err::read_to_string(dir.path().join("one.csv")).unwrap();
    let starts = rows.lines().skip(1).filter_map(|row| row.split(',').nth(1)?.parse::<u64>().ok());
    assert!(starts.max().is_none_or(|start| zero + start < offline_ns));
}

#[test]
fn a_stop_of_quell_is_no_noise() {
    let _turn = machine();
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    let signal = |number| {
        // SAFETY: a plain system call; the child has not been waited for.
        unsafe { libc::kill(child.0.id() as i32, number) };
    };
    signal(libc::SIGSTOP);
    let stat = format!("/proc/{}/stat", child.0.id());
    until("the stop", || fs_err::read_to_string(&stat).is_ok_and(|text| text.contains(") T ")));
    let stopped_ns = monotonic_ns();
    until("the end of the stop", || monotonic_ns() > stopped_ns + 300_000_000);
    signal(libc::SIGCONT);
    until("the child's return", || fs_err::read_to_string(&stat).is_ok_and(|text| !text.contains(") T ")));
    let went_on_ns = monotonic_ns();
    until("rows after it", || monotonic_ns() > went_on_ns + 100_000_000);
    signal(libc::SIGINT);
    child.0.wait().unwrap();
    let folder = fs_err::read_dir(dir.path()).unwrap().next().unwrap().unwrap();
    let name = folder.file_name().into_string().unwrap();
    let shown = json(dir.path(), &["show", &name, "--json"]);
    let stopped = serde_json::json!({ "code": "stopped", "times": 1 });
    assert!(shown["warnings"].as_array().unwrap().contains(&stopped), "{}", shown["warnings"]);
    assert!(run(dir.path(), &["convert", &name, "rows.csv"]).status.success());
    let rows = fs_err::read_to_string(dir.path().join("rows.csv")).unwrap();
    let over: Vec<&str> = rows
        .lines()
        .skip(1)
        .filter(|row| row.split(',').nth(2).unwrap().parse::<u64>().unwrap() > 290_000_000)
        .collect();
    assert!(!over.is_empty() && over.iter().all(|row| row.ends_with("true")), "{over:?}");
}
