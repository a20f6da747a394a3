//! The kernel recorder on the kernel that runs these tests: it must name and measure disturbers that the tests start.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::disturbers::{
    self, Burner, flood_loopback, interrupt_by_membarrier, rename_this_thread, timer_storm,
};
use crate::support::node::{last_cpu, until};
use crate::support::placed::{ended_by, inside, placed, span, whole};
use crate::support::tools::{has_two_cpus, is_here, is_root, may_watch_the_kernel};
use crate::support::{Guard, json, quell, run};
use quell_recording::{Interval, Recording, SourceKind};
use quell_testing::{machine, measure};
use serde_json::Value;

/// Records a CPU while something runs there. The output of `record` is ignored.
fn while_disturbed<T: Send>(
    folder: &Path,
    args: &[&str],
    disturb: impl FnOnce(&AtomicBool) -> T + Send,
) -> T {
    let stop = AtomicBool::new(false);
    let cpu = last_cpu().to_string();
    std::thread::scope(|scope| {
        let disturber = scope.spawn(|| disturb(&stop));
        let output = run(folder, &[&["record", "--cpus", &cpu, "--sources", "on", "-q"], args].concat());
        stop.store(true, Ordering::SeqCst);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        disturber.join().unwrap()
    })
}

/// The row of a source, or null.
fn source(show: &Value, name: &str) -> Value {
    let rows = show["sources"].as_array().unwrap();
    rows.iter().find(|row| row["source"] == name).cloned().unwrap_or(Value::Null)
}

fn count(row: &Value) -> u64 {
    row["count"].as_u64().unwrap_or(0)
}

fn within(what: &str, found: u64, expected: u64, percent: u64) -> Result<(), String> {
    if found.abs_diff(expected) * 100 <= expected * percent {
        Ok(())
    } else {
        Err(format!("{what}: {found} found, {expected} expected within {percent} %"))
    }
}

#[test]
fn a_recording_states_what_its_recorder_adds_and_then_misses_nothing() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let args = ["-o", "a.quell", "--duration", "1s", "--effect", "6"];
    let mut burns = while_disturbed(dir.path(), &args, |stop| {
        rename_this_thread(b"after-effect");
        Burner { cpu: last_cpu(), every_ns: 10_000_000, burn_ns: 500_000 }.run(stop)
    });
    let recording = Recording::open(&dir.path().join("a.quell")).unwrap();
    burns.retain(|burn| inside(burn.start, span(&recording)));
    let runs = placed(&recording, |one| one.source.to_string() == "task:after-effect");
    let (first, last) = (&burns[0], &burns[burns.len() - 1]);
    let ended = ended_by(&runs, last.start).0 - ended_by(&runs, first.start).0;
    let left = last.left - first.left;
    let sources = recording.manifest.sources.unwrap();
    assert!(
        ended <= left && left <= ended + sources.lost,
        "{ended} runs, {left} expected, {} lost",
        sources.lost
    );
    let Some(effect) = sources.effect else {
        return quell_testing::skip_for_hardware("a CPU without ticks: there were blocks without a detour");
    };
    assert_eq!((effect.pairs, effect.block_ns), (6, 100_000_000), "{effect:?}");
    assert!(effect.low_percent <= effect.percent && effect.percent <= effect.high_percent, "{effect:?}");
    let show = json(dir.path(), &["show", "a.quell", "--by", "source", "--json"]);
    assert_eq!(show["recorder_effect"]["percent"], effect.percent);
    let text = run(dir.path(), &["show", "a.quell", "--by", "source"]).stdout;
    assert!(String::from_utf8_lossy(&text).contains("own effect on detours below 100us"));
}

#[test]
fn names_of_tasks_are_harmless_everywhere() {
    const NAME: &str = "task:\u{1b}[7m\n<b id=x>&";
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let mut burns = while_disturbed(dir.path(), &["-o", "a.quell", "--duration", "1s"], |stop| {
        rename_this_thread(b"\x1b[7m\n<b id=x>&");
        // It takes more than a quarter of the time, so it is among the three sources that `--by cpu` names, whatever else runs.
        Burner { cpu: last_cpu(), every_ns: 10_000_000, burn_ns: 3_000_000 }.run(stop)
    });
    for by in ["source", "task", "class", "cpu"] {
        let shown = run(dir.path(), &["show", "a.quell", "--by", by]).stdout;
        assert!(!shown.contains(&0x1b), "{by}: {}", String::from_utf8_lossy(&shown));
        assert!(by == "class" || String::from_utf8_lossy(&shown).contains("<b id=x>&"), "{by}");
    }
    let show = json(dir.path(), &["show", "a.quell", "--by", "source", "--json"]);
    let recording = Recording::open(&dir.path().join("a.quell")).unwrap();
    burns.retain(|burn| inside(burn.start, span(&recording)));
    let runs = placed(&recording, |one| one.source.to_string() == NAME);
    assert!(burns.len() > 1 && count(&source(&show, NAME)) == runs.len() as u64, "{}", show["sources"]);
    let (first, last) = (&burns[0], &burns[burns.len() - 1]);
    let ended = ended_by(&runs, last.start).0 - ended_by(&runs, first.start).0;
    let left = last.left - first.left;
    let lost = recording.manifest.sources.unwrap().lost;
    assert!(ended <= left && left <= ended + lost, "{ended} runs, {left} expected, {lost} lost");
    assert!(
        run(dir.path(), &["report", "a.quell", "-o", "a.html", "--ranks", "16", "--phases", "50"])
            .status
            .success()
    );
    let page = fs_err::read(dir.path().join("a.html")).unwrap();
    let has = |bytes: &[u8]| page.windows(bytes.len()).any(|window| window == bytes);
    assert!(!has(b"<b id=x>") && !has(b"\x1b"), "the name is in the page as markup");
    assert!(run(dir.path(), &["convert", "a.quell", "a.pftrace"]).status.success());
    let timeline = fs_err::read(dir.path().join("a.pftrace")).unwrap();
    assert!(!timeline.windows(3).any(|bytes| bytes == b"\x1b[7"));
}

/// The ids of the eBPF programs that a process holds.
fn programs_of(pid: u32) -> Vec<u32> {
    let entries = fs_err::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs_err::read_to_string(entry.path()).ok());
    let ids = texts
        .filter_map(|text| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok()));
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// How many of these programs are still loaded.
fn loaded(ids: &[u32]) -> usize {
    libbpf_rs::query::ProgInfoIter::default().filter(|program| ids.contains(&program.id)).count()
}

#[test]
fn a_killed_recorder_leaves_nothing_in_the_kernel() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let args = ["record", "-o", "a.quell", "--sources", "on", "--duration", "600s", "-q"];
    let mut child = Guard(quell(dir.path()).args(args).stderr(Stdio::null()).spawn().unwrap());
    let progress = dir.path().join("a.quell/progress.jsonl");
    until("the first flush", || fs_err::read_to_string(&progress).is_ok_and(|text| !text.is_empty()));
    let programs = programs_of(child.0.id());
    assert!(programs.len() >= 10 && loaded(&programs) == programs.len(), "{programs:?}");
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    until("the end of the programs", || loaded(&programs) == 0);
    let pinned = fs_err::read_dir("/sys/fs/bpf").map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().contains("quell")).count()
    });
    assert_eq!(pinned, 0);
    // What was flushed can be read, including its sources.
    let show = json(dir.path(), &["show", "a.quell", "--by", "source", "--json"]);
    assert!(count(&source(&show, "tick")) > 0, "{}", show["sources"]);
}

#[test]
fn without_the_privilege_all_but_the_sources_is_there() {
    if !is_root() {
        return;
    }
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
    let program = dir.path().join("quell");
    fs_err::copy(env!("CARGO_BIN_EXE_quell"), &program).unwrap();
    let unprivileged = |args: &[&str]| {
        use std::os::unix::process::CommandExt as _;
        std::process::Command::new(&program)
            .args(args)
            .current_dir(dir.path())
            .uid(65534)
            .gid(65534)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let refused = unprivileged(&["record", "-o", "on.quell", "--sources", "on", "--duration", "200ms"]);
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(printed.contains("cap_bpf,cap_perfmon"), "{printed}");
    let recorded = unprivileged(&["record", "-o", "auto.quell", "--duration", "200ms"]);
    let printed = String::from_utf8_lossy(&recorded.stderr).into_owned();
    assert!(recorded.status.success() && printed.contains("stay unknown"), "{printed}");
    let show = json(dir.path(), &["show", "auto.quell", "--by", "source", "--json"]);
    assert!(show["sources"].is_null(), "{show}");
    assert!(show["sources_unknown_because"].as_str().unwrap().contains("root"), "{show}");
}

#[test]
fn too_few_open_files_are_named_as_what_they_are() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let limited = |limit: u32, args: &str| {
        let quell = env!("CARGO_BIN_EXE_quell");
        let line = format!("ulimit -n {limit} && exec {quell} record -q {args}");
        std::process::Command::new("sh").args(["-c", &line]).current_dir(dir.path()).output().unwrap()
    };
    for args in ["--cpus 0 --sources on --duration 10ms --effect 0", "-- true"] {
        let mut refused = 0;
        for limit in (6..=128).step_by(6) {
            let output = limited(limit, &format!("-o {}-{limit}.quell {args}", args.len()));
            let printed = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                refused += 1;
                assert_eq!(output.status.code(), Some(1), "{limit} {printed}");
                let names_it = printed.contains("ulimit -n") || printed.contains("Too many open files");
                assert!(names_it && !printed.contains("container"), "{limit} {printed}");
            }
        }
        assert!((1..21).contains(&refused), "{refused} of 21 refused");
    }
}

#[test]
fn what_the_recorder_costs_is_reported_when_asked() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    while_disturbed(dir.path(), &["-o", "a.quell", "--duration", "500ms", "--cost"], |_| ());
    let show = json(dir.path(), &["show", "a.quell", "--json"]);
    let costs = show["recorder_cost"].as_array().unwrap();
    assert!(costs.iter().any(|cost| cost["program"] == "task_switch"), "{costs:?}");
    assert!(costs.iter().all(|cost| cost["runs"].as_u64() > Some(0) && cost["ns"].as_u64() > Some(0)));
    assert!(json(dir.path(), &["show", "may.quell", "--json"])["recorder_cost"].is_null());
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn a_burning_task_is_named_and_measured() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !may_watch_the_kernel(dir.path()) {
            return;
        }
        // As the recorder's own probes, whose runs are not noise. In a PID namespace the recorder does not know its own.
        let is_first = std::fs::metadata("/proc/self/ns/pid").is_ok_and(|at| at.ino() == 0xEFFF_FFFC);
        let burner = if is_first { "quell-probe" } else { "quell-burner" };
        measure(|n| {
            let name = format!("{n}.quell");
            let args = ["-o", &name, "--duration", "4s"];
            let mut burns = while_disturbed(dir.path(), &args, |stop| {
                rename_this_thread(burner.as_bytes());
                Burner { cpu: last_cpu(), every_ns: 10_000_000, burn_ns: 1_000_000 }.run(stop)
            });
            let recording = whole(dir.path(), &name)?;
            let span = span(&recording);
            burns.retain(|burn| inside(burn.start, span));
            let runs = placed(&recording, |one| one.source.to_string() == format!("task:{burner}"));
            let show = json(dir.path(), &["show", &name, "--by", "source", "--json"]);
            let row = source(&show, &format!("task:{burner}"));
            assert_eq!(row["class"], "type2", "{row}");
            assert_eq!((count(&row), row["total_ns"].as_u64().unwrap()), ended_by(&runs, u64::MAX), "{row}");
            // A run ends each time the burner leaves its CPU.
            let (first, last) = (&burns[0], &burns[burns.len() - 1]);
            let (by_first, by_last) = (ended_by(&runs, first.start), ended_by(&runs, last.start));
            assert_eq!(by_last.0 - by_first.0, last.left - first.left, "runs of {} burns", burns.len());
            // Its CPU clock excludes steal, but how much of the steal hit this task is not known.
            let (ran, had) = (by_last.1 - by_first.1, last.had_ns - first.had_ns);
            let stolen =
                ended_by(&placed(&recording, |one| one.source.kind() == SourceKind::Steal), u64::MAX).1;
            within("ns burned", ran - stolen.min(ran.saturating_sub(had)), had, 5)?;
            // If other load delays many of the burns, there is no period to find.
            let on_time = burns.iter().filter(|burn| !burn.interrupted && burn.late_ns < 500_000).count();
            let period = row["period_ns"].as_f64().unwrap_or(0.0) as u64;
            if on_time * 5 < burns.len() * 4 { Ok(()) } else { within("its period", period, 10_000_000, 1) }
        });
    }

    #[test]
    fn a_storm_of_timers_lands_on_the_tick_with_its_callback() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !may_watch_the_kernel(dir.path()) {
            return;
        }
        measure(|n| {
            let name = format!("{n}.quell");
            let args = ["-o", &name, "--duration", "3s"];
            let fired = while_disturbed(dir.path(), &args, |stop| timer_storm(last_cpu(), 200_000, stop));
            let show = json(dir.path(), &["show", &name, "--by", "source", "--json"]);
            let row = source(&show, "tick");
            let details = row["details"].as_array().unwrap();
            let storm = details.iter().find(|detail| detail["name"] == "timerfd_tmrproc").cloned();
            let span = span(&whole(dir.path(), &name)?);
            let fired = fired.iter().filter(|&&at| inside(at, span)).count() as u64;
            // A callback that shares its interrupt with another one is not seen separately.
            within("callbacks", count(&storm.unwrap_or(Value::Null)), fired, 3)
        });
    }

    #[test]
    fn packets_over_loopback_land_on_their_softirq() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !may_watch_the_kernel(dir.path()) {
            return;
        }
        measure(|n| {
            let name = format!("{n}.quell");
            let mut sent = while_disturbed(dir.path(), &["-o", &name, "--duration", "3s"], |stop| {
                rename_this_thread(b"quell-flood");
                flood_loopback(last_cpu(), stop)
            });
            let recording = whole(dir.path(), &name)?;
            let seen = placed(&recording, |one| one.source.to_string() == "softirq:NET_RX");
            let show = json(dir.path(), &["show", &name, "--by", "source", "--json"]);
            let (softirq, task) = (source(&show, "softirq:NET_RX"), source(&show, "task:quell-flood"));
            assert_eq!(count(&softirq), seen.len() as u64, "{softirq}");
            assert!(task["total_ns"].as_u64().unwrap() > 0, "{task}");
            // The flood starts before the recording, and ends after it.
            sent.retain(|&at| inside(at, span(&recording)));
            if sent.len() <= 1000 {
                return Err(format!("only {} packets sent", sent.len()));
            }
            // Each packet is received before the next is sent; packets of other programs add to them.
            let seen = ended_by(&seen, sent[sent.len() - 1]).0 - ended_by(&seen, sent[0]).0;
            let reported = format!("{seen} softirqs for {} packets", sent.len() - 1);
            if (97..=110).contains(&(seen * 100 / (sent.len() as u64 - 1))) { Ok(()) } else { Err(reported) }
        });
    }

    #[test]
    fn interrupts_from_another_cpu_name_their_sender() {
        if !has_two_cpus() {
            return;
        }
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !may_watch_the_kernel(dir.path()) {
            return;
        }
        measure(|n| {
            let name = format!("{n}.quell");
            // No probe, so that the interrupted thread has the CPU for itself.
            let args = ["-o", &name, "--method", "kernel", "--duration", "3s"];
            let sent = while_disturbed(dir.path(), &args, |stop| interrupt_by_membarrier(last_cpu(), stop));
            let show = json(dir.path(), &["show", &name, "--by", "source", "--json"]);
            let rows = ["ipi:call_function", "ipi:call_function_single"].map(|name| source(&show, name));
            let of_ours = |row: &Value, list: &str, text: &str| -> u64 {
                let names = row[list].as_array().map_or(&[][..], Vec::as_slice);
                names.iter().filter(|n| n["name"].as_str().unwrap().contains(text)).map(count).sum()
            };
            let called: u64 = rows.iter().map(|row| of_ours(row, "details", "ipi_mb")).sum();
            let blamed: u64 = rows.iter().map(|row| of_ours(row, "causes", "quell-sender")).sum();
            within("interrupts with their sender", blamed, called, 3)?;
            // An interrupt that was sent and done within a run of the spinner has struck it; one that overlaps no run has not.
            let recording = whole(dir.path(), &name)?;
            let runs = placed(&recording, |one| one.source.to_string() == "task:quell-spinner");
            let ours = |one: &Interval| one.detail.as_ref().is_some_and(|detail| detail.contains("ipi_mb"));
            let struck = placed(&recording, |one| one.source.kind() == SourceKind::Ipi && ours(one));
            let within_run = |from, to| runs.iter().any(|run| run.start < from && to < run.end);
            let meets_run = |from, to| runs.iter().any(|run| run.start < to && from < run.end);
            let struck = struck.iter().filter(|row| within_run(row.start, row.end)).count() as u64;
            let surely = sent.iter().filter(|at| within_run(at.0, at.1)).count() as u64;
            let perhaps = sent.iter().filter(|at| meets_run(at.0, at.1)).count() as u64;
            let reported =
                format!("{struck} interrupts, where {surely} struck for certain and {perhaps} perhaps");
            assert!(struck <= perhaps, "{reported}");
            // An interrupt that is shared with another program's call may not be seen separately.
            if surely > 100 && struck * 100 >= surely * 97 { Ok(()) } else { Err(reported) }
        });
    }

    #[test]
    fn the_kernels_own_tools_count_the_same() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !may_watch_the_kernel(dir.path()) {
            return;
        }
        if !is_here("perf") {
            return;
        }
        measure(|n| disturbers::against_perf(dir.path(), n, last_cpu()));
    }
}
