//! `quell replay` with commands without MPI: their input, their signals, what is refused, and what a probe sees.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::support;
use crate::support::replaying::beat;
use crate::support::tools::{has_two_cpus, is_root};
use quell_testing::{machine, measure};

use crate::support::{quell, run};
use serde_json::Value;
use std::path::Path;

/// The message of `replay` if its timers or its own process hardly ever get a CPU.
const TOO_BUSY: &str = "cannot calibrate";

#[test]
fn what_would_do_nothing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "1ms", "50us");
    fs_err::create_dir(folder.join("full")).unwrap();
    fs_err::write(folder.join("full/file"), "").unwrap();
    let cases: [&[&str]; 20] = [
        &[],
        &["--ranks", "4", "--", "true"],
        &["--quantum", "4ms", "--", "true"],
        &["--phases", "4", "--", "true"],
        &["--duration", "4s", "--", "true"],
        &["--skew", "1ms", "--", "true"],
        &["--phase-at", "barrier", "--", "true"],
        &["--sync", "phase", "--context", "timer", "--", "true"],
        &["--cpus", "0", "--context", "timer", "--", "true"],
        &["--emulate", "--", "true"],
        &["--emulate", "--baseline", "2"],
        &["--emulate", "--quantum", "1h"],
        &["--validate", "--context", "boundary"],
        &["--validate", "--baseline", "2"],
        &["--validate", "--overhead", "1us", "--duration", "100us"],
        &["-o", "full", "--", "true"],
        &["--interleave", "--context", "timer", "--", "true"],
        &["--interleave", "--baseline", "2", "--", "true"],
        &["--interleave=0s", "--", "true"],
        &["--interleave", "--emulate"],
    ];
    for case in cases {
        let output = run(folder, &[&["replay", "noise.toml"], case].concat());
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{case:?}: {printed}");
        assert!(printed.contains("error: "), "{case:?}: {printed}");
    }
    // Far from each other, so that a machine on which a detour costs much injects them one by one.
    let often = beat(folder, "often", "10ms", "5ms");
    let args = ["replay", often.to_str().unwrap(), "--context", "timer", "--overhead", "4ms", "--", "true"];
    let output = run(folder, &args);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && printed.contains("--scale"), "{printed}");
}

/// The last ranks of a launch are missed too: each process reports how many the launcher started.
#[test]
fn ranks_that_do_not_report_are_counted() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    beat(dir.path(), "noise", "10ms", "100us");
    let launch = "for rank in 0 1; do OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=4 /bin/true; done";
    let args = ["replay", "noise.toml", "--context", "timer", "--overhead", "1us", "--", "sh", "-c", launch];
    let output = run(dir.path(), &args);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("2 of 4 ranks did not report"), "{printed}");
}

#[test]
fn each_run_reads_the_same_and_leaves_nothing() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "1ms", "50us");
    fs_err::write(folder.join("input"), "four\n").unwrap();
    let input = fs_err::File::open(folder.join("input")).unwrap().into_parts().0;
    let mut command = quell(folder);
    command.args(["replay", "noise.toml", "--context", "timer", "--baseline", "2", "--json", "--"]);
    command.args(["sh", "-c", "wc -c >> counts"]).stdin(input).env("TMPDIR", folder);
    let output = command.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["runs"].as_array().unwrap().len(), 4, "{document:#}");
    assert_eq!(document["slowdown"]["pairs_percent"].as_array().unwrap().len(), 2);
    assert_eq!(fs_err::read_to_string(folder.join("counts")).unwrap(), "5\n5\n5\n5\n");
    let left =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!left.into_iter().any(|name| name.contains("quell-replay")));
}

#[test]
fn a_signal_to_quell_is_the_commands() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    beat(dir.path(), "noise", "1ms", "50us");
    let script = "trap 'echo got it; exit 5' INT; echo ready; while :; do sleep 0.02; done";
    let mut command = quell(dir.path());
    command.args(["replay", "-q", "noise.toml", "--context", "timer", "--", "sh", "-c", script]);
    let mut child = support::Guard(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut printed = BufReader::new(child.0.stdout.take().unwrap());
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // SAFETY: a plain system call on a process that this test started.
    assert_eq!(unsafe { libc::kill(child.0.id() as i32, libc::SIGINT) }, 0);
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.0.wait().unwrap().code()), ("got it\n", Some(5)));
}

#[test]
fn noise_comes_into_a_probe_of_quells_own() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    beat(dir.path(), "noise", "20ms", "2ms");
    let words =
        ["replay", "noise.toml", "--json", "--", env!("CARGO_BIN_EXE_quell"), "record", "-o", "seen.quell"];
    let document =
        support::json(dir.path(), &[&words[..], &["--sources", "off", "--duration", "1s"]].concat());
    assert_eq!(document["plan"]["context"], "timer", "it starts no ranks");
    let burns: u64 =
        document["processes"].as_array().unwrap().iter().map(|one| one["burns"].as_u64().unwrap()).sum();
    assert!(burns > 20, "{document:#}");
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn noise_that_is_too_short_is_not_injected() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        let noise = beat(dir.path(), "short", "1ms", "1us");
        let args =
            ["replay", noise.to_str().unwrap(), "--context", "timer", "--overhead", "5us", "--", "true"];
        measure(|_| {
            let output = run(dir.path(), &args);
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            if printed.contains(TOO_BUSY) {
                return Err(printed);
            }
            assert_eq!(output.status.code(), Some(3), "{printed}");
            assert!(printed.contains("none of the noise can be injected"), "{printed}");
            Ok(())
        });
    }

    #[test]
    fn a_probe_sees_what_was_injected() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        beat(folder, "noise", "5ms", "300us");
        let mut contexts = vec!["timer"];
        if is_root() && has_two_cpus() {
            contexts.push("process");
        }
        for context in contexts {
            measure(|n| validate(folder, context, &format!("{context}-{n}")));
        }
    }

    /// Injects noise into a probe, and checks that the probe sees it.
    fn validate(folder: &Path, context: &str, kept: &str) -> Result<(), String> {
        let args = [
            "replay",
            "noise.toml",
            "--validate",
            "--context",
            context,
            "--duration",
            "2s",
            "--json",
            "-o",
            kept,
        ];
        let output = run(folder, &args);
        // The exit code is 3 if the machine was too busy for all of the noise.
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        if printed.contains(TOO_BUSY) {
            return Err(printed);
        }
        assert!(matches!(output.status.code(), Some(0 | 3)), "{context}: {printed}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = |name: &str| document[name].as_f64().unwrap();
        assert_eq!(document["schema"], "quell.validate/2");
        let page = fs_err::read_to_string(folder.join(kept).join("validate.html")).unwrap();
        assert!(page.contains("its emulation"), "{context}");
        let median = document["comparison"]["changes"]["p50_ns"]["b"].as_f64().unwrap();
        let seen = number("injected") > 20.0 && number("seen") > 0.9 * number("injected");
        if seen && (270e3..600e3).contains(&median) {
            Ok(())
        } else {
            Err(format!("{context}: {document:#}"))
        }
    }
}
