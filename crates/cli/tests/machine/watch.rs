//! `watch` on the kernel that runs these tests, through a pipe.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::support::{Guard, cpus, quell, run};
use quell_testing::{machine, measure, skip};
use serde_json::Value;

#[test]
fn without_sources_the_probe_still_reports() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let args = ["watch", "--json", "--sources", "off", "--duration", "500ms", "--interval", "250ms"];
    let output = run(dir.path(), &args);
    let text = String::from_utf8(output.stdout).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(output.status.success() && first["sources"].is_null(), "{text}");
    assert!(first["cpus"][0]["detours_per_s"].is_number() && first["cpus"][0]["kernel_percent"].is_null());
}

#[test]
fn an_interrupt_ends_it_well_with_a_summary() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let args = ["watch", "--sources", "off", "--cpus", "0", "--interval", "200ms"];
    let child = quell(dir.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut child = Guard(child);
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("quell itself")), "an interval was shown");
    // SAFETY: the child has not been waited for, so the id is its own.
    unsafe { libc::kill(child.0.id() as i32, libc::SIGINT) };
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!(rest.iter().any(|line| line.starts_with("watched for")), "{rest:?}");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [&[&str]; 4] = [
        &["watch", "--interval", "1ms"],
        &["watch", "--passive", "--sources", "off"],
        &["watch", "--realtime", "1"],
        &["watch", "--cpus", "9999"],
    ];
    for case in cases {
        let output = run(dir.path(), case);
        assert_eq!(output.status.code(), Some(2), "{case:?}");
        assert!(output.stderr.starts_with(b"error: "), "{case:?}");
    }
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn each_interval_is_a_line_with_every_cpu() {
        let _machine = machine();
        measure(|_| watch_three_intervals());
    }

    fn watch_three_intervals() -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let args = ["watch", "--plain", "--json", "--duration", "3s", "--interval", "1s"];
        let output = run(dir.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // A machine that stands still for a while has fewer, or a rest.
        if lines.len() != 3 {
            return Err(format!("{} intervals: {text}", lines.len()));
        }
        for (index, line) in lines.iter().enumerate() {
            assert_eq!(line["schema"], "quell.watch/1");
            assert_eq!(line["cpus"].as_array().unwrap().len(), cpus());
            let late = line["time_ns"].as_u64().unwrap() - (index as u64 + 1) * 1_000_000_000;
            if late >= 900_000_000 {
                return Err(format!("an interval ends {late} ns late"));
            }
            assert!(line["cpus"][0]["noise_percent"].as_f64().unwrap() <= 100.0);
        }
        if lines[0]["sources"].is_null() {
            skip(format!("sources are unknown here: {}", lines[0]["sources_unknown_because"]));
            return Ok(());
        }
        let sources = lines[2]["sources"].as_array().unwrap();
        let tick = sources.iter().find(|row| row["source"] == "tick").unwrap();
        assert!(tick["since_start"]["count"].as_u64() >= tick["now"]["count"].as_u64());
        assert!(sources.iter().any(|row| row["source"] == "unattributed"));
        assert!(lines[0]["overhead"]["thread_percent"].as_f64().unwrap() > 0.0);
        // With a probe on every CPU, this program's reading shows up as detours, which are distinguished from noise.
        let own: u64 = lines.iter().map(|line| line["overhead"]["own_detours"].as_u64().unwrap()).sum();
        if own > 0 { Ok(()) } else { Err(format!("no detour is the program's own: {text}")) }
    }
}
