//! Noise by timers in programs that inspect their environment: their output and exit are the same as without noise.

use quell_testing::machine;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quell_node::injector::compile::CpuNoise;
use quell_node::injector::schedule::{self, Order};
use quell_node::injector::{preload, reports};
use quell_recording::Cpu;
use quell_replay::report::Field;
use quell_replay::schedule::{Context, Sync};

/// A detour of 60 us in each millisecond.
fn noise() -> CpuNoise {
    CpuNoise { cpu: Cpu(0), period_ns: 1_000_000, detours: vec![(300_000, 60_000)] }
}

/// Compiles the C program that inspects its environment.
fn built(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/notices.c");
    let program = folder.join("notices");
    let status = Command::new("cc").args(["-O1", "-o"]).arg(&program).args([source, "-lpthread"]).status();
    assert!(status.unwrap().success(), "cc builds {source}");
    program
}

/// Runs a part of it under the noise.
fn noisy(folder: &Path, program: &Path, part: &str) -> Output {
    let library = preload::write(Context::Timer, folder).unwrap().unwrap();
    let order = Order {
        context: Context::Timer,
        sync: Sync::None,
        overhead_ns: 20_000,
        early_ns: 0,
        smallest_gap_ns: 32_000,
        limit_ns: 0,
        epoch_ns: 0,
        events: 100,
        phase_calls: 0,
        ranked_only: false,
        places: vec![0],
        skews: vec![],
        blocks: None,
    };
    let file = folder.join("schedule");
    schedule::write(&file, &schedule::words(&order, &[vec![noise()]])).unwrap();
    let reported = folder.join(part);
    fs_err::create_dir(&reported).unwrap();
    let mut command = Command::new(program);
    command.arg(part).env("LD_PRELOAD", library);
    command.env("QUELL_REPLAY", file).env("QUELL_REPLAY_REPORTS", reported).output().unwrap()
}

fn same(parts: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let program = built(dir.path());
    for part in parts {
        let quiet = Command::new(&program).arg(part).output().unwrap();
        let noisy = noisy(dir.path(), &program, part);
        let printed = String::from_utf8_lossy(&noisy.stderr);
        assert_eq!(
            String::from_utf8_lossy(&quiet.stdout),
            String::from_utf8_lossy(&noisy.stdout),
            "{part}: {printed}"
        );
        assert_eq!(
            (noisy.status.code(), noisy.status.signal()),
            (quiet.status.code(), quiet.status.signal())
        );
        let suffered = suffered(&dir.path().join(part));
        assert!(suffered > 0, "{part} ran without noise: {printed}");
    }
}

/// How often timers struck, in the processes that have reported so far.
fn suffered(folder: &Path) -> u64 {
    reports::read(folder).unwrap().iter().map(|report| report.get(Field::Calls)).sum()
}

#[test]
fn its_own_timers_and_jumps_go_on() {
    let _machine = machine();
    same(&["alarms", "suspends", "leaps"]);
}

#[test]
fn its_sleeps_last_as_long_and_are_not_ended() {
    let _machine = machine();
    same(&["sleeps", "writes"]);
}

#[test]
fn its_masks_and_handlers_are_as_it_set_them() {
    let _machine = machine();
    same(&["masks"]);
}

#[test]
fn its_threads_and_children_live() {
    let _machine = machine();
    same(&["threads", "children"]);
}

#[test]
fn a_process_that_becomes_another_program_has_a_report_for_each() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let program = built(dir.path());
    let noisy = noisy(dir.path(), &program, "becomes");
    let printed = String::from_utf8_lossy(&noisy.stdout).into_owned();
    assert_eq!(printed, "the child is done\nthe child ended: status 0\n", "{noisy:?}");
    let reports = reports::read(&dir.path().join("becomes")).unwrap();
    let reported: Vec<_> = reports.iter().map(|report| (report.name(), report.get(Field::Threads))).collect();
    assert_eq!(reported, [("notices".to_owned(), 1), ("notices".to_owned(), 1)], "a fork counts no thread");
    assert_eq!(reports[0].get(Field::Pid), reports[1].get(Field::Pid));
}

/// Compiles a text.
fn cc(folder: &Path, name: &str, source: &str, more: &[&str]) -> PathBuf {
    let (text, made) = (folder.join(format!("{name}.c")), folder.join(name));
    fs_err::write(&text, source).unwrap();
    let mut command = Command::new("cc");
    command.args(["-O1", "-fPIC", "-o"]).arg(&made).arg(&text).args(more).arg("-lpthread");
    assert!(command.status().unwrap().success(), "cc builds {name}");
    made
}

#[test]
fn workers_of_openmp_suffer_too() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let program = "volatile long turns[3][8];\nint main(void) {\n#pragma omp parallel for num_threads(3)\n\
                   for (int i = 0; i < 3; i++) for (turns[i][0] = 0; turns[i][0] < 30000000; turns[i][0]++);\n\
                   return 0; }\n";
    let program = cc(dir.path(), "team", program, &["-fopenmp"]);
    let noisy = noisy(dir.path(), &program, "workers");
    assert!(noisy.status.success(), "{noisy:?}");
    let reports = reports::read(&dir.path().join("workers")).unwrap();
    let threads: Vec<u64> = reports.iter().map(|report| report.get(Field::Threads)).collect();
    assert_eq!(threads, [3], "the first and two workers");
}

/// Constructors of libraries run before those of preloaded libraries.
#[test]
fn threads_of_a_constructor_of_a_library_suffer_too() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let library = "#include <pthread.h>\npthread_t early; volatile long turns;\n\
                   static void *spin(void *none) { for (turns = 0; turns < 30000000; turns++); return none; }\n\
                   __attribute__((constructor)) static void begin(void) { pthread_create(&early, 0, spin, 0); }\n";
    let early = cc(folder, "libearly.so", library, &["-shared"]);
    let program = "#include <pthread.h>\nextern pthread_t early;\n\
                   int main(void) { return pthread_join(early, 0); }\n";
    let program = cc(folder, "late", program, &[early.to_str().unwrap(), "-Wl,-rpath,$ORIGIN"]);
    let noisy = noisy(folder, &program, "early");
    assert!(noisy.status.success(), "{noisy:?}");
    let reports = reports::read(&folder.join("early")).unwrap();
    let threads: Vec<u64> = reports.iter().map(|report| report.get(Field::Threads)).collect();
    assert_eq!(threads, [2], "the first and the early one");
}

#[test]
fn it_ends_as_it_wants_to() {
    let _machine = machine();
    same(&["fails", "aborts"]);
}

#[test]
fn nothing_but_the_c_library_is_needed_and_no_panic_is_in() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let library = preload::write(Context::Timer, dir.path()).unwrap().unwrap();
    let names = |arguments: &[&str]| {
        let output = Command::new("nm").args(arguments).arg(&library).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!names(&[]).contains("panicking"), "{}", names(&[]));
    let wanted = names(&["-D", "--undefined-only"]);
    let foreign = |line: &&str| line.trim_start().starts_with("U ") && !line.contains("@GLIBC_");
    assert_eq!(wanted.lines().filter(foreign).collect::<Vec<_>>(), Vec::<&str>::new());
}
