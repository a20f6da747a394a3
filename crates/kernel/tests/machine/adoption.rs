//! Processes that are followed because they request the container while they run.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quell_kernel::{Plan, Recorder, container};

/// The test's program.
fn program(folder: &Path) -> std::path::PathBuf {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("adopted");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
    compiler.arg(room.join("include")).arg(room.join("tests/metrics/adopted.c")).arg("-o").arg(&program);
    let output = compiler.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn recorder(adopt: bool) -> Option<Recorder> {
    let plan = Plan { follow: true, adopt, ..Plan::default() };
    Recorder::start(plan).inspect_err(|why| quell_testing::skip(why)).ok()
}

/// Runs the program so that it is not followed from birth; returns its exit code and output.
fn ask(program: &Path, recorder: &Recorder, name: &str) -> (Option<i32>, String) {
    recorder.container().unwrap().serve_under(name).unwrap();
    let output = Command::new(program).env(container::VARIABLE, name).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn who_asks_is_followed_with_all_threads() {
    let _turn = quell_testing::machine();
    let program = program(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let Some(mut recorder) = recorder(true) else { return };
    let name = format!("quell-adoption-{}", std::process::id());
    let (code, printed) = ask(&program, &recorder, &name);
    assert_eq!(code, Some(0), "{printed}");
    // A thread's last switch may come shortly after its process was waited for.
    let (mut intervals, mut ends, begin) = (Vec::new(), Vec::new(), Instant::now());
    while ends.len() < 3 && begin.elapsed() < Duration::from_secs(20) {
        recorder.drain(&mut intervals, &mut ends);
        ends.retain(|(_, thread)| &*thread.comm == "adopted");
    }
    // One end per thread: two threads and the one that opened the container.
    let facts = recorder.facts();
    assert_eq!(ends.len(), 3, "{ends:?}, living: {:?}, {facts:?}", recorder.living(0));
    assert!(!recorder.follows_any(), "no slot is left behind");
    assert_eq!(facts.lost_threads, 0);
}

#[test]
fn without_adoption_who_asks_reads_and_has_no_slot() {
    let folder = tempfile_nearby();
    let _turn = quell_testing::machine();
    let program = program(&folder);
    let Some(recorder) = recorder(false) else { return };
    let name = format!("quell-strangers-{}", std::process::id());
    let (code, printed) = ask(&program, &recorder, &name);
    assert!(code != Some(0) && printed.contains("asks none"), "{printed}");
    assert!(!recorder.follows_any());
}

/// A folder for this test alone: two tests that run at once compile the same program.
fn tempfile_nearby() -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("strangers");
    fs_err::create_dir_all(&folder).unwrap();
    folder
}
