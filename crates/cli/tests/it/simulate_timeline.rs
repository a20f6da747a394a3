//! `quell simulate --timeline`, run as a program.

use std::path::Path;

use crate::support::pftrace::shown;
use crate::support::{run, transcript};
use insta::assert_snapshot;

const SCHEDULE: &str = "num_ranks 2

rank 0 {
l1: calc 100
l2: send 10b to 1 tag 7
l3: send 20b to 1 tag 8
l4: recv 1b from 1 tag 9
l2 requires l1
l3 requires l2
}

rank 1 {
l1: recv 10b from 0 tag 7
l2: recv 20b from 0 tag 8
l3: calc 300 cpu 1
l4: send 1b to 0 tag 9 cpu 1
l3 requires l1
l4 requires l3
}
";

/// Writes the schedule, and noise that strikes both ranks in their first 100 ns.
fn inputs(folder: &Path) {
    fs_err::write(folder.join("two.goal"), SCHEDULE).unwrap();
    fs_err::write(folder.join("noise.txt"), "# Selfish Benchmark\n50.00\t30.00\n900000.00\t10.00\n").unwrap();
    fs_err::write(folder.join("offsets.txt"), "0\n0\n").unwrap();
}

#[test]
fn a_run_of_two_ranks_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let call = [
        "simulate",
        "two.goal",
        "--noise",
        "noise.txt",
        "--offsets",
        "offsets.txt",
        "--timeline",
        "a.pftrace",
    ];
    let printed = transcript(dir.path(), &call);
    let lines =
        shown(&dir.path().join("a.pftrace")).join("\n").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    assert_snapshot!(format!("$ quell {}\n{printed}\n{lines}\n", call.join(" ")));
    let without = run(dir.path(), &call[..call.len() - 2]);
    assert!(printed.contains(&*String::from_utf8_lossy(&without.stdout)), "the result is the same");
}

#[test]
fn what_cannot_be_drawn_is_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    fs_err::write(dir.path().join("there.pftrace"), "mine").unwrap();
    let there = transcript(dir.path(), &["simulate", "two.goal", "--timeline", "there.pftrace"]);
    assert!(
        there.starts_with("exit 1\n--- stdout\n--- stderr\nerror: there.pftrace exists already"),
        "{there}"
    );
    assert_eq!(fs_err::read_to_string(dir.path().join("there.pftrace")).unwrap(), "mine");
    let compat = transcript(dir.path(), &["simulate", "two.goal", "--compat", "--timeline", "b.pftrace"]);
    assert!(
        compat.starts_with("exit 2\n--- stdout\n--- stderr\nerror: a timeline needs the physical"),
        "{compat}"
    );
    assert!(!dir.path().join("b.pftrace").exists());
}

#[test]
fn of_many_ranks_some_are_drawn_and_their_arrows_pair_up() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        ["simulate", "--pattern", "dissemination", "--ranks", "256", "--bytes", "8", "--iterations", "3"];
    for output in ["a.pftrace", "b.pftrace"] {
        let printed = transcript(dir.path(), &[&args[..], &["--timeline", output]].concat());
        assert!(printed.contains(&format!("{output} holds 64 of 256 ranks, evenly spread")), "{printed}");
    }
    let file = |name| fs_err::read(dir.path().join(name)).unwrap();
    assert_eq!(file("a.pftrace"), file("b.pftrace"), "equal runs give equal bytes");
    let lines = shown(&dir.path().join("a.pftrace"));
    let arrows = |end: &dyn Fn(&str) -> Option<u64>| {
        let mut all: Vec<u64> = lines.iter().filter_map(|line| end(line.rsplit(' ').next()?)).collect();
        all.sort_unstable();
        all
    };
    let from = arrows(&|word| word.strip_suffix('>')?.parse().ok());
    let to = arrows(&|word| word.strip_prefix('>')?.parse().ok());
    // Every fourth rank is drawn: in six of the eight rounds, messages are between drawn ranks.
    assert_eq!(from, (1..=3 * 6 * 64).collect::<Vec<u64>>());
    assert_eq!(to, from);
    for name in ["begins send", "begins receive"] {
        assert_eq!(lines.iter().filter(|line| line.contains(name)).count(), 3 * 8 * 64);
    }
}
