//! `quell replay --emulate`, run as a program.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::support::{cpus, json, netgauge, quell, run};
use quell_testing::{machine, measure};
use serde_json::Value;

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

/// Checks what must hold on any machine; returns what is wrong with the figures, if anything, in case the machine was busy.
fn check_point(point: &Value, phases: u64) -> Result<(), String> {
    let ranks = point["ranks"].as_u64().unwrap();
    let own = &point["own"];
    assert_eq!(point["phases"], phases);
    assert_eq!(own["runs"], ranks * phases, "each rank runs each phase once: {point}");
    assert!(number(own, "runs_again") <= number(own, "runs"), "{point}");
    assert!(number(own, "thrown_away") >= number(own, "runs_again"), "{point}");
    assert!(number(point, "references") >= 1.0 && number(point, "wall_ns") > 0.0, "{point}");
    assert!(number(point, "longest_max_qt_ns") >= number(point, "mean_max_qt_ns"), "{point}");
    let slowdown = number(point, "slowdown_percent");
    let [low, high] = [0, 1].map(|end| point["ci95_percent"][end].as_f64().unwrap());
    assert!(low <= slowdown && slowdown <= high, "{point}");
    if number(point, "difference_percent").abs() < 25.0 { Ok(()) } else { Err(format!("{point}")) }
}

#[test]
fn a_share_of_the_trace_ends_it_and_a_dry_run_runs_nothing() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    let base = ["replay", "selfish.txt", "--emulate", "--ranks", "8", "--phases", "40", "--scale", "0.05"];
    let share = json(dir.path(), &[&base[..], &["--share", "0.1%", "--json"]].concat());
    // The trace is 10 s long, and a phase takes at least 1 ms.
    let phases = share["points"][0]["phases"].as_u64().unwrap();
    assert!((1..=10).contains(&phases), "{share}");
    assert!(share["warnings"].to_string().contains("phases-unrun"), "{share}");
    let dry = json(dir.path(), &[&base[..], &["--dry-run", "--json"]].concat());
    assert!(dry["points"].as_array().unwrap().is_empty() && number(&dry, "expected_ns") > 0.0, "{dry}");
    // Durations range from 1 us to 41 us; those below 2 us are too short at this scale.
    let coverage = number(&dry, "coverage_percent");
    assert!((90.0..100.0).contains(&coverage), "{coverage}");
    let text = String::from_utf8(run(dir.path(), &base).stdout).unwrap();
    assert!(text.contains("difference %") && text.contains("own noise"), "{text}");
}

#[test]
fn ctrl_c_ends_it_with_what_was_done() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    let mut command = quell(dir.path());
    command.args(["replay", "selfish.txt", "--emulate", "--ranks", "8,16", "--phases", "1000000", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut printed).unwrap();
    assert!(printed.contains("phases of single ranks"), "{printed}");
    // SAFETY: it is our child, and was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["interrupted"], true, "{document}");
    assert!(document["points"].as_array().unwrap().len() <= 1, "{document}");
}

#[test]
fn what_cannot_be_emulated_is_wrong_usage() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    let cases: [&[&str]; 9] = [
        &["--phases", "0"],
        &["--quantum", "0ms"],
        &["--skew", "1ms"],
        &["--scale", "0.01"],
        &["--scale", "0"],
        &["--ranks", "0"],
        &["--overhead", "1us"],
        &["--context", "timer"],
        &["--share", "2"],
    ];
    for case in cases {
        let output = run(dir.path(), &[&["replay", "selfish.txt", "--emulate"], case].concat());
        assert_eq!(output.status.code(), Some(2), "{case:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = run(dir.path(), &["replay", "selfish.txt", "--emulate", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn phases_run_for_more_ranks_than_cpus_and_take_what_is_predicted() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        netgauge(dir.path());
        let sync_modes: [&[&str]; 3] = [&["none"], &["start", "--skew", "3ms"], &["phase"]];
        for sync in sync_modes {
            measure(|_| emulate(dir.path(), sync));
        }
    }

    fn emulate(folder: &Path, sync: &[&str]) -> Result<(), String> {
        let mut args = vec!["replay", "selfish.txt", "--emulate", "--ranks", "8,32", "--phases", "60"];
        args.extend(["--scale", "0.1", "--seed", "3", "--json", "--sync"]);
        args.extend(sync);
        let document = json(folder, &args);
        assert_eq!(document["schema"], "quell.emulate/2");
        assert_eq!((&document["sync"], &document["interrupted"]), (&sync[0].into(), &false.into()));
        assert_eq!((number(&document, "scale"), number(&document, "quantum_ns")), (0.1, 1e6));
        assert_eq!(document["machine"]["cpus"].as_array().unwrap().len(), cpus());
        let points = document["points"].as_array().unwrap();
        assert_eq!(points.iter().map(|point| point["ranks"].as_u64().unwrap()).collect::<Vec<_>>(), [8, 32]);
        points.iter().try_for_each(|point| check_point(point, 60))
    }
}
