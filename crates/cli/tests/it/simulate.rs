//! `quell simulate` and `quell predict --op`, run as a program.

use std::path::Path;

use crate::support::{json, netgauge, run, transcript};
use insta::assert_snapshot;
use serde_json::{Value, json};

fn write(folder: &Path, name: &str, text: &str) {
    fs_err::write(folder.join(name), text).unwrap();
}

/// Two ranks: a message there and back.
const PING: &str = "num_ranks 2\nrank 0 {\ns: send 8b to 1\nr: recv 8b from 1\nr requires s\n}\nrank 1 {\nr: recv 8b from 0\ns: send 8b to 0\ns requires r\n}\n";
/// Two ranks that both receive first.
const DEADLOCK: &str = "num_ranks 2\nrank 0 {\nhear: recv 8b from 1\nsay: send 8b to 1\nsay requires hear\n}\nrank 1 {\nhear: recv 8b from 0\nsay: send 8b to 0\nsay requires hear\n}\n";
/// A message whose tag no receive matches.
const MISSED: &str = "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {\nrecv 8b from 0\n}\n";

fn output(folder: &Path, calls: &[&[&str]]) -> String {
    calls.iter().map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(folder, args))).collect()
}

#[test]
fn a_simulation_says_when_ranks_are_done() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    write(dir.path(), "ping.goal", PING);
    let calls: [&[&str]; 7] = [
        &["simulate", "ping.goal"],
        &[
            "simulate",
            "--pattern",
            "allreduce",
            "--ranks",
            "16",
            "--net",
            "hdr",
            "--within",
            "4=L=200,o=50",
            "--within",
            "8=edr",
        ],
        &["simulate", "ping.goal", "--net", "atlahs", "-G", "0.5"],
        &[
            "simulate",
            "--pattern",
            "bsp",
            "--inner",
            "allreduce",
            "--ranks",
            "1Ki",
            "--noise",
            "selfish.txt",
            "--baseline",
        ],
        &[
            "simulate",
            "--pattern",
            "barrier",
            "--ranks",
            "256",
            "--compat",
            "--noise",
            "selfish.txt",
            "--cosched",
        ],
        &["simulate", "--net", "help"],
        &["simulate", "--help"],
    ];
    assert_snapshot!(output(dir.path(), &calls));
}

#[test]
fn programs_that_do_not_end_say_why() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "deadlock.goal", DEADLOCK);
    write(dir.path(), "missed.goal", MISSED);
    let all = "num_ranks 30\nrank 0 {\n".to_owned()
        + &"recv 1b from -1\n".repeat(30)
        + "}\n"
        + &(1..30).map(|rank| format!("rank {rank} {{\n}}\n")).collect::<String>();
    write(dir.path(), "many.goal", &all);
    write(dir.path(), "broken.goal", "num_ranks 1\nrank 0 {\ncalc\n}\n");
    let calls: [&[&str]; 7] = [
        &["simulate", "deadlock.goal"],
        &["simulate", "deadlock.goal", "--compat", "--json"],
        &["simulate", "missed.goal"],
        &["simulate", "missed.goal", "--compat"],
        &["simulate", "missed.goal", "--json"],
        &["simulate", "many.goal", "--compat"],
        &["simulate", "broken.goal"],
    ];
    assert_snapshot!(output(dir.path(), &calls));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    write(dir.path(), "ping.goal", PING);
    write(dir.path(), "one.txt", "7\n");
    write(dir.path(), "bad.txt", "7\n-8\n");
    write(dir.path(), "back.txt", "10\t1\n5\t1\n");
    let calls: [&[&str]; 21] = [
        &["simulate"],
        &["simulate", "nothing.goal"],
        &["simulate", "ping.goal", "--bytes", "8"],
        &["simulate", "--pattern", "nothing"],
        &["simulate", "--pattern", "barrier", "--nway", "3"],
        &["simulate", "--pattern", "halo2d", "--ranks", "8", "--dims", "3x3"],
        &["simulate", "--pattern", "barrier", "--ranks", "0"],
        &["simulate", "--pattern", "barrier", "--bytes", "1.5"],
        &["simulate", "ping.goal", "--net", "L=2500,L=3"],
        &["simulate", "ping.goal", "--net", "mars"],
        &["simulate", "ping.goal", "--within", "64"],
        &["simulate", "ping.goal", "--within", "6=hdr", "--within", "4=edr"],
        &["simulate", "ping.goal", "--within", "2=hdr", "--compat"],
        &["simulate", "ping.goal", "-G", "NaN"],
        &["simulate", "ping.goal", "--compat", "-G", "0.04"],
        &["simulate", "ping.goal", "--compat", "--noise", "selfish.txt", "--noise", "selfish.txt"],
        &["simulate", "ping.goal", "--compat", "--noise", "selfish.txt", "--skew", "1us"],
        &["simulate", "ping.goal", "--noise", "selfish.txt", "--offsets", "one.txt"],
        &["simulate", "ping.goal", "--noise", "selfish.txt", "--offsets", "bad.txt"],
        &["simulate", "ping.goal", "--compat", "--noise", "back.txt"],
        &["simulate", "ping.goal", "--baseline"],
    ];
    assert_snapshot!(output(dir.path(), &calls));
}

/// Computed by hand: work of 55 starts at offset 60. LogGOPSim counts detours that start before 115; a machine also counts the one at 160,
/// which strikes while the work is delayed.
#[test]
fn noise_strikes_by_either_rule() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "work.goal", "num_ranks 1\nrank 0 {\ncalc 55\n}\n");
    write(dir.path(), "noise.txt", "# Selfish\n0.00\t5.00\n100.00\t50.00\n160.00\t10.00\n100000.00\t1.00\n");
    write(dir.path(), "offsets.txt", "60\n");
    let args =
        ["simulate", "work.goal", "--noise", "noise.txt", "--offsets", "offsets.txt", "--baseline", "--json"];
    let physical = json(dir.path(), &args);
    assert_eq!((&physical["max_ns"], &physical["noise"]["injected_noise_ns"]), (&json!(115), &json!([60])));
    assert_eq!(physical["baseline"]["max_ns"], 55);
    let compatible = json(dir.path(), &[&args[..], &["--compat"]].concat());
    assert_eq!((&compatible["max_ns"], &compatible["noise"]["injected_total_ns"]), (&json!(105), &json!(50)));
    assert_eq!(compatible["noise"]["start"], "offsets");
}

#[test]
fn the_document_has_the_fields_that_others_rely_on() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "ping.goal", PING);
    let played = json(dir.path(), &["simulate", "ping.goal", "--compat", "--json"]);
    // o + L + o in each direction, and (8 − 1)·6 on the receiver's CPU, twice. LogGOPSim counts a send, a message and a receive each.
    let expected = json!({ "schema": "quell.simulate/2", "ranks": 2, "events": 6, "finished": true, "max_ns": 11_084,
        "max_rank": 0, "finish_times_ns": [11_084, 7_042], "rules": "compatible" });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&played[field], value, "{field}");
    }
    let wide = |more: &[&str]| {
        let args = ["simulate", "--pattern", "barrier", "--ranks", "4097", "--json"];
        json(dir.path(), &[&args[..], more].concat())
    };
    assert_eq!(wide(&[])["finish_times_ns"], Value::Null);
    assert_eq!(wide(&["--all-times"])["finish_times_ns"].as_array().unwrap().len(), 4_097);
}

#[test]
fn messages_end_a_phase_as_they_do_in_a_simulation() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    let predicted = |more: &[&str]| {
        let args =
            ["predict", "selfish.txt", "--ranks", "16,64", "--op", "barrier", "--phases", "60", "--json"];
        json(dir.path(), &[&args[..], more].concat())
    };
    let phase = predicted(&["--sync", "phase"]);
    let bsp =
        ["simulate", "--pattern", "bsp", "--inner", "barrier", "--work", "1ms", "--ranks", "64", "--json"];
    assert_eq!(phase["points"][1]["base_phase_ns"], json(dir.path(), &bsp)["max_ns"]);
    let none = predicted(&[]);
    assert_eq!((&none["op"], &none["network"]["bytes"]), (&json!("barrier"), &json!(8)));
    for point in none["points"].as_array().unwrap() {
        let [slowdown, low, high] =
            [&point["slowdown_percent"], &point["ci95_percent"][0], &point["ci95_percent"][1]]
                .map(|value| value.as_f64().unwrap());
        assert!(low <= slowdown && slowdown <= high && slowdown > 0.0, "{point}");
        assert_eq!((point["phases"].as_u64(), point["replicates"].as_u64()), (Some(60), Some(40)));
    }
    assert_snapshot!(output(
        dir.path(),
        &[
            &[
                "predict",
                "selfish.txt",
                "--ranks",
                "16,64",
                "--op",
                "allreduce",
                "--bytes",
                "1Ki",
                "--phases",
                "100"
            ],
            &["predict", "selfish.txt", "--op", "barrier", "--sync", "start", "--drift", "1"],
            &["predict", "selfish.txt", "--op", "alltoall", "--ranks", "1Mi"],
            &["predict", "selfish.txt", "--op", "training-step"],
            &["predict", "selfish.txt", "--op", "nothing"],
            &["predict", "selfish.txt", "--bytes", "8"],
        ]
    ));
}

#[test]
fn equal_seeds_give_equal_bytes_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    let calls: [&[&str]; 3] = [
        &[
            "simulate",
            "--pattern",
            "allreduce",
            "--ranks",
            "3000",
            "--iterations",
            "3",
            "--noise",
            "selfish.txt",
        ],
        &["simulate", "--pattern", "barrier", "--ranks", "500", "--noise", "selfish.txt", "--compat"],
        &["predict", "selfish.txt", "--op", "bcast", "--ranks", "16..512", "--phases", "50"],
    ];
    for args in calls {
        let on = |threads: &str| run(dir.path(), &[args, &["--json", "--threads", threads]].concat()).stdout;
        let one = on("1");
        assert!(!one.is_empty());
        assert_eq!(one, on("3"), "{args:?}");
    }
}

#[test]
fn who_made_it_late_is_named() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    let args =
        ["simulate", "--pattern", "bsp", "--ranks", "64", "--iterations", "5", "--noise", "selfish.txt"];
    let plain = json(dir.path(), &[&args[..], &["--json"]].concat());
    let named = json(dir.path(), &[&args[..], &["--culprits", "--json"]].concat());
    assert!(plain["culprits"].is_null());
    assert_eq!(plain["finish_times_ns"], named["finish_times_ns"]);
    let culprits = &named["culprits"];
    let number = |value: &Value| value.as_u64().unwrap();
    let sum = |list: &Value| list.as_array().unwrap().iter().map(number).sum::<u64>();
    let delay = number(&culprits["delay_ns"]);
    assert!(delay > 0, "{culprits}");
    assert_eq!(number(&culprits["silent_path_ns"]) + delay, number(&named["max_ns"]));
    assert_eq!((sum(&culprits["iterations_ns"]), sum(&culprits["propagated_ns"])), (delay, delay));
    let sources = culprits["sources"].as_array().unwrap();
    assert_eq!(sources.iter().map(|source| number(&source["delay_ns"])).sum::<u64>(), delay);
    assert_eq!(number(&culprits["struck_ns"]), number(&named["noise"]["injected_total_ns"]));
}
