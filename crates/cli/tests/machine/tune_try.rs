//! Whether a mitigation helps, measured on the real kernel: a disturber that a mitigation removes, and a setting without effect.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::ksm;
use crate::support::tools::{has_two_cpus, may_watch_the_kernel};
use crate::support::tuned::Preset;
use crate::support::tuned::alone;
use crate::support::{Guard, run};
use quell_testing::{Turn, measure, skip_for_hardware};
use serde_json::Value;

/// Trials need root, two CPUs, and the kernel recorder.
fn watched_and_alone() -> Option<Turn> {
    let turn = alone()?;
    let folder = tempfile::tempdir().unwrap();
    (has_two_cpus() && may_watch_the_kernel(folder.path())).then_some(turn)
}

/// A daemon that alternates between work and sleep; only this test binds it to a CPU.
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
fn without_yes_it_only_shows_what_it_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["tune", "try", "vm-stat-interval", "--cpus", "1"]);
    if !has_two_cpus() {
        return;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was written"));
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn a_disturber_that_is_moved_away_is_a_proved_gain() {
        let Some(_turn) = watched_and_alone() else { return };
        let folder = tempfile::tempdir().unwrap();
        let daemon = Command::new("taskset")
            .args(["-c", "1", "sh", "-c", DAEMON])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let daemon = Guard(daemon);
        // A site's own mitigation, for its own daemon: moves it off the CPUs that compute.
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
            "10",
            "--until-resolved",
            "--at-most",
            "40s",
            "--duration",
            "500ms",
            "--site",
            site.to_str().unwrap(),
        ];
        measure(|_| {
            let document = trial(folder.path(), &args);
            let tried = &document["mitigations"][0];
            let (without, with) = (&tried["scale"]["without"], &tried["scale"]["with"]);
            assert_eq!((without.as_array().unwrap().len(), with.as_array().unwrap().len()), (2, 2));
            // The daemon is back on its original CPU.
            let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
            assert!(status.contains("Cpus_allowed_list:\t1\n"), "{status}");
            assert_eq!(
                String::from_utf8_lossy(&run(folder.path(), &["tune", "verify"]).stdout),
                "nothing is applied\n"
            );
            // However busy the machine is, what is there is not called nothing.
            assert!(["helps", "inconclusive"].contains(&tried["verdict"].as_str().unwrap()), "{tried:#}");
            let further = (&tried["trial"]["further_pairs"], &tried["further_ns"]);
            assert_eq!(further.0.is_null(), further.1.is_null(), "{tried:#}");
            let gain = tried["trial"]["addressed"]["low_ns_per_s"].as_f64().unwrap();
            if tried["verdict"] == "helps" && gain > 0.0 { Ok(()) } else { Err(format!("{tried:#}")) }
        });
    }

    #[test]
    fn a_kernel_thread_that_disturbs_is_moved_away_by_the_catalogue() {
        let Some(_turn) = watched_and_alone() else { return };
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Preset::default();
        let Some(_ksmd) = ksm::Ksmd::bound_to("1") else {
            return skip_for_hardware("this kernel merges no pages, or its thread cannot be moved");
        };
        settings.set("/sys/kernel/mm/ksm/pages_to_scan", "500");
        settings.set("/sys/kernel/mm/ksm/sleep_millisecs", "20");
        settings.set("/sys/kernel/mm/ksm/run", "1");
        let _memory = ksm::memory(64);
        measure(|_| {
            let document =
                trial(folder.path(), &["kthread-affinity", "--pairs", "10", "--duration", "400ms"]);
            let tried = &document["mitigations"][0];
            let sources = tried["trial"]["sources"].as_array().unwrap();
            let moved = |one: &Value| one["name"] == "task:ksmd" && one["with_ns_per_s"] == 0.0;
            let helps = tried["verdict"] == "helps" && sources.iter().any(moved);
            if helps { Ok(()) } else { Err(format!("{tried:#}")) }
        });
    }

    #[test]
    fn a_setting_that_does_nothing_neither_helps_nor_hurts() {
        let Some(_turn) = watched_and_alone() else { return };
        let folder = tempfile::tempdir().unwrap();
        let before = fs_err::read_to_string("/proc/sys/vm/swappiness").unwrap();
        measure(|_| {
            let verdicts = (0..3).map(|seed: u8| {
                let seed = seed.to_string();
                let args = [
                    "swappiness",
                    "--set",
                    "swappiness=11",
                    "--pairs",
                    "10",
                    "--duration",
                    "200ms",
                    "--seed",
                    &seed,
                ];
                trial(folder.path(), &args)["mitigations"][0]["verdict"].clone()
            });
            let verdicts: Vec<Value> = verdicts.collect();
            // One in a hundred trials may be wrong, but not two of three.
            let is_effect = |verdict: &&Value| *verdict == "helps" || *verdict == "hurts";
            let wrong = verdicts.iter().filter(is_effect).count();
            if wrong <= 1 { Ok(()) } else { Err(format!("{verdicts:?}")) }
        });
        assert_eq!(fs_err::read_to_string("/proc/sys/vm/swappiness").unwrap(), before);
    }
}
