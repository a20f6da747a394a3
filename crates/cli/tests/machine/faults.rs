//! Faults: a seed decides which call of the kernel or of the C library fails, waits, or is the last one of the process, and the verb in which it
//! does. After each run the same things must hold ([`Run::judge`]).
//!
//! `QUELL_FAULT_RUNS` is the number of runs, `QUELL_FAULT_SEED` the first seed; `QUELL_PROGRAM` replaces the program.

mod cases;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use self::cases::{CASES, Case, KINDS, MPI_PROGRAM};
use crate::support::fake_machine;
use crate::support::tools::{self, compile};

/// Number of runs if no other is given.
const RUNS: u64 = 300;
/// A run that takes longer hangs.
const LONGEST_S: u32 = 240;
/// Maximum number of violations that are listed.
const LISTED: usize = 20;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// What all runs share.
struct Bench {
    library: PathBuf,
    /// The inputs, which no run may change.
    inputs: BTreeMap<String, Vec<u8>>,
    template: tempfile::TempDir,
}

/// What a case does without a fault.
struct Reference {
    calls: BTreeMap<String, u64>,
    stdout: Vec<u8>,
    looked: Vec<u8>,
    content: BTreeMap<String, Vec<u8>>,
    left: Vec<String>,
}

fn program() -> Command {
    let program = std::env::var_os("QUELL_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_quell").into());
    let mut command = Command::new(program);
    command.env_remove("COLUMNS").env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    command
}

/// Runs a command to its end; one that takes too long is ended by SIGALRM.
fn ended(mut command: Command) -> Output {
    use std::os::unix::process::CommandExt as _;
    // SAFETY: alarm(2) is async-signal-safe, and exec keeps its timer.
    unsafe {
        command.pre_exec(|| {
            libc::alarm(LONGEST_S);
            Ok(())
        });
    }
    command.output().unwrap()
}

/// The name and content of all files below a folder.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs_err::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            all.insert(name, fs_err::read(&path).unwrap_or_default());
        }
    }
    all
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

impl Bench {
    fn new() -> Self {
        let template = tempfile::tempdir().unwrap();
        let library = template.path().join("faults.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/faults.c");
        let built = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let folder = template.path().join("inputs");
        fs_err::create_dir(&folder).unwrap();
        // Where there is no MPI, the case that needs one is skipped.
        if let Some(mpi) = tools::mpis().last() {
            compile(&format!("mpicc.{mpi}"), "ring.c", &template.path().join("ring"), &[]);
        }
        let node = folder.join("node");
        fs_err::create_dir(&node).unwrap();
        fake_machine::Machine::at(&node, "node", "", "quiet").cpus("0-1", "0-1", &[vec![0], vec![1]]);
        let rows = (0..400u64).map(|i| {
            format!("{}.00\t{}.00\n", i * 500_000 + (i * 7919) % 90_000, 1_000 + (i * i * 31) % 40_000)
        });
        fs_err::write(
            folder.join("selfish.txt"),
            format!("# Selfish Benchmark\n{}", rows.collect::<String>()),
        )
        .unwrap();
        fs_err::write(
            folder.join("plan.toml"),
            "name = 'faults'\nnoise = ['a.quell']\nquantum = '1ms'\nsync = 'phase'\nphases = 20\nreplicates = 1\n\
             ranks = [4, 16]\nseed = '1..20'\n",
        )
        .unwrap();
        for args in [
            &["convert", "selfish.txt", "a.quell"][..],
            &["goal", "make", "--pattern", "allreduce-ring", "--ranks", "8", "-o", "ring.goal"],
            &["tune", "plan", "vm-stat-interval", "thp", "hung-task", "-o", "plan", "--sysroot", "node"],
        ] {
            let made = program().current_dir(&folder).args(args).output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        Self { library, inputs: content(&folder), template }
    }

    /// A folder with the inputs.
    fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir_in(self.template.path()).unwrap();
        for (name, bytes) in &self.inputs {
            let path = folder.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, bytes).unwrap();
        }
        folder
    }

    /// Runs the case in a folder; returns its output and what the library logged.
    fn run(&self, case: &Case, folder: &Path, fault: Option<&str>) -> (Output, String) {
        let log = folder.with_extension("log");
        let mut command = program();
        let ring = self.library.with_file_name("ring").into_os_string();
        let argument = |&word: &&str| if word == MPI_PROGRAM { ring.clone() } else { word.into() };
        command
            .current_dir(folder)
            .args(case.args.iter().map(argument))
            .env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache"))
            .env("LD_PRELOAD", &self.library)
            .env("QUELL_FAULT_LOG", &log);
        // Temporary files belong to the run, so that what it leaves there is found.
        command.env("TMPDIR", folder).env("RAYON_NUM_THREADS", "2");
        if case.alone {
            command.env("QUELL_FAULT_TRAP", "1");
        }
        if let Some(fault) = fault {
            command.env("QUELL_FAULT", fault);
        }
        let output = ended(command);
        let logged = fs_err::read_to_string(&log).unwrap_or_default();
        let _ = fs_err::remove_file(&log);
        (output, logged)
    }

    /// Looks at what the case made.
    fn look(case: &Case, folder: &Path) -> Output {
        program().current_dir(folder).args(case.look).output().unwrap()
    }

    fn reference(&self, case: &Case) -> Option<Reference> {
        let folder = self.folder();
        let (output, log) = self.run(case, folder.path(), None);
        if !output.status.success() {
            quell_testing::skip(format!("{}: {}", case.name, String::from_utf8_lossy(&output.stderr).trim()));
            return None;
        }
        let calls = log.lines().filter_map(|line| {
            let (kind, count) = line.strip_prefix("calls ")?.split_once(' ')?;
            Some((kind.to_owned(), count.parse::<u64>().ok()?))
        });
        let made = case.output.map(|name| folder.path().join(name));
        let looked = if case.look.is_empty() { Vec::new() } else { Self::look(case, folder.path()).stdout };
        Some(Reference {
            calls: calls.filter(|(_, count)| *count > 0).collect(),
            stdout: output.stdout,
            looked,
            content: made.filter(|_| case.repeats).map(|made| content(&made)).unwrap_or_default(),
            left: names(folder.path()),
        })
    }
}

/// One run with a fault.
struct Run<'a> {
    case: &'a Case,
    reference: &'a Reference,
    output: Output,
    log: String,
    folder: &'a Path,
}

impl Run<'_> {
    /// What does not hold.
    fn judge(&self, bench: &Bench) -> Result<(), String> {
        let status = self.output.status;
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        let killed = status.signal() == Some(libc::SIGKILL);
        let is_expected = |code| (0..=3).contains(&code) || self.case.command && code == 126;
        if !killed && !status.code().is_some_and(is_expected) {
            return Err(format!("it ended with {status}: {stderr}"));
        }
        if stderr.contains("panicked") || stderr.contains("this is a bug") {
            return Err(format!("it panicked: {stderr}"));
        }
        // Where the fault is in the message itself, there may be none.
        let is_silenced = self.log.contains(" fd 1\n") || self.log.contains(" fd 2\n");
        if !killed && !status.success() && !stderr.contains("error: ") && !is_silenced {
            return Err(format!("it ended with {status} and no error: {stderr}"));
        }
        if !self.case.undo.is_empty() {
            let undone = program().current_dir(self.folder).args(self.case.undo).output().unwrap();
            if !undone.status.success() {
                let (report, why) =
                    (String::from_utf8_lossy(&undone.stdout), String::from_utf8_lossy(&undone.stderr));
                return Err(format!(
                    "it cannot be undone: {}: {report}{why}\nafter {status}: {stderr}",
                    undone.status
                ));
            }
        }
        for (name, bytes) in &bench.inputs {
            if fs_err::read(self.folder.join(name)).ok().as_ref() != Some(bytes) {
                return Err(format!("it changed {name}"));
            }
        }
        let left = names(self.folder);
        let residue: Vec<&String> = left.iter().filter(|name| !self.reference.left.contains(name)).collect();
        // What cannot be removed now, the next run removes (`leftovers.rs`). Removing a folder opens it.
        // Without memory, quell ends at once.
        let cannot_remove =
            ["unlink", "open", "alloc"].iter().any(|kind| self.log.contains(&format!("fault {kind} ")));
        if !killed && !residue.is_empty() && !cannot_remove {
            return Err(format!("it left {residue:?} behind: {stderr}"));
        }
        if status.success()
            && self.case.repeats
            && !is_silenced
            && self.output.stdout != self.reference.stdout
        {
            return Err(format!("it succeeded with another result: {stderr}"));
        }
        self.judge_output(status.success())
    }

    /// Whether what it made is whole, or absent.
    fn judge_output(&self, succeeded: bool) -> Result<(), String> {
        let Some(name) = self.case.output else { return Ok(()) };
        let path = self.folder.join(name);
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        if !path.exists() {
            return if succeeded { Err(format!("it succeeded without {name}: {stderr}")) } else { Ok(()) };
        }
        if self.case.resumes {
            let looked = Bench::look(self.case, self.folder);
            let same = looked.status.success() && results(&looked.stdout) == results(&self.reference.looked);
            return if same {
                Ok(())
            } else {
                Err(format!("it cannot go on: {}", String::from_utf8_lossy(&looked.stderr)))
            };
        }
        if !self.case.look.is_empty() {
            let looked = Bench::look(self.case, self.folder);
            let words = String::from_utf8_lossy(&looked.stderr).into_owned();
            // A recording that has not begun holds nothing.
            if self.case.grows && !succeeded && looked.status.code() == Some(1) && words.contains("error: ") {
                return Ok(());
            }
            if !looked.status.success() {
                return Err(format!("{name} cannot be read: {words}"));
            }
            if self.case.repeats && looked.stdout != self.reference.looked {
                return Err(format!("{name} has other content: {stderr}"));
            }
        } else if self.case.repeats && content(&path) != self.reference.content {
            return Err(format!("{name} is not whole: {stderr}"));
        }
        Ok(())
    }
}

/// The part of a sweep's document that does not depend on which process computed what.
fn results(json: &[u8]) -> Option<serde_json::Value> {
    let mut document: serde_json::Value = serde_json::from_slice(json).ok()?;
    let object = document.as_object_mut()?;
    for of_the_run in ["computed", "repaired", "seconds", "wall_s", "parts"] {
        object.remove(of_the_run);
    }
    Some(document)
}

/// The fault of a seed.
fn fault_of(random: &mut Random, reference: &Reference) -> String {
    let kinds: Vec<_> = KINDS.iter().filter(|(kind, _)| reference.calls.contains_key(*kind)).collect();
    let (kind, errors) = random.choose(&kinds);
    let number = 1 + random.below(reference.calls[*kind]);
    // Half of the faults stay: a full disk stays full.
    let stays = if random.below(2) == 0 { "+" } else { "" };
    let action = match random.below(8) {
        0 | 1 => "kill".to_owned(),
        2 => "wait".to_owned(),
        3 if *kind == "write" => "short".to_owned(),
        3 if ["rename", "mkdir", "unlink"].contains(kind) => "again".to_owned(),
        _ if errors.is_empty() => "wait".to_owned(),
        _ => match random.choose(errors) {
            // A call that is interrupted each time has no end.
            &libc::EINTR => libc::EINTR.to_string(),
            error => format!("{error}{stays}"),
        },
    };
    format!("{kind}:{number}:{action}")
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn whatever_fails_what_is_made_is_whole_or_absent() {
    if !tools::is_here("cc") {
        return;
    }
    let _turn = quell_testing::machine();
    let bench = Bench::new();
    let cases: Vec<(&Case, Reference)> =
        CASES.iter().filter_map(|case| Some((case, bench.reference(case)?))).collect();
    let (first, runs) =
        (number_of("QUELL_FAULT_SEED").unwrap_or(1), number_of("QUELL_FAULT_RUNS").unwrap_or(RUNS));
    let next = AtomicU64::new(first);
    let violations = Mutex::new(Vec::new());
    let hit = AtomicU64::new(0);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + runs {
                return;
            }
            let mut random = Random(seed);
            let (case, reference) = random.choose(&cases);
            let fault = fault_of(&mut random, reference);
            let folder = bench.folder();
            let (output, log) = bench.run(case, folder.path(), Some(&fault));
            hit.fetch_add(u64::from(log.contains("fault ")), Ordering::Relaxed);
            let run = Run { case, reference, output, log, folder: folder.path() };
            if let Err(why) = run.judge(&bench) {
                violations.lock().unwrap().push(format!(
                    "QUELL_FAULT_SEED={seed} QUELL_FAULT_RUNS=1, {}, {fault}: {}",
                    case.name,
                    why.trim()
                ));
            }
        }
    };
    std::thread::scope(|scope| {
        // A run waits as long as it computes.
        for _ in 0..2 * crate::support::cpus() {
            scope.spawn(work);
        }
    });
    let violations = violations.into_inner().unwrap();
    println!(
        "{runs} runs from seed {first} on, {} with their fault, {} violations",
        hit.into_inner(),
        violations.len()
    );
    let listed = violations.iter().take(LISTED).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(violations.is_empty(), "{} of {runs} runs:\n{listed}", violations.len());
}
