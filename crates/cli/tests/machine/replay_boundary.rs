//! Noise at the calls of real MPI programs: how much is injected, when, and what else the program notices.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::node::median;
use crate::support::replaying::{self, beat, last_reports, last_run, launch, words};
use crate::support::tools::{compile, compile_file, is_here, mpis};
use crate::support::{json, quell, run};
use quell_replay::report::Field;
use quell_replay::schedule::Schedule;
use quell_testing::{machine, measure};
use serde_json::Value;

/// Compiles the program that makes MPI calls.
fn calls(folder: &Path, mpi: &str) -> PathBuf {
    let program = folder.join(format!("calls-{mpi}"));
    compile(&format!("mpicc.{mpi}"), "calls.c", &program, &[]);
    program
}

/// Runs a command under noise; returns its document.
fn replay(folder: &Path, options: &[&str], mpi: &str, ranks: usize, program: &[&str]) -> Value {
    let launch = launch(mpi, ranks);
    let mut args = vec!["replay"];
    args.extend(options);
    args.extend(["--json", "--"]);
    args.extend(launch.iter().map(String::as_str));
    args.extend(program);
    json(folder, &args)
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn fortran_programs_suffer_under_every_binding() {
    let _machine = machine();
    let source = "program f\n  USE\n  integer :: ierr, i, x, y\n  call mpi_init(ierr)\n  do i = 1, 50\n    x = i\n    \
                  call mpi_barrier(mpi_comm_world, ierr)\n    call mpi_sendrecv(x, 1, MPI_INTEGER, 0, 1, y, 1, MPI_INTEGER, 0, 1, &\n      \
                  MPI_COMM_SELF, MPI_STATUS_IGNORE, ierr)\n    if (y /= i) stop 9\n  end do\n  call mpi_finalize(ierr)\nend program\n";
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        beat(dir.path(), "short", "100us", "1us");
        for binding in ["use mpi", "use mpi_f08", "include 'mpif.h'"] {
            let (text, program) = (dir.path().join("f.f90"), dir.path().join("f"));
            fs_err::write(&text, source.replace("USE", binding)).unwrap();
            let compiler = format!("mpif90.{mpi}");
            if !is_here(&compiler) {
                continue;
            }
            compile_file(&compiler, &text, &program, &[]);
            let document = replay(dir.path(), &["short.toml"], mpi, 1, &[program.to_str().unwrap()]);
            assert_eq!(number(&document["processes"][0], "calls"), 101, "{mpi}, {binding}: each call once");
        }
    }
}

/// Python loads MPI this way. In addition, the folder of the preloaded library has a name that looks like an MPI's.
#[test]
fn an_mpi_that_a_plug_in_loaded_for_itself_is_found() {
    let _machine = machine();
    let host = "#include <dlfcn.h>\n#include <stdio.h>\nint main(int count, char **words) {\n  (void)count;\n\
                  void *plug = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);\n\
                  int (*run)(void) = plug ? (int (*)(void))dlsym(plug, \"run\") : 0;\n\
                  if (!run) return puts(dlerror()), 9;\n  return run();\n}\n";
    let plug = "#include <mpi.h>\nint run(void) {\n  MPI_Init(0, 0);\n\
                  for (int i = 0; i < 50; i++) MPI_Barrier(MPI_COMM_WORLD);\n  return MPI_Finalize();\n}\n";
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        beat(folder, "short", "100us", "1us");
        let built = |name: &str, compiler: &str, source: &str, more: &[&str]| {
            let (text, made) = (folder.join(format!("{name}.c")), folder.join(name));
            fs_err::write(&text, source).unwrap();
            compile_file(compiler, &text, &made, more);
            made.to_str().unwrap().to_owned()
        };
        let host = built("host", "cc", host, &["-ldl"]);
        let plug = built("plug.so", &format!("mpicc.{mpi}"), plug, &["-shared", "-fPIC"]);
        let document = replay(folder, &["short.toml", "-o", "libmpi-kept"], mpi, 1, &[&host, &plug]);
        assert_eq!(number(&document["processes"][0], "calls"), 51, "{mpi}: the barriers and the end");
    }
}

#[test]
fn noise_goes_on_after_a_jump_out_of_a_call() {
    let _machine = machine();
    let source = "#include <mpi.h>\n#include <setjmp.h>\nstatic jmp_buf place;\n\
                  static void leap(MPI_Comm *c, int *e, ...) { (void)c; (void)e; longjmp(place, 1); }\n\
                  int main(void) {\n  MPI_Errhandler handler;\n  MPI_Init(0, 0);\n\
                  MPI_Comm_create_errhandler(leap, &handler);\n  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);\n\
                  if (!setjmp(place)) { int x = 0; MPI_Send(&x, 1, MPI_INT, 99, 0, MPI_COMM_WORLD); return 9; }\n\
                  for (int i = 0; i < 50; i++) MPI_Barrier(MPI_COMM_WORLD);\n  MPI_Finalize();\n  return 0;\n}\n";
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        beat(dir.path(), "short", "100us", "1us");
        let (text, program) = (dir.path().join("jump.c"), dir.path().join("jump"));
        fs_err::write(&text, source).unwrap();
        compile_file(&format!("mpicc.{mpi}"), &text, &program, &[]);
        let document = replay(dir.path(), &["short.toml"], mpi, 1, &[program.to_str().unwrap()]);
        assert_eq!(
            number(&document["processes"][0], "calls"),
            52,
            "{mpi}: the jump, the barriers and the end"
        );
    }
}

#[test]
fn ranks_that_count_different_phases_give_no_slowdown() {
    let _machine = machine();
    let source = "#include <mpi.h>\nint main(void) {\n  int rank;\n  MPI_Init(0, 0);\n\
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n\
                  for (int i = 0; i < 200 + 200 * rank; i++) MPI_Barrier(MPI_COMM_SELF);\n  return MPI_Finalize();\n}\n";
    let Some(mpi) = mpis().into_iter().next() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "1ms", "200us");
    let (text, program) = (folder.join("uneven.c"), folder.join("uneven"));
    fs_err::write(&text, source).unwrap();
    compile_file(&format!("mpicc.{mpi}"), &text, &program, &[]);
    for (block, reason) in [("--interleave=2", "blocks-apart"), ("--interleave=300", "few-blocks")] {
        let mut args = vec!["replay", "noise.toml", block, "--json", "--"];
        let launch = launch(mpi, 2);
        args.extend(launch.iter().map(String::as_str));
        args.push(program.to_str().unwrap());
        let ended = run(folder, &args);
        assert_eq!(ended.status.code(), Some(3), "a slowdown that was asked for is missing");
        let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(document["interleaved"], Value::Null);
        let codes: Vec<&str> = document["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each["code"].as_str().unwrap())
            .collect();
        assert!(codes.contains(&reason), "{block}: {codes:?}");
    }
}

/// Runs the program with the library preloaded by hand, and `schedule` as its schedule.
fn by_hand(folder: &Path, library: &Path, schedule: &Path, program: &Path) -> (Option<i32>, String, String) {
    let mut command = Command::new(program);
    command.args(["50", "1000", "probe"]).current_dir(folder);
    command.env("LD_PRELOAD", library).env("QUELL_REPLAY", schedule);
    // Only ranks load this schedule, and MPICH does not read another MPI's variables.
    command.env("OMPI_COMM_WORLD_RANK", "0").env("OMPI_COMM_WORLD_SIZE", "1");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_broken_schedule_leaves_the_program_alone_and_says_one_line() {
    let _machine = machine();
    let Some(mpi) = mpis().into_iter().find(|&mpi| mpi == "mpich") else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "1ms", "50us");
    let program = calls(folder, mpi);
    replay(folder, &["noise.toml", "-o", "kept"], mpi, 1, &[program.to_str().unwrap(), "5", "1000", "probe"]);
    let kept = last_run(&folder.join("kept"));
    let library = kept.join("quell-replay-boundary.so");
    let good = fs_err::read(kept.join("schedule")).unwrap();
    let (code, out, err) = by_hand(folder, &library, &kept.join("schedule"), &program);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "rank 0 of 1 is done\n", ""));
    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    for cut in [0, 1, 7, 8, 191, 192, 300, good.len() - 8, good.len() - 1] {
        cases.push((format!("cut to {cut}"), good[..cut].to_vec()));
    }
    for (word, value) in (0..24).flat_map(|word| [(word, 0u64), (word, u64::MAX), (word, 1 << 40), (word, 3)])
    {
        let mut bytes = good.clone();
        bytes[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        if bytes != good {
            cases.push((format!("word {word} is {value}"), bytes));
        }
    }
    cases.push(("text".into(), b"#!/bin/sh\necho no schedule\n".repeat(100)));
    let path = folder.join("schedule");
    for (what, bytes) in cases {
        fs_err::write(&path, bytes).unwrap();
        let (code, out, err) = by_hand(folder, &library, &path, &program);
        assert_eq!((code, out.as_str()), (Some(0), "rank 0 of 1 is done\n"), "{what}: {err}");
        assert_eq!(err.lines().count(), 1, "{what}: {err}");
        assert!(err.starts_with("quell replay: ") && err.ends_with("runs without noise\n"), "{what}: {err}");
    }
    fs_err::remove_file(&path).unwrap();
    let pipe = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    for odd in [path.as_path(), Path::new("/no/such/schedule"), folder, Path::new("/dev/zero")] {
        let (code, out, err) = by_hand(folder, &library, odd, &program);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(0), "rank 0 of 1 is done\n", 1), "{err}");
    }
}

#[test]
fn a_commands_end_is_its_own() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    beat(folder, "noise", "1ms", "50us");
    let end = |command: &[&str]| {
        let args = [&["replay", "noise.toml", "--context", "boundary", "--"], command].concat();
        let output = quell(folder).args(args).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, out, _) = end(&["sh", "-c", "echo said; exit 7"]);
    assert_eq!((code, out.as_str()), (Some(7), "said\n"));
    let (code, _, err) = end(&["true"]);
    assert_eq!(code, Some(3), "without noise it is not what was asked for");
    assert!(err.contains("no process called MPI"), "{err}");
    assert_eq!(end(&["sh", "-c", "kill -TERM $$"]).0, Some(128 + 15));
    let (code, _, err) = end(&["/no/such/program"]);
    assert!(code == Some(127) && err.contains("`/no/such/program` cannot be started"), "{err}");
    assert!(
        !std::fs::read_dir(folder).unwrap().any(|entry| entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".quell"))
    );
}

/// Open MPI ignores a list of variables from the environment if the command itself names some.
#[test]
fn variables_of_the_users_go_along() {
    let _machine = machine();
    if !mpis().contains(&"openmpi") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    beat(dir.path(), "noise", "1ms", "50us");
    let program = calls(dir.path(), "openmpi");
    let launch = ["mpirun.openmpi", "-x", "HOME", "--allow-run-as-root", "-n", "1"];
    let args = [&["replay", "noise.toml", "--json", "--"], &launch[..]].concat();
    let args = [&args[..], &[program.to_str().unwrap(), "20", "200000", "probe"]].concat();
    assert_eq!(number(&json(dir.path(), &args)["processes"][0], "calls"), 21);
}

/// Arguments of a program that look like options of its launcher stay the program's, and options of the launcher that choose variables do not
/// keep quell's from the ranks.
#[test]
fn arguments_like_a_launchers_options_stay_the_programs() {
    use std::os::unix::fs::PermissionsExt as _;
    // Not `--mca`: Open MPI 4.1 takes that for its own, wherever it is.
    const LIKE_OPTIONS: &str = "-x 3 -n 4 --export=NONE -genv A B -genvnone --app C";
    let _machine = machine();
    let split = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        beat(dir.path(), "noise", "1ms", "50us");
        let (calls, program) = (calls(dir.path(), mpi), dir.path().join("program"));
        let script = format!("#!/bin/sh\necho \"$@\" >>printed\nexec {} 20 200000 probe\n", calls.display());
        fs_err::write(&program, script).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (launch, program) = (launch(mpi, 1), program.to_str().unwrap());
        let one = [&launch[1..], &[program.to_owned()], &split(LIKE_OPTIONS)].concat();
        let own: &[&str] = if mpi == "openmpi" { &["-x", "HOME"] } else { &["-genvnone"] };
        let second = split(&format!(": -n 1 {program} {LIKE_OPTIONS}"));
        let shell = format!("cd . && {} {} {}", launch[0], own.join(" "), one.join(" "));
        let commands = [
            (1, [&launch[..1], &one].concat()),
            (2, [&launch[..1], &split(&own.join(" ")), &one, &second].concat()),
            (1, ["sh".to_owned(), "-c".to_owned(), shell].to_vec()),
        ];
        for (ranks, command) in commands {
            let args = [split("replay noise.toml --json --"), command.clone()].concat();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let document = json(dir.path(), &args);
            let processes = document["processes"].as_array().unwrap();
            assert_eq!(processes.len(), ranks, "{command:?}: {document:#}");
            assert!(
                processes.iter().all(|process| number(process, "calls") == 21),
                "{command:?}: {document:#}"
            );
            let printed = fs_err::read_to_string(dir.path().join("printed")).unwrap();
            fs_err::remove_file(dir.path().join("printed")).unwrap();
            assert_eq!(printed, format!("{LIKE_OPTIONS}\n").repeat(ranks), "{command:?}");
        }
    }
}

/// Also what is due between MPI_Init and the first call after it, be it MPI_Finalize.
#[test]
fn work_between_the_first_call_and_the_last_gets_its_noise() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        beat(folder, "noise", "10ms", "1ms");
        let source = "#include <mpi.h>\n#include <time.h>\nint main(int n, char **w) {\n\tMPI_Init(&n, &w);\n\t\
                      while (clock() < CLOCKS_PER_SEC / 2)\n\t\t;\n\tMPI_Finalize();\n\treturn 0;\n}\n";
        fs_err::write(folder.join("once.c"), source).unwrap();
        let built =
            Command::new(format!("mpicc.{mpi}")).args(["once.c", "-o", "once"]).current_dir(folder).status();
        assert!(built.unwrap().success());
        let program = folder.join("once");
        let document = replay(folder, &["noise.toml"], mpi, 2, &[program.to_str().unwrap()]);
        for process in document["processes"].as_array().unwrap() {
            assert!(number(process, "burns") == 1 && number(process, "asked_ns") >= 3_000_000, "{process:#}");
        }
    }
}

/// The library that a job loads uses only the C library, and cannot panic.
#[test]
fn what_a_job_loads_has_no_panic_and_no_allocator() {
    let dir = tempfile::tempdir().unwrap();
    for context in [quell_replay::schedule::Context::Boundary, quell_replay::schedule::Context::Timer] {
        let library = quell_node::injector::preload::write(context, dir.path()).unwrap().unwrap();
        let output = Command::new("nm").arg(&library).output().unwrap();
        let symbols = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(symbols.contains("clock_gettime"), "{symbols}");
        for bad in ["panic", "rust_alloc", " malloc@", " abort@", "unwind"] {
            assert!(!symbols.lines().any(|line| line.contains(bad)), "{bad} in {}", library.display());
        }
    }
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    /// Work of 200 us of one rank, with a fifth of the time noise: a quarter longer.
    #[test]
    fn blocks_with_noise_and_without_take_turns_within_a_run() {
        let _machine = machine();
        for mpi in mpis() {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path();
            beat(folder, "noise", "1ms", "200us");
            let program = calls(folder, mpi);
            let interleaved = |block: &str, seed: &str| {
                let options = ["noise.toml", "--seed", seed, block];
                let words = [program.to_str().unwrap(), "4100", "200000", "barrier"];
                let document = replay(folder, &options, mpi, 1, &words);
                assert_eq!(document["slowdown"], Value::Null);
                document
            };
            let by_time = interleaved("--interleave=20ms", "1");
            let runs = by_time["runs"].as_array().unwrap().iter().map(|run| run["noise"].as_bool().unwrap());
            assert_eq!(runs.collect::<Vec<_>>(), [false, true], "{mpi}: one run counts the phases");
            let phases = number(&by_time["interleaved"], "block_phases");
            assert!((1..=100).contains(&phases), "{mpi}: {phases} phases in 20 ms");
            measure(|attempt| {
                let document = interleaved("--interleave=50", &attempt.to_string());
                assert_eq!(document["runs"].as_array().unwrap().len(), 1);
                let found = &document["interleaved"];
                assert_eq!(number(found, "block_phases"), 50);
                let pairs = found["pairs_percent"].as_array().unwrap().len();
                assert_eq!(pairs, 40, "4,101 phases, the first 50 for warming up");
                let percent = |name: &str| found[name].as_f64().unwrap();
                let (low, high) = (percent("low_percent"), percent("high_percent"));
                let near = (percent("noise_percent") - 25.0).abs() < 1.0 && low < 26.0 && high > 24.0;
                if near && high - low < 5.0 { Ok(()) } else { Err(format!("{mpi}: {found}")) }
            });
        }
    }

    /// Compares the duration of each call, as the program sees it, with the delay by the simulator's clock.
    #[test]
    fn a_program_sees_each_call_late_by_what_is_due() {
        let _machine = machine();
        for mpi in mpis() {
            measure(|_| see_each_call(mpi));
        }
    }

    fn see_each_call(mpi: &str) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        beat(folder, "short", "173us", "500ns");
        let program = calls(folder, mpi);
        let log = folder.join("log");
        let arguments = [program.to_str().unwrap(), "10000", "20000", "probe", log.to_str().unwrap()];
        replay(folder, &["short.toml", "-o", "kept"], mpi, 1, &arguments);
        let report = last_reports(&folder.join("kept")).pop().unwrap();
        let words = words(&last_run(&folder.join("kept")).join("schedule"));
        let entry =
            Schedule::from_words(&words).unwrap().entry(report.get(Field::ProgressClockView)).unwrap();
        let track = entry.within(&words).unwrap();
        let position = |now: u64| now - report.get(Field::BegunNs) + report.get(Field::Place);
        let seen = replaying::words(&log);
        let took: Vec<u64> = seen.as_chunks::<3>().0.iter().map(|[_, at, end]| end - at).collect();
        let (mut due, mut late, mut after, mut quiet) = (0, Vec::new(), seen[0], Vec::new());
        for ([_, at, end], took) in seen.as_chunks::<3>().0.iter().zip(&took) {
            let delay = track.delay(position(after), at - after);
            due += delay;
            after = *end;
            if delay == 500 { late.push(*took) } else { quiet.push(*took) }
        }
        let requested = report.get(Field::AskedNs);
        // The hook reads the clock some tens of nanoseconds before or after the program does.
        let (calls, of) = (late.len(), took.len());
        let (late, quiet) = (median(late), median(quiet));
        if requested.abs_diff(due) > due / 200 + 30_000 {
            Err(format!("{mpi}: requested {requested}, due {due}"))
        } else if calls <= 500 {
            Err(format!("{mpi}: {calls} of {of} calls were late"))
        } else if late.saturating_sub(quiet).abs_diff(500) >= 250 {
            Err(format!("{mpi}: {late} ns where 500 are due, {quiet} where none"))
        } else {
            Ok(())
        }
    }

    #[test]
    fn nodes_line_up_as_asked() {
        let _machine = machine();
        let Some(mpi) = mpis().pop() else { return };
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        beat(folder, "noise", "1ms", "50us");
        let program = calls(folder, mpi);
        let run = |options: &[&str], count: &str| {
            let kept = tempfile::tempdir().unwrap();
            let options = [&["noise.toml", "-o", kept.path().to_str().unwrap()], options].concat();
            let program = [program.to_str().unwrap(), count, "200000", "barrier"];
            let document = replay(folder, &options, mpi, 2, &program);
            (document["processes"].as_array().unwrap().clone(), last_reports(kept.path()))
        };
        // The difference between the offsets of both ranks at the same instant.
        let apart = |reports: &[quell_node::injector::reports::ProcessReport]| {
            let at = |n: usize| {
                i128::from(reports[n].get(Field::Place)) - i128::from(reports[n].get(Field::BegunNs))
            };
            (at(0) - at(1)).rem_euclid(1_000_000_000)
        };
        let (processes, reports) = run(&[], "50");
        assert_eq!((number(&processes[0], "node"), number(&processes[1], "node")), (0, 1), "a CPU each node");
        assert!((1_000_000..999_000_000).contains(&apart(&reports)), "{}", apart(&reports));
        measure(|_| {
            let (_, reports) = run(&["--sync", "start"], "50");
            let off = apart(&reports);
            if off.min(1_000_000_000 - off) < 50_000 {
                Ok(())
            } else {
                Err(format!("one clock for all: {off}"))
            }
        });
        let (processes, _) = run(&["--sync", "phase"], "50");
        assert!(processes.iter().all(|process| number(process, "phases") == 50));
        let (processes, _) = run(&["--sync", "phase", "--phase-at", "pcontrol"], "50");
        assert!(processes.iter().all(|process| number(process, "phases") == 0), "barriers end none");
        let (processes, _) = run(&["--share", "1%"], "500");
        assert!(processes.iter().all(|process| process["used_up"] == true), "10 ms of 100");
    }

    #[test]
    fn what_comes_in_is_what_the_schedule_says() {
        let _machine = machine();
        for mpi in mpis() {
            measure(|_| hold_against_the_schedule(mpi));
        }
    }

    fn hold_against_the_schedule(mpi: &str) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        // Durations from half a microsecond to a tenth of a millisecond; more than one call in ten is delayed.
        let models = [("short", "20us", "500ns"), ("middle", "310us", "11us"), ("long", "1ms", "100us")];
        for (name, period, length) in models {
            beat(folder, name, period, length);
        }
        let program = calls(folder, mpi);
        let program = program.to_str().unwrap();
        let noise = ["short.toml", "middle.toml", "long.toml"];
        let options = [&noise[..], &["-o", "kept"]].concat();
        let document = replay(folder, &options, mpi, 2, &[program, "10000", "50000", "sendrecv"]);
        let processes = document["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 2, "{document:#}");
        for process in processes {
            let [requested, absorbed, trace] =
                ["asked_ns", "absorbed_ns", "trace_ns"].map(|name| number(process, name));
            assert_eq!(number(process, "calls"), 10_001, "and MPI_Finalize");
            assert!(requested > 0, "{process:#}");
            // The clock readings of a call are some tens of nanoseconds apart. If the CPU is taken during a burn, the extra time advances
            // the trace without being seen.
            let over = number(process, "took_ns").saturating_sub(requested);
            let off = (requested + absorbed).abs_diff(trace);
            let tolerance = trace / 200 + over + 100 * number(process, "calls");
            if off > tolerance {
                return Err(format!("{mpi}: {off} ns off, where {tolerance} are allowed: {process:#}"));
            }
        }
        Ok(())
    }
}
