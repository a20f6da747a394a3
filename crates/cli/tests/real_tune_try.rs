//! Whether a mitigation helps, measured on the real kernel: a disturber that one entry removes, and a setting that does nothing.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may")]

#[path = "support/ksm.rs"]
mod ksm;
mod support;
#[path = "support/tuned.rs"]
mod tuned;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;
use support::{Guard, cpus, run};
use tuned::Preset;

/// Trials and the kernel's settings are one at a time; what they need is root, two CPUs and eBPF.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let lock = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let checks = support::json(Path::new("/"), &["doctor", "--json"]);
    let sources = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .any(|check| check["subject"] == "noise sources" && check["verdict"] != "missing");
    let kernel = fs_err::read_to_string("/proc/2/comm").is_ok_and(|comm| comm == "kthreadd\n");
    if cpus() < 2 || !sources || !kernel {
        eprintln!("SKIPPED: needs root on a machine of its own, two CPUs, and the kernel's side of noise");
        return None;
    }
    Some(lock)
}

/// A daemon that sleeps and works, bound to a CPU by nobody but this test.
const DAEMON: &str = "while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.005; done";

fn trial(folder: &Path, args: &[&str]) -> Value {
    let common = [
        "tune",
        "try",
        "--yes",
        "--json",
        "--max-risk",
        "high",
        "--allow-users",
        "--ranks",
        "2,1Ki",
        "--cpus",
        "1",
    ];
    let output: Output = run(folder, &[&common[..], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_disturber_that_is_moved_away_is_a_proved_gain() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let daemon =
        Command::new("taskset").args(["-c", "1", "sh", "-c", DAEMON]).stdin(Stdio::null()).spawn().unwrap();
    let daemon = Guard(daemon);
    // A site's own entry, for a daemon of its own: away from the CPUs that compute.
    let site = folder.path().join("site");
    fs_err::create_dir(&site).unwrap();
    let text = "id = \"site-daemon\"\ntitle = \"Keep our daemon off\"\ncategory = \"placement\"\nwhat = \"x\"\ncaveat = \"y\"\nrisk = \"low\"\nkernel = \"any\"\nprovenance = [\"us\"]\nnoise = [\"task:^sh$\"]\n\n[[knob]]\nkind = \"process\"\nwhat = \"affinity\"\nwant = \"${housekeeping}\"\n";
    fs_err::write(site.join("site-daemon.toml"), text).unwrap();
    let pid = daemon.0.id().to_string();
    let args = [
        "site-daemon",
        "--pid",
        &pid,
        "--pairs",
        "6",
        "--duration",
        "600ms",
        "--site",
        site.to_str().unwrap(),
    ];
    let document = trial(folder.path(), &args);
    let tried = &document["mitigations"][0];
    assert_eq!(tried["verdict"], "helps", "{tried:#}");
    assert!(tried["trial"]["addressed"]["low_ns_per_s"].as_f64().unwrap() > 0.0, "{tried:#}");
    let (without, with) = (&tried["scale"]["without"], &tried["scale"]["with"]);
    assert_eq!((without.as_array().unwrap().len(), with.as_array().unwrap().len()), (2, 2));
    // It is where it was.
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("Cpus_allowed_list:\t1\n"), "{status}");
    assert_eq!(
        String::from_utf8_lossy(&run(folder.path(), &["tune", "verify"]).stdout),
        "nothing is applied\n"
    );
}

#[test]
fn a_kernel_thread_that_disturbs_is_moved_away_by_the_catalogue() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Preset::default();
    let Some(_ksmd) = ksm::Ksmd::bound_to("1") else {
        eprintln!("SKIPPED: this kernel merges no pages, or its thread cannot be moved");
        return;
    };
    settings.set("/sys/kernel/mm/ksm/pages_to_scan", "500");
    settings.set("/sys/kernel/mm/ksm/sleep_millisecs", "20");
    settings.set("/sys/kernel/mm/ksm/run", "1");
    let _memory = ksm::memory(64);
    let document = trial(folder.path(), &["kthread-affinity", "--pairs", "10", "--duration", "400ms"]);
    let tried = &document["mitigations"][0];
    assert_eq!(tried["verdict"], "helps", "{tried:#}");
    let sources = tried["trial"]["sources"].as_array().unwrap();
    assert!(sources.iter().any(|one| one["name"] == "task:ksmd" && one["with_ns_per_s"] == 0.0), "{tried:#}");
}

#[test]
fn a_setting_that_does_nothing_has_no_measurable_effect() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let before = fs_err::read_to_string("/proc/sys/vm/swappiness").unwrap();
    let verdicts: Vec<Value> = (0..3)
        .map(|seed| {
            let seed = seed.to_string();
            let args = [
                "swappiness",
                "--set",
                "swappiness=11",
                "--pairs",
                "4",
                "--duration",
                "200ms",
                "--seed",
                &seed,
            ];
            trial(folder.path(), &args)["mitigations"][0]["verdict"].clone()
        })
        .collect();
    // One in a hundred trials may be wrong; two of three are not.
    let wrong = verdicts.iter().filter(|verdict| *verdict != "no-measurable-effect").count();
    assert!(wrong <= 1, "{verdicts:?}");
    assert_eq!(fs_err::read_to_string("/proc/sys/vm/swappiness").unwrap(), before);
}

#[test]
fn without_a_word_it_only_says_what_it_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["tune", "try", "vm-stat-interval", "--cpus", "1"]);
    if cpus() < 2 {
        return;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was written"));
}
