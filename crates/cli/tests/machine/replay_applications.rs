//! Real applications under noise, run as their users would: their results are unchanged in every context.

use std::path::Path;
use std::process::Command;

use crate::support::applications::{HPCC, MELT};
use crate::support::replaying::{beat, launch};
use crate::support::tools::{has_two_cpus, is_here, is_root};
use crate::support::{cpus, quell};
use quell_testing::machine;
use serde_json::Value;

/// The contexts that are possible here.
fn contexts() -> Vec<&'static str> {
    let mut contexts = vec!["boundary", "timer"];
    if is_root() && has_two_cpus() {
        contexts.push("process");
    }
    contexts
}

/// Runs an application under noise; returns its stdout, and the document.
fn under(folder: &Path, context: &str, program: &[&str]) -> (String, Value) {
    let launch = launch("openmpi", 2);
    let mut words = vec!["replay", "noise.toml", "--context", context, "-q", "--json", "--"];
    words.extend(launch.iter().map(String::as_str).chain(program.iter().copied()));
    let output = quell(folder).args(&words).env("OMP_NUM_THREADS", "1").output().unwrap();
    // With --json the program's own output goes to stderr.
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{context}: {printed}");
    (printed, serde_json::from_slice(&output.stdout).unwrap())
}

/// Checks that about 5 % of noise was injected.
fn suffered(context: &str, document: &Value) {
    let processes = document["processes"].as_array().unwrap();
    let expected = if context == "process" { cpus() - 1 } else { 2 };
    assert_eq!(processes.len(), expected, "{context}: {document:#}");
    assert!(processes.iter().all(|process| process["burns"].as_u64() > Some(0)), "{context}: {document:#}");
    // A warning about a busy machine is acceptable.
    let busy = |warning: &Value| warning["code"] == "burning-interrupted";
    assert!(document["warnings"].as_array().unwrap().iter().all(busy), "{context}: {document:#}");
}

/// The lines of a run's thermodynamic output, which contain no times.
fn thermo(printed: &str) -> Vec<String> {
    let lines = printed
        .lines()
        .skip_while(|line| !line.starts_with("Step"))
        .take_while(|line| !line.starts_with("Loop"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_melt_melts_alike_under_noise() {
    let _machine = machine();
    if !is_here("lmp") || !is_here("mpirun.openmpi") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "20ms", "1ms");
    fs_err::write(folder.join("melt.in"), MELT).unwrap();
    let program = ["lmp", "-in", "melt.in", "-log", "none"];
    let launch = launch("openmpi", 2);
    let mut alone = Command::new(&launch[0]);
    alone.args(&launch[1..]).args(program).current_dir(folder).env("OMP_NUM_THREADS", "1");
    let alone = thermo(&String::from_utf8_lossy(&alone.output().unwrap().stdout));
    assert_eq!(alone.len(), 5, "{alone:?}");
    for context in contexts() {
        let (printed, document) = under(folder, context, &program);
        assert_eq!(thermo(&printed), alone, "{context}");
        suffered(context, &document);
    }
}

#[test]
fn the_challenge_succeeds_under_noise() {
    let _machine = machine();
    if !is_here("hpcc") || !is_here("mpirun.openmpi") {
        return;
    }
    for context in contexts() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        beat(folder, "noise", "20ms", "1ms");
        fs_err::write(folder.join("hpccinf.txt"), HPCC).unwrap();
        let (_, document) = under(folder, context, &["hpcc"]);
        suffered(context, &document);
        let printed = fs_err::read_to_string(folder.join("hpccoutf.txt")).unwrap();
        assert!(printed.lines().any(|line| line.trim() == "Success=1"), "{context}: {printed}");
    }
}

#[test]
fn an_applications_failure_is_its_own() {
    let _machine = machine();
    if !is_here("lmp") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "20ms", "1ms");
    let code = |words: &[&str]| quell(folder).args(words).output().unwrap().status.code();
    let alone =
        Command::new("lmp").args(["-in", "nothing"]).current_dir(folder).output().unwrap().status.code();
    for context in contexts() {
        assert_eq!(
            code(&["replay", "noise.toml", "--context", context, "--", "lmp", "-in", "nothing"]),
            alone,
            "{context}"
        );
    }
}
