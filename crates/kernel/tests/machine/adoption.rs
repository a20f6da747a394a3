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
    outcome(Command::new(program).env(container::VARIABLE, name))
}

fn outcome(command: &mut Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A user without rights.
const NOBODY: u32 = 65_534;

#[test]
fn another_user_gets_nothing_and_takes_no_slot() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt as _;
    // SAFETY: the call has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return quell_testing::skip("only root can be another user too");
    }
    // The way to the target folder may be closed to other users.
    let folder = tempfile::tempdir().unwrap();
    fs_err::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let _turn = quell_testing::machine();
    let program = program(folder.path());
    let Some(recorder) = recorder(true) else { return };
    let name = format!("quell-intruders-{}", std::process::id());
    recorder.container().unwrap().serve_under(&name).unwrap();
    let by_another_user = || {
        let mut command = Command::new(&program);
        command.env(container::VARIABLE, &name).uid(NOBODY).gid(NOBODY);
        command
    };
    let (code, printed) = outcome(&mut by_another_user());
    assert!(code == Some(2) && printed.contains("quell gives its container to"), "{printed}");
    // A followed process may read, whoever it runs as: its slot is its own.
    let mut followed = by_another_user();
    let started = recorder.follow_children_started_by(|| followed.stdout(Stdio::piped()).spawn()).unwrap();
    let followed = started.unwrap().wait_with_output().unwrap();
    assert_eq!(followed.status.code(), Some(0), "{}", String::from_utf8_lossy(&followed.stdout));

    // A crowd that connects and asks for nothing takes no slot and does not shut others out.
    let crowd = format!(
        "import os, socket\nos.setgid({NOBODY}); os.setuid({NOBODY})\nfor _ in range(10_000):\n    \
         with socket.socket(socket.AF_UNIX) as s:\n        s.connect(b'\\0{name}')\n"
    );
    let mut crowd = Command::new("python3").args(["-c", &crowd]).spawn().unwrap();
    let (code, printed) = outcome(Command::new(&program).env(container::VARIABLE, &name));
    assert_eq!(code, Some(0), "{printed}");
    assert!(crowd.wait().unwrap().success());
    assert!(!recorder.follows_any(), "no slot is left behind");
    assert_eq!(recorder.facts().lost_threads, 0);
}

#[test]
fn a_process_outside_the_job_reads_and_is_not_followed() {
    let _turn = quell_testing::machine();
    let Some(recorder) = recorder(true) else { return };
    let name = format!("quell-outside-{}", std::process::id());
    recorder.container().unwrap().serve_under(&name).unwrap();
    // It knows the name, but its environment did not.
    let connect = format!(
        "import os, sys\nos.environ['{}'] = '{name}'\nsys.path.append('{}/../../python/quell')\n\
         from metrics import Metrics\nprint(Metrics.open().thread())",
        container::VARIABLE,
        env!("CARGO_MANIFEST_DIR")
    );
    let (code, printed) = outcome(Command::new("python3").args(["-c", &connect]));
    assert_eq!((code, printed.trim()), (Some(0), "None"));
    assert!(!recorder.follows_any());
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
    let folder = tempfile::tempdir().unwrap();
    let _turn = quell_testing::machine();
    let program = program(folder.path());
    let Some(recorder) = recorder(false) else { return };
    let name = format!("quell-strangers-{}", std::process::id());
    let (code, printed) = ask(&program, &recorder, &name);
    assert!(code != Some(0) && printed.contains("asks none"), "{printed}");
    assert!(!recorder.follows_any());
}
