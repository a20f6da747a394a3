//! Noise by timers in programs that look hard: what they print and how they end is what it would be without.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::quell;

/// A detour of 60 us in each millisecond.
const MODEL: &str =
    "span = \"1s\"\n[[component]]\nperiodic = { period = \"1ms\" }\nduration = { constant = \"60us\" }\n";

/// The C program that looks, built into a folder.
fn built(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/notices.c");
    let program = folder.join("notices");
    let status = Command::new("cc").args(["-O1", "-o"]).arg(&program).args([source, "-lpthread"]).status();
    assert!(status.unwrap().success(), "cc builds {source}");
    program
}

/// Runs a part of it under the noise.
fn noisy(folder: &Path, program: &Path, part: &str) -> Output {
    fs_err::write(folder.join("model.toml"), MODEL).unwrap();
    let mut command = quell(folder);
    command.args(["replay", "model.toml", "--context", "timer", "--overhead", "20us", "--"]);
    command.arg(program).arg(part).output().unwrap()
}

fn same(parts: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let program = built(dir.path());
    for part in parts {
        let quiet = Command::new(&program).arg(part).output().unwrap();
        let noisy = noisy(dir.path(), &program, part);
        let said = String::from_utf8_lossy(&noisy.stderr);
        assert_eq!(
            String::from_utf8_lossy(&quiet.stdout),
            String::from_utf8_lossy(&noisy.stdout),
            "{part}: {said}"
        );
        // quell ends as a shell does where its command was killed.
        let code = quiet.status.code().or(quiet.status.signal().map(|signal| 128 + signal));
        assert_eq!(noisy.status.code(), code, "{part}: {said}");
    }
}

#[test]
fn its_own_timers_and_jumps_go_on() {
    same(&["alarms", "suspends", "leaps"]);
}

#[test]
fn its_sleeps_last_as_long_and_are_not_ended() {
    same(&["sleeps", "writes"]);
}

#[test]
fn its_masks_and_handlers_are_as_it_set_them() {
    same(&["masks"]);
}

#[test]
fn its_threads_and_children_live() {
    same(&["threads", "children"]);
}

#[test]
fn it_ends_as_it_wants_to() {
    same(&["fails", "aborts"]);
}

#[test]
fn nothing_but_the_c_library_is_needed_and_no_panic_is_in() {
    let dir = tempfile::tempdir().unwrap();
    let library = quell_node::injector::preload::write(quell_replay::schedule::Context::Timer, dir.path());
    let library = library.unwrap().unwrap();
    let names = |arguments: &[&str]| {
        let output = Command::new("nm").args(arguments).arg(&library).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!names(&[]).contains("panicking"), "{}", names(&[]));
    let wanted = names(&["-D", "--undefined-only"]);
    let foreign = |line: &&str| line.trim_start().starts_with("U ") && !line.contains("@GLIBC_");
    assert_eq!(wanted.lines().filter(foreign).collect::<Vec<_>>(), Vec::<&str>::new());
}
