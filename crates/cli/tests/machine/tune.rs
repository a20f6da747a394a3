//! Mitigations on the real kernel: applied, verified and reverted byte by byte, whatever happens in between.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::tuned::{Preset, alone, image};
use crate::support::{Guard, json, quell, run};
use serde_json::Value;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// Whether this process has CAP_SYS_RESOURCE, without which a process cannot be spared when memory runs out.
fn may_outlive_others() -> bool {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    u64::from_str_radix(capabilities, 16).unwrap() >> 24 & 1 == 1
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn revert(folder: &Path) -> Output {
    run(folder, &["tune", "revert"])
}

const APPLY: [&str; 7] = ["tune", "apply", "plan", "--yes", "--max-risk", "high", "--allow-users"];

/// Plans some mitigations, into `plan`.
fn plan(folder: &Path, args: &[&str]) -> Value {
    let mut all = vec!["tune", "plan", "--output", "plan"];
    all.extend(args);
    let output = run(folder, &all);
    assert_eq!(code(&output), Some(0), "{args:?}: {}", text(&output));
    serde_json::from_slice(&fs_err::read(folder.join("plan")).unwrap()).unwrap()
}

/// Settings (file, value) that are not applied by default, set first for mitigations that may already be applied here.
const OFF: &[(&str, &[(&str, &str)])] = &[
    ("cdrom-poll", &[("/sys/module/block/parameters/events_dfl_poll_msecs", "2000")]),
    ("numa-balancing", &[("/proc/sys/kernel/numa_balancing", "1")]),
    ("thp", &[("/sys/kernel/mm/transparent_hugepage/enabled", "always")]),
    ("ksm", &[("/sys/kernel/mm/ksm/run", "1")]),
    ("zone-reclaim", &[("/proc/sys/vm/zone_reclaim_mode", "1")]),
];

/// Mitigations that are possible on this kind of machine, each with the other options that its plan needs.
const HERE: &[(&str, &[&str])] = &[
    ("cdrom-poll", &[]),
    ("smt-snooze-delay", &[]),
    ("rt-throttle-off", &[]),
    ("vm-stat-interval", &[]),
    ("hung-task", &[]),
    ("softlockup-off", &[]),
    ("smt-sibling-affinity", &["--pid"]),
    ("irq-cpu0", &[]),
    ("irq-thread0", &[]),
    ("rhash-entries", &[]),
    ("chrt-app", &["--pid"]),
    ("corespec-n-minus-1", &[]),
    ("rankfile-affinity", &["--pid"]),
    ("rcu-kthread-affinity", &[]),
    ("rcu-normal", &[]),
    ("cpuset-v1-shield", &[]),
    ("timer-migration", &[]),
    ("watchdog-cpumask", &[]),
    ("watchdog-thresh", &[]),
    ("workqueue-cpumask", &[]),
    ("workqueue-writeback-mask", &[]),
    ("kthread-affinity", &[]),
    ("numa-balancing", &[]),
    ("thp", &[]),
    ("thp-defrag", &[]),
    ("khugepaged-scan", &[]),
    ("ksm", &[]),
    ("compaction-proactive", &[]),
    ("watermark-boost", &[]),
    ("zone-reclaim", &[]),
    ("swappiness", &[]),
    ("dirty-writeback", &[]),
    ("hugepages-static", &["--set", "hugepages-static=4"]),
    ("cpu-dma-latency", &[]),
    ("pm-qos-percpu", &[]),
    ("cpuidle-disable", &[]),
    ("split-lock", &[]),
    ("perf-limits", &[]),
    ("busy-poll", &[]),
    ("static-key-ipi", &[]),
    ("virtio-queues", &[]),
    ("timer-slack", &["--pid"]),
];

#[test]
fn every_mitigation_of_this_machine_is_applied_verified_and_given_back() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut done, mut not) = (Vec::new(), Vec::new());
    for (id, extra) in HERE {
        let mut preset = Preset::default();
        for (path, value) in OFF.iter().filter(|(of, _)| of == id).flat_map(|(_, files)| *files) {
            preset.set(path, value);
        }
        let sleeper = Guard(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap());
        let pid = sleeper.0.id().to_string();
        let mut args = vec![*id];
        args.extend(extra.iter().copied());
        if extra.contains(&"--pid") {
            args.push(&pid);
        }
        let plan = plan(folder, &args);
        if plan["writes"].as_array().unwrap().is_empty() {
            not.push(format!("{id}: {}", plan["left"]));
            continue;
        }
        let before = image(&plan);
        let applied = run(folder, &APPLY);
        assert_eq!(code(&applied), Some(0), "{id}: {}", text(&applied));
        let verified = json(folder, &["tune", "verify", "--json"]);
        for place in verified["places"].as_array().unwrap() {
            let good = ["ok", "pending", "immovable"].contains(&place["standing"].as_str().unwrap());
            assert!(good, "{id}: {place}");
        }
        if *id != "static-key-ipi" {
            assert_ne!(image(&plan), before, "{id} changed nothing");
        }
        let reverted = revert(folder);
        assert_eq!(code(&reverted), Some(0), "{id}: {}", text(&reverted));
        assert_eq!(image(&plan), before, "{id}");
        done.push(*id);
    }
    assert!(done.len() >= 36, "only {} of {}: {not:#?}", done.len(), HERE.len());
}

/// A plan with every kind of place at which a crash may interrupt.
const MIXED: [&str; 7] = [
    "vm-stat-interval",
    "dirty-writeback",
    "softlockup-off",
    "thp-defrag",
    "hung-task",
    "cpu-dma-latency",
    "corespec-n-minus-1",
];

#[test]
fn killed_at_any_step_everything_is_given_back() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _preset = Preset::default();
    let plan = plan(folder, &MIXED);
    let before = image(&plan);
    let killed = |args: &[&str], at: u32| {
        let output = quell(folder).args(args).env("QUELL_FAULT_AT", at.to_string()).output().unwrap();
        output.status.signal() == Some(9)
    };
    let mut points = 0;
    for at in 1.. {
        let died = killed(&APPLY, at);
        let reverted = revert(folder);
        assert_eq!(code(&reverted), Some(0), "apply died at {at}: {}", text(&reverted));
        assert_eq!(image(&plan), before, "apply died at {at}");
        if !died {
            points = at - 1;
            break;
        }
    }
    assert!(points > 60, "{points} points");
    // The revert, killed at each of its own steps.
    for at in 1.. {
        assert_eq!(code(&run(folder, &APPLY)), Some(0));
        let died = killed(&["tune", "revert"], at);
        let reverted = revert(folder);
        assert_eq!(code(&reverted), Some(0), "revert died at {at}: {}", text(&reverted));
        assert_eq!(image(&plan), before, "revert died at {at}");
        if !died {
            assert!(at > 40, "{at} points");
            break;
        }
    }
}

#[test]
fn killed_at_random_everything_is_given_back() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _preset = Preset::default();
    let plan = plan(folder, &MIXED);
    let before = image(&plan);
    let start = std::time::Instant::now();
    assert_eq!(code(&run(folder, &APPLY)), Some(0));
    let whole = start.elapsed();
    assert_eq!(code(&revert(folder)), Some(0));
    for round in 0..40u32 {
        let mut child =
            quell(folder).args(APPLY).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * (round * 7919 % 40) / 40);
        child.kill().unwrap();
        child.wait().unwrap();
        let reverted = revert(folder);
        assert_eq!(code(&reverted), Some(0), "round {round}: {}", text(&reverted));
        assert_eq!(image(&plan), before, "round {round}");
        assert_eq!(text(&revert(folder)), "nothing is applied\n");
    }
}

#[test]
fn a_keeper_gives_back_in_time_and_after_its_process() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _preset = Preset::default();
    let plan = plan(folder, &["vm-stat-interval", "cpu-dma-latency"]);
    let before = image(&plan);
    let back = || {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while image(&plan) != before && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(image(&plan), before);
    };
    let apply = |more: &[&str]| {
        let output = run(folder, &[&APPLY[..], more].concat());
        assert_eq!(code(&output), Some(0), "{}", text(&output));
    };
    apply(&["--for", "1s"]);
    back();
    // If the first of its two keepers is killed, the second goes on.
    apply(&["--for", "8s"]);
    let keeper = || {
        let status = json_of(&run(folder, &["tune", "status", "--json"]));
        let words: Vec<String> =
            status["open"][0]["keeper"].as_str().unwrap().split(' ').map(str::to_owned).collect();
        words[1].clone()
    };
    let first = keeper();
    let adjusted = fs_err::read_to_string(format!("/proc/{first}/oom_score_adj")).unwrap();
    assert_eq!(adjusted.trim(), if may_outlive_others() { "-1000" } else { "0" });
    assert!(Command::new("kill").args(["-KILL", &first]).status().unwrap().success());
    back();
    let mut sleeper = Guard(Command::new("sleep").arg("600").spawn().unwrap());
    apply(&["--until-pid", &sleeper.0.id().to_string()]);
    assert_ne!(image(&plan), before);
    sleeper.0.kill().unwrap();
    sleeper.0.wait().unwrap();
    back();
    // Apply only while a command runs, and pass on its exit code.
    let script = "cat /proc/sys/vm/stat_interval; exit 7";
    let output = run(folder, &[&APPLY[..], &["--with", "--", "sh", "-c", script]].concat());
    assert_eq!((code(&output), String::from_utf8_lossy(&output.stdout).trim()), (Some(7), "20"));
    assert_eq!(image(&plan), before);
    // If quell is killed while the command runs, its keeper reverts.
    let script = "echo $$ > pid; exec sleep 600";
    let mut child = quell(folder).args(APPLY).args(["--with", "--", "sh", "-c", script]).spawn().unwrap();
    let pid = folder.join("pid");
    let runs = || fs_err::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'));
    while !runs() || image(&plan) == before {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    back();
    assert!(
        Command::new("kill").arg(fs_err::read_to_string(&pid).unwrap().trim()).status().unwrap().success()
    );
    // A signal to quell is passed on to the command, which may clean up; only then is everything reverted.
    fs_err::remove_file(&pid).unwrap();
    let script =
        "trap 'cat /proc/sys/vm/stat_interval; exit 3' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let child = quell(folder)
        .args(APPLY)
        .args(["--with", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !runs() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), String::from_utf8_lossy(&output.stdout).trim()), (Some(3), "20"));
    assert_eq!(image(&plan), before);
    // Of two transactions on the same setting, each with its own time limit, nothing is left.
    apply(&["--for", "5s"]);
    fs_err::write("/proc/sys/vm/stat_interval", "20").unwrap();
    let over = quell(folder)
        .args(["tune", "plan", "vm-stat-interval", "--set", "vm-stat-interval=60", "-o", "over"])
        .output()
        .unwrap();
    assert_eq!(code(&over), Some(0), "{}", text(&over));
    let over = run(folder, &["tune", "apply", "over", "--yes", "--allow-users", "--for", "6s"]);
    assert_eq!(code(&over), Some(0), "{}", text(&over));
    back();
}

#[test]
fn two_at_once_one_refuses() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _preset = Preset::default();
    let plan = plan(folder, &MIXED);
    let before = image(&plan);
    let start = || quell(folder).args(APPLY).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (first, second) = (start(), start());
    let codes: Vec<_> = [first, second].map(|one| one.wait_with_output().unwrap()).iter().map(code).collect();
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert_eq!(code(&revert(folder)), Some(0));
    // Now with certainty: another process holds the lock.
    let script = "exec 9>/run/quell/tune.lock; flock 9; \"$QUELL\" tune apply plan --yes --max-risk high --allow-users";
    let mut held = Command::new("sh");
    held.args(["-c", script]).env("QUELL", env!("CARGO_BIN_EXE_quell")).current_dir(folder);
    let held = held.output().unwrap();
    assert_eq!(code(&held), Some(1), "{}", text(&held));
    assert!(text(&held).contains("another quell"), "{}", text(&held));
    assert_eq!(image(&plan), before);
    assert_eq!(text(&revert(folder)), "nothing is applied\n");
}

/// Runs a script in a mount namespace of its own.
fn in_private_mounts(folder: &Path, script: &str) -> Output {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", script]).current_dir(folder).env("QUELL", env!("CARGO_BIN_EXE_quell"));
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_read_only_sys_a_full_disk_and_another_boot() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _preset = Preset::default();
    let plan = plan(folder, &["vm-stat-interval", "thp-defrag"]);
    let before = image(&plan);
    let apply = "\"$QUELL\" tune apply plan --yes --allow-users";
    // A write fails: earlier writes are reverted.
    let output =
        in_private_mounts(folder, &format!("mount --bind /sys /sys; mount -o remount,ro,bind /sys; {apply}"));
    assert_eq!(code(&output), Some(1), "{}", text(&output));
    assert!(text(&output).contains("read-only"), "{}", text(&output));
    assert_eq!(image(&plan), before);
    assert_eq!(text(&revert(folder)), "nothing is applied\n");
    // There is no room for the journal: nothing is written.
    let full = "mount -t tmpfs -o size=64k,mode=700 none /var/lib; mkdir -m 700 -p /var/lib/quell/tune; dd if=/dev/zero of=/var/lib/fill bs=1k 2>/dev/null || true; ";
    let output = in_private_mounts(folder, &format!("{full}{apply}"));
    assert_eq!(code(&output), Some(1), "{}", text(&output));
    assert!(text(&output).contains("No space left"), "{}", text(&output));
    assert_eq!(image(&plan), before);
    // The journal cannot be written during the revert: the values are restored anyway, and quell reports what remains to be done.
    let script = format!(
        "mount -t tmpfs -o mode=755 none /var/lib; {apply}; mount -o remount,ro /var/lib; \
         \"$QUELL\" tune revert && exit 9; test \"$(cat /proc/sys/vm/stat_interval)\" = 1; mount -o remount,rw /var/lib; \
         \"$QUELL\" tune revert"
    );
    let output = in_private_mounts(folder, &script);
    assert_eq!(code(&output), Some(0), "{}", text(&output));
    assert_eq!(image(&plan), before);
    // After another boot, values in memory are not written back.
    let script = format!(
        "{apply}; echo other > boot; mount --bind boot /proc/sys/kernel/random/boot_id; \"$QUELL\" tune status || true; \"$QUELL\" tune revert; \
         test \"$(cat /proc/sys/vm/stat_interval)\" = 20"
    );
    let output = in_private_mounts(folder, &script);
    assert_eq!(code(&output), Some(0), "{}", text(&output));
    assert!(text(&output).contains("gone with a boot"), "{}", text(&output));
    fs_err::write("/proc/sys/vm/stat_interval", "1").unwrap();
    fs_err::write("/sys/kernel/mm/transparent_hugepage/defrag", "madvise").unwrap();
    assert_eq!(image(&plan), before);
}

#[test]
fn values_that_the_kernel_couples_or_no_longer_takes() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut preset = Preset::default();
    // Of this pair, setting one clears the other; it is first set the other way round.
    preset.set("/proc/sys/vm/dirty_background_ratio", "10");
    // More than the wanted share of any memory: less would count as wanted.
    preset.set("/proc/sys/vm/dirty_background_bytes", "1099511627776");
    let plan = plan(folder, &["dirty-writeback"]);
    let before = image(&plan);
    assert_eq!(code(&run(folder, &APPLY)), Some(0));
    assert_eq!(fs_err::read_to_string("/proc/sys/vm/dirty_background_bytes").unwrap(), "0\n");
    let reverted = revert(folder);
    assert_eq!(code(&reverted), Some(0), "{}", text(&reverted));
    assert_eq!(image(&plan), before);
    assert_eq!(before["/proc/sys/vm/dirty_background_bytes"], "1099511627776\n");
}

#[test]
fn what_the_kernel_changes_along_comes_back() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A loop device without a file, so nothing waits for its queue.
    let queue = "/sys/block/loop7/queue";
    let schedulers = fs_err::read_to_string(format!("{queue}/scheduler")).unwrap_or_default();
    if !schedulers.contains("mq-deadline") || Path::new("/sys/block/loop7/loop/backing_file").exists() {
        return quell_testing::skip("there is no unused loop device that has the scheduler mq-deadline");
    }
    let mut preset = Preset::default();
    for (file, value) in [("scheduler", "mq-deadline"), ("nr_requests", "77"), ("iosched/read_expire", "400")]
    {
        preset.set(&format!("{queue}/{file}"), value);
    }
    let plan = plan(folder, &["io-scheduler"]);
    let before = image(&plan);
    assert_eq!(before[&format!("{queue}/nr_requests")], "77\n");
    assert_eq!(before[&format!("{queue}/iosched/read_expire")], "400\n");
    let applied = run(folder, &APPLY);
    assert_eq!(code(&applied), Some(0), "{}", text(&applied));
    assert_ne!(fs_err::read_to_string(format!("{queue}/nr_requests")).unwrap(), "77\n");
    let reverted = revert(folder);
    assert_eq!(code(&reverted), Some(0), "{}", text(&reverted));
    assert_eq!(image(&plan), before);
}

#[test]
fn what_others_change_in_between_is_theirs() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut preset = Preset::default();
    preset.set("/proc/sys/vm/stat_interval", "1");
    plan(folder, &["vm-stat-interval", "swappiness"]);
    assert_eq!(code(&run(folder, &APPLY)), Some(0));
    fs_err::write("/proc/sys/vm/stat_interval", "5").unwrap();
    assert_eq!(code(&run(folder, &["tune", "verify"])), Some(3));
    for _ in 0..2 {
        let reverted = revert(folder);
        assert_eq!(code(&reverted), Some(3), "{}", text(&reverted));
        assert!(text(&reverted).contains("changed by someone else to `5`"), "{}", text(&reverted));
        assert_eq!(fs_err::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "5\n");
    }
    assert_eq!(code(&run(folder, &["tune", "revert", "--force"])), Some(0));
    assert_eq!(fs_err::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "1\n");
}
