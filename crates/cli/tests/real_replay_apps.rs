//! Real applications under noise, as their users would run them: their results are theirs, whatever way the noise comes in.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells what it skips"
)]

#[path = "support/node.rs"]
mod node;
#[path = "support/replaying.rs"]
mod replaying;
mod support;

use std::path::Path;
use std::process::Command;

use node::machine;
use replaying::{beat, launch};
use serde_json::Value;
use support::{cpus, quell};

/// A Lennard-Jones melt, as LAMMPS's own benchmark has it, small.
const MELT: &str = "units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 6 0 6 0 6\ncreate_box 1 box\ncreate_atoms 1 box\n\
                    mass 1 1.0\nvelocity all create 1.44 87287 loop geom\npair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\n\
                    neighbor 0.3 bin\nneigh_modify delay 0 every 20 check no\nfix 1 all nve\nthermo 20\nrun 60\n";

/// HPCC's input for two ranks and small matrices, line by line as its reader wants them.
const HPCC: &str = "HPL input\n-\nHPL.out\n8 device\n1 sizes\n200 N\n1 blocks\n40 NB\n0 mapping\n1 grids\n1 P\n2 Q\n16.0 threshold\n1 fact\n2 PFACT\n\
                    1 min\n4 NBMIN\n1 panels\n2 NDIV\n1 recursive\n1 RFACT\n1 broadcast\n1 BCAST\n1 depth\n1 DEPTH\n2 swap\n64 swapping\n\
                    0 L1\n0 U\n1 equilibration\n8 alignment\n-\n0 sizes\n1200 N\n0 blocks\n40 NB\n";

/// The ways for noise to come in that are open here.
fn contexts() -> Vec<&'static str> {
    let mut contexts = vec!["boundary", "timer"];
    // SAFETY: the call has no conditions.
    if unsafe { libc::geteuid() } == 0 && cpus() > 1 {
        contexts.push("process");
    } else {
        println!("skipped for process: it needs root, and a CPU to leave alone");
    }
    contexts
}

fn here(program: &str) -> bool {
    let found =
        Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

/// Runs an application under noise: its stdout, and the document that its noise left.
fn under(folder: &Path, context: &str, program: &[&str]) -> (String, Value) {
    let launch = launch("openmpi", 2);
    let mut words = vec!["replay", "noise.toml", "--context", context, "-q", "--json", "--"];
    words.extend(launch.iter().map(String::as_str).chain(program.iter().copied()));
    let output = quell(folder).args(&words).env("OMP_NUM_THREADS", "1").output().unwrap();
    // With --json the program's own output goes to stderr.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{context}: {said}");
    (said, serde_json::from_slice(&output.stdout).unwrap())
}

/// Noise of 5 % came in.
fn suffered(context: &str, document: &Value) {
    let processes = document["processes"].as_array().unwrap();
    let expected = if context == "process" { cpus() - 1 } else { 2 };
    assert_eq!(processes.len(), expected, "{context}: {document:#}");
    assert!(processes.iter().all(|process| process["burns"].as_u64() > Some(0)), "{context}: {document:#}");
    // A busy machine is said, and no fault.
    let busy = |warning: &Value| warning.as_str().is_some_and(|text| text.starts_with("burning itself"));
    assert!(document["warnings"].as_array().unwrap().iter().all(busy), "{context}: {document:#}");
}

/// The lines of a run's thermodynamics: they hold no times.
fn thermo(said: &str) -> Vec<String> {
    let lines = said
        .lines()
        .skip_while(|line| !line.starts_with("Step"))
        .take_while(|line| !line.starts_with("Loop"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_melt_melts_alike_under_noise() {
    let _machine = machine();
    if !here("lmp") || !here("mpirun.openmpi") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "2ms", "100us");
    fs_err::write(folder.join("melt.in"), MELT).unwrap();
    let program = ["lmp", "-in", "melt.in", "-log", "none"];
    let launch = launch("openmpi", 2);
    let mut alone = Command::new(&launch[0]);
    alone.args(&launch[1..]).args(program).current_dir(folder).env("OMP_NUM_THREADS", "1");
    let alone = thermo(&String::from_utf8_lossy(&alone.output().unwrap().stdout));
    assert_eq!(alone.len(), 5, "{alone:?}");
    for context in contexts() {
        let (said, document) = under(folder, context, &program);
        assert_eq!(thermo(&said), alone, "{context}");
        suffered(context, &document);
    }
}

#[test]
fn the_challenge_succeeds_under_noise() {
    let _machine = machine();
    if !here("hpcc") || !here("mpirun.openmpi") {
        return;
    }
    for context in contexts() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        beat(folder, "noise", "2ms", "100us");
        fs_err::write(folder.join("hpccinf.txt"), HPCC).unwrap();
        let (_, document) = under(folder, context, &["hpcc"]);
        suffered(context, &document);
        let said = fs_err::read_to_string(folder.join("hpccoutf.txt")).unwrap();
        assert!(said.lines().any(|line| line.trim() == "Success=1"), "{context}: {said}");
    }
}

#[test]
fn an_applications_failure_is_its_own() {
    let _machine = machine();
    if !here("lmp") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "2ms", "100us");
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
