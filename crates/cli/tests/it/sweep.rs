//! Sweeps: one dataset, whichever process computed which part of it, even if processes were killed.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::node::until;
use crate::support::tools::is_here;
use crate::support::{Guard, json, netgauge, quell, run, transcript};
use insta::assert_snapshot;
use quell_recording::results::{Cell, Results};
use serde_json::Value;

/// A thousand points in 63 files; a point takes some milliseconds.
const THOUSAND: &str = "name = 'a thousand'\nnoise = ['a.quell']\nquantum = ['1ms', '500us']\nsync = ['none', 'phase']\nphases = 200\n\
                        replicates = 1\nranks = [16, 64]\nseed = '1..125'\n";
const FILES: usize = 63;

/// A temporary folder with noise and a plan.
fn prepared(plan: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    assert!(run(dir.path(), &["convert", "selfish.txt", "a.quell"]).status.success());
    fs_err::write(dir.path().join("plan.toml"), plan).unwrap();
    dir
}

/// Command `quell predict --sweep plan.toml` with an output folder.
fn sweep(dir: &Path, output: &str) -> Command {
    let mut command = quell(dir);
    for name in ["SLURM_PROCID", "SLURM_ARRAY_TASK_ID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"] {
        command.env_remove(name);
    }
    command.args(["predict", "--sweep", "plan.toml", "--json", "--output", output]);
    command
}

fn good(output: &Output) -> Option<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).ok()
}

fn done(mut command: Command) -> Value {
    good(&command.output().unwrap()).unwrap()
}

/// Name and content of all files of a dataset, including hidden ones.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs_err::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs_err::read(entry.path()).unwrap()))
        .collect()
}

fn parts(folder: &Path) -> usize {
    let entries = fs_err::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("part-")).count()
}

fn same(dir: &Path, one: &str, other: &str) {
    let (one, other) = (files(&dir.join(one)), files(&dir.join(other)));
    assert!(one.keys().eq(other.keys()), "{:?} {:?}", one.keys(), other.keys());
    let differing: Vec<&String> = one.keys().filter(|name| one[*name] != other[*name]).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

/// Kills every process whose command line names the folder, except this one.
fn kill_all(mark: &str) {
    for entry in fs_err::read_dir("/proc").unwrap().map(Result::unwrap) {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let line = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
        if pid != std::process::id() as i32 && String::from_utf8_lossy(&line).contains(mark) {
            // SAFETY: a plain system call on a process that this test started.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// The installed launchers, with the arguments to start two processes.
fn launchers() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let all: [(&str, &[&str]); 2] =
        [("mpirun.openmpi", &["--oversubscribe", "-n", "2"]), ("mpiexec.mpich", &["-n", "2"])];
    all.into_iter().filter(|(name, _)| is_here(name))
}

fn under(dir: &Path, (launcher, words): (&str, &[&str]), output: &str) -> Command {
    let mut command = Command::new(launcher);
    command.args(words).arg(env!("CARGO_BIN_EXE_quell")).current_dir(dir).stdin(Stdio::null());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["predict", "--sweep", "plan.toml", "--json", "--output", output]);
    command
}

/// Tests with MPI launchers, where they are installed.
mod on_this_machine {
    use super::*;

    #[test]
    fn a_dataset_is_the_same_whoever_computed_and_whoever_was_killed() {
        let dir = prepared(THOUSAND);
        let dir = dir.path();
        let mut one = sweep(dir, "one");
        one.args(["--threads", "1"]);
        let one = done(one);
        assert_eq!((one["points"].as_u64(), one["rows"].as_u64()), (Some(1_000), Some(1_000)));
        assert_eq!(
            (one["files"].as_u64(), one["computed"].as_u64()),
            (Some(FILES as u64), Some(FILES as u64))
        );
        for launcher in launchers() {
            let (name, _) = launcher;
            let output = dir.join(format!("under-{name}"));
            let mark = output.display().to_string();
            let child = under(dir, launcher, &mark)
                .process_group(0)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let mut child = Guard(child.unwrap());
            until("a third of the files", || parts(&output) >= FILES / 3);
            kill_all(&mark);
            child.0.wait().unwrap();
            let there = parts(&output);
            assert!(there < FILES, "{name} was killed before its end");
            let again = under(dir, launcher, &mark).output().unwrap();
            let document = good(&again).unwrap();
            let computed = document["computed"].as_u64().unwrap();
            assert!(
                computed > 0 && computed <= (FILES - there) as u64,
                "one document, of the first: {document}"
            );
            assert_eq!((&document["share"]["of"], &document["share"]["index"]), (&2.into(), &0.into()));
            // This run removes files of killed processes, and finds all results in place.
            let looked = done(sweep(dir, &mark));
            assert_eq!(
                (looked["computed"].as_u64(), looked["rows"].as_u64()),
                (Some(0), Some(1_000)),
                "{name}"
            );
            same(dir, "one", &format!("under-{name}"));
        }
        for shard in ["2/3", "1/3", "3/3"] {
            let mut command = sweep(dir, "shards");
            command.args(["--shard", shard]);
            done_or_silent(command);
        }
        same(dir, "one", "shards");
        // Two tasks of an array, each with two processes, in the environments of Hydra and of Slurm.
        for (task, rank) in [("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")] {
            let mut command = sweep(dir, "array");
            command.envs([
                ("SLURM_ARRAY_TASK_ID", task),
                ("SLURM_ARRAY_TASK_MIN", "1"),
                ("SLURM_ARRAY_TASK_MAX", "2"),
            ]);
            command.envs([("SLURM_ARRAY_TASK_COUNT", "2")]);
            match task {
                "1" => command.envs([("PMI_RANK", rank), ("PMI_SIZE", "2")]),
                _ => command.envs([("SLURM_PROCID", rank), ("SLURM_STEP_NUM_TASKS", "2")]),
            };
            done_or_silent(command);
        }
        same(dir, "one", "array");
        damaged_files_are_made_again(dir);
    }
}

/// Of several processes, only the first prints.
fn done_or_silent(mut command: Command) {
    let output = command.output().unwrap();
    let document = good(&output);
    assert!(document.is_some_and(|document| document["share"]["index"] == 0) || output.stdout.is_empty());
}

fn damaged_files_are_made_again(dir: &Path) {
    let part = |number: usize| dir.join(format!("shards/part-{number:06}.parquet"));
    let bytes = fs_err::read(part(7)).unwrap();
    fs_err::write(part(7), &bytes[..bytes.len() / 2]).unwrap();
    fs_err::write(part(8), b"").unwrap();
    fs_err::copy(part(1), part(9)).unwrap();
    fs_err::remove_file(part(10)).unwrap();
    let document = done(sweep(dir, "shards"));
    assert_eq!((document["computed"].as_u64(), document["repaired"].as_u64()), (Some(4), Some(3)));
    same(dir, "one", "shards");
}

#[test]
fn rows_are_what_the_verb_says() {
    let plan = "noise = 'a.quell'\nop = ['max', 'allreduce']\nbytes = [8, '1Ki']\nquantum = '500us'\nphases = 100\nseed = [1, 7]\nranks = '4..32'\n";
    let dir = prepared(plan);
    let dir = dir.path();
    assert_eq!(done(sweep(dir, "out"))["points"], 8 + 16);
    let table = Results::read(&dir.join("out/part-000001.parquet")).unwrap();
    let at = |row: &[Cell], name: &str| row[table.column(name).unwrap()].clone();
    let first = &table.rows[0];
    assert_eq!(
        (at(first, "point"), at(first, "op"), at(first, "bytes")),
        (Cell::U64(16), Cell::Text("allreduce".into()), Cell::U64(1024))
    );
    let words = [
        "predict",
        "a.quell",
        "--op",
        "allreduce",
        "--bytes",
        "1Ki",
        "--quantum",
        "500us",
        "--phases",
        "100",
        "--ranks",
        "4..32",
        "--json",
    ];
    let curve = String::from_utf8(run(dir, &words).stdout).unwrap();
    for (row, ranks) in table.rows.iter().zip([4, 8, 16, 32]) {
        assert_eq!(at(row, "ranks"), Cell::U64(ranks));
        // Compared as text, because not every JSON reader keeps the last bit of a number.
        for name in ["slowdown_percent", "mean_phase_ns"] {
            let Cell::F64(x) = at(row, name) else { panic!("{name} is empty") };
            assert!(curve.contains(&format!("\"{name}\": {x:?}")), "{name} {x:?} {curve}");
        }
        assert!(matches!(at(row, "ci95_high_percent"), Cell::F64(_)));
        assert_eq!((at(row, "seed"), at(row, "error")), (Cell::U64(1), Cell::Empty));
    }
    let silent = Results::read(&dir.join("out/part-000000.parquet")).unwrap();
    assert_eq!(silent.rows[0][silent.column("bytes").unwrap()], Cell::Empty, "max has no messages");
}

#[test]
fn patterns_and_schedules_are_swept_and_what_cannot_be_is_a_row() {
    let plan = "pattern = ['dissemination', 'halo2d']\nranks = [4, 16]\ndims = ['4x4']\nnoise = [[], 'a.quell']\niterations = 50\nseed = '1..3'\n";
    let dir = prepared(plan);
    let dir = dir.path();
    let args = ["simulate", "--sweep", "plan.toml", "--output", "out", "--json"];
    let output = run(dir, &args);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    // A grid of sixteen does not fit four ranks.
    assert_eq!((output.status.code(), document["failed_rows"].as_u64()), (Some(3), Some(6)), "{document}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("6 of 24 rows hold an error"));
    assert_eq!(run(dir, &args).status.code(), Some(3), "a second look finds the same");
    // A launcher would end the other processes of a job if one of them ended with 3.
    let mut first = quell(dir);
    let first = first.args(args).envs([("PMI_RANK", "0"), ("PMI_SIZE", "2")]).output().unwrap();
    assert_eq!(good(&first).unwrap()["share"]["of"], 2);
    let table = Results::read(&dir.join("out/part-000000.parquet")).unwrap();
    let column = |name: &str| table.column(name).unwrap();
    let noisy = table.rows.iter().find(|row| row[column("noise")] == Cell::Text("a.quell".into())).unwrap();
    let words = [
        "simulate",
        "--pattern",
        "dissemination",
        "--ranks",
        "4",
        "--iterations",
        "50",
        "--noise",
        "a.quell",
        "--baseline",
        "--json",
    ];
    let single = json(dir, &words);
    assert_eq!(noisy[column("max_ns")], Cell::U64(single["max_ns"].as_u64().unwrap()));
    assert_eq!(
        noisy[column("slowdown_percent")],
        Cell::F64(single["baseline"]["slowdown_percent"].as_f64().unwrap())
    );
    let make =
        ["goal", "make", "--pattern", "dissemination", "--ranks", "4", "--iterations", "50", "-o", "d.goal"];
    assert!(run(dir, &make).status.success());
    let swept = |axis: &str| {
        let plan = format!("schedule = 'd.goal'\nnoise = 'a.quell'\n{axis}\n");
        fs_err::write(dir.join("plan.toml"), plan).unwrap();
        assert!(run(dir, &["simulate", "--sweep", "plan.toml", "--output", axis]).status.success());
        let table = Results::read(&dir.join(axis).join("part-000000.parquet")).unwrap();
        let column = table.column("max_ns").unwrap();
        [table.rows[0][column].clone(), table.rows[1][column].clone()]
    };
    let file = |rules: &[&str]| {
        let words = [&["simulate", "d.goal", "--noise", "a.quell", "--json"][..], rules].concat();
        Cell::U64(json(dir, &words)["max_ns"].as_u64().unwrap())
    };
    let own_time = Cell::U64(single["max_ns"].as_u64().unwrap());
    assert_eq!(swept("progress = ['call', 'async']"), [own_time, file(&["--progress", "async"])]);
    assert_eq!(swept("compat = [false, true]"), [file(&[]), file(&["--compat"])]);
}

#[test]
fn a_sweep_that_is_asked_to_end_keeps_what_is_complete() {
    let dir = prepared(THOUSAND);
    let child = sweep(dir.path(), "out").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    until("some files", || parts(&dir.path().join("out")) >= 3);
    // SAFETY: a plain system call on a process that this test started.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(printed.contains("run the same command again to continue"), "{printed}");
    let there = parts(&dir.path().join("out")) as u64;
    let again = done(sweep(dir.path(), "out"));
    assert_eq!(again["computed"].as_u64(), Some(FILES as u64 - there));
}

#[test]
fn what_would_be_done_and_what_is_refused() {
    let dir = prepared(
        "name = 'small'\nnoise = 'a.quell'\nop = ['max', 'barrier']\nranks = ['16..64']\nseed = '1..10'\nphases = 20\nreplicates = 2\n",
    );
    let dir = dir.path();
    fs_err::create_dir(dir.join("other")).unwrap();
    fs_err::write(dir.join("other/notes.txt"), "mine").unwrap();
    for (name, text) in [
        ("word.toml", "noise = 'a.quell'\n\nquantum = ['1ms', 'soon']\n"),
        ("axis.toml", "noise = 'a.quell'\nrank = 4\n"),
        ("net.toml", "noise = 'a.quell'\nop = 'barrier'\nnet = ['loggopsim', 'nowhere.toml']\n"),
        ("idle.toml", "noise = 'a.quell'\nbytes = 8\n"),
        ("noise.toml", "ranks = 4\n"),
        ("file.toml", "noise = 'gone.quell'\n"),
        (
            "huge.toml",
            "noise = 'a.quell'\nseed = '1..100000'\nphases = '64Ki'\nquantum = ['1ms', '2ms', '3ms']\nranks = '1..1Mi'\nop = ['max', 'barrier']\n",
        ),
        ("none.toml", "noise = [\n"),
        (
            "changed.toml",
            "name = 'small'\nnoise = 'a.quell'\nop = ['max', 'barrier']\nranks = ['16..128']\nseed = 3\n",
        ),
    ] {
        fs_err::write(dir.join(name), text).unwrap();
    }
    let mut printed = String::new();
    let mut say =
        |args: &[&str]| printed += &format!("$ quell {}\n{}\n", args.join(" "), transcript(dir, args));
    say(&["predict", "--sweep", "plan.toml", "--dry-run", "--output", "out"]);
    say(&["predict", "--sweep", "plan.toml", "--shard", "1/2", "--output", "out"]);
    say(&["predict", "--sweep", "plan.toml", "--dry-run", "--shard", "2/2", "--output", "out"]);
    say(&["predict", "--sweep", "plan.toml", "--output", "out"]);
    say(&["predict", "--sweep", "changed.toml", "--output", "out"]);
    say(&["simulate", "--sweep", "plan.toml", "--output", "out"]);
    say(&["predict", "--sweep", "plan.toml", "--output", "other"]);
    for name in ["word", "axis", "net", "idle", "noise", "file", "huge", "none", "gone"] {
        say(&["predict", "--sweep", &format!("{name}.toml")]);
    }
    say(&["predict", "--sweep", "plan.toml", "--shard", "0/2"]);
    say(&["predict", "--sweep", "plan.toml", "--ranks", "4"]);
    say(&["predict", "a.quell", "--dry-run"]);
    say(&["simulate", "--sweep", "idle.toml"]);
    assert_snapshot!(printed);
    let mut array = sweep(dir, "array");
    let output = array.env("PBS_ARRAY_INDEX", "3").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--shard $PBS_ARRAY_INDEX/N"));
}
