//! `quell goal`, run as a program.

use crate::support::{json, run, transcript};
use insta::assert_snapshot;

#[test]
fn schedules_are_checked_made_and_converted() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs_err::write(dir.path().join(name), text).unwrap();
    write("good.goal", "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n");
    write(
        "bad.goal",
        "num_ranks 2\nrank 0 {\nout: send 8b to 1 tag 3\nsend 8b to 7\n}\nrank 1 {\nin: recv 8b from 0\n}\n",
    );
    write(
        "missed.goal",
        "num_ranks 2\nrank 0 {\nout: send 8b to 1 tag 3\n}\nrank 1 {\nin: recv 8b from 0\n}\n",
    );
    write("odd.goal", "num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}\n");
    write("broken.goal", "num_ranks 1\nrank 0 {\na: cook 1\n}\n");
    fs_err::write(dir.path().join("cut.bin"), [&4223u64.to_le_bytes()[..], &[2, 0]].concat()).unwrap();
    let calls: [&[&str]; 19] = [
        &["goal", "check", "cut.bin"],
        &["goal", "check", "cut.bin", "--json"],
        &["goal", "check", "good.goal"],
        &["goal", "check", "missed.goal"],
        &["goal", "check", "bad.goal"],
        &["goal", "check", "odd.goal"],
        &["goal", "check", "broken.goal"],
        &["goal", "check", "broken.goal", "--json"],
        &["goal", "check", "nothing.goal"],
        &["goal", "make", "--pattern", "barrier", "--ranks", "64", "-o", "barrier.goal"],
        &["goal", "convert", "barrier.goal", "-o", "barrier.bin"],
        &["goal", "convert", "barrier.bin", "-o", "barrier.bin"],
        &["goal", "convert", "barrier.bin", "-o", "barrier.bin", "--force"],
        &["goal", "convert", "barrier.bin", "-o", "barrier.txt"],
        &["goal", "convert", "barrier.bin", "-o", "barrier.txt", "--to", "text"],
        &["goal", "make", "--pattern", "alltoall", "--ranks", "1Mi", "-o", "large.bin"],
        &[
            "goal",
            "make",
            "--pattern",
            "nway-dissemination",
            "--ranks",
            "32Ki",
            "--nway",
            "128",
            "-o",
            "large.bin",
        ],
        &["goal", "check", "barrier.bin"],
        &["goal", "--help"],
    ];
    let printed = calls.map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(dir.path(), args)));
    assert_snapshot!(printed.concat());
    let text = |name: &str| fs_err::read(dir.path().join(name)).unwrap();
    assert_eq!(text("barrier.goal"), text("barrier.txt"));
    let left = ["large.bin", "large.bin.part", "barrier.bin.part"];
    assert!(left.iter().all(|name| !dir.path().join(name).exists()), "nothing half made is left");
}

#[test]
fn every_pattern_plays_alike_as_a_rule_and_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let list = json(dir.path(), &["goal", "list", "--json"]);
    assert_eq!(list["schema"], "quell.goal-list/1");
    for pattern in list["patterns"].as_array().unwrap() {
        let name = pattern["name"].as_str().unwrap();
        let file = format!("{name}.bin");
        let what = ["--pattern", name, "--ranks", "12", "--iterations", "2"];
        let made = run(dir.path(), &[&["goal", "make", "-o", &file][..], &what].concat());
        assert!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
        let checked = json(dir.path(), &["goal", "check", &file, "--json"]);
        assert_eq!((checked["errors"].as_u64(), checked["warnings"].as_u64()), (Some(0), Some(0)), "{name}");
        for rules in [
            &["--json", "--progress", "call"][..],
            &["--json", "--progress", "async"],
            &["--json", "--compat"],
        ] {
            let rule = json(dir.path(), &[&["simulate"][..], &what, rules].concat());
            let file = json(dir.path(), &[&["simulate", &file][..], rules].concat());
            for field in ["events", "max_ns", "finish_times_ns"] {
                assert_eq!(rule[field], file[field], "{name} {rules:?} {field}");
            }
        }
    }
}
