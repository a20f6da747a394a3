//! Commands that the kernel recorder follows: their threads' accounts, on the kernel that runs these tests.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::disturbers::Chain;
use crate::support::node::{last_cpu, pin_thread, until};
use crate::support::placed::{ended_by, placed, whole};
use crate::support::tools::{has_two_cpus, may_watch_the_kernel};
use crate::support::{Guard, json, quell, run};
use quell_recording::SourceKind;
use quell_testing::{machine, measure};
use serde_json::Value;

/// Builds a C program of `tests/support`.
fn built(name: &str, folder: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = std::process::Command::new("cc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("../kernel/include"))
        .arg(here.join("tests/support").join(name).with_extension("c"))
        .arg("-o")
        .arg(folder.join(name))
        .status();
    assert!(built.is_ok_and(|status| status.success()), "{name} does not build");
}

/// The thread of the program `gives_up`, as `show` has it, and what the program itself measured.
fn gives_up(folder: &Path, how: &str) -> (Value, Value) {
    let (name, cpu) = (format!("{how}.quell"), last_cpu().to_string());
    let output = run(folder, &["record", "-o", &name, "-q", "--", "./gives_up", how, &cpu, "0"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let own: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let show = json(folder, &["show", &name, "--by", "source", "--json"]);
    let threads = show["threads"].as_array().unwrap();
    (threads.iter().find(|thread| thread["tid"] == own["tid"]).cloned().unwrap(), own)
}

/// Nataraj et al. 2007, §3, count involuntary switches only.
#[test]
fn only_what_a_thread_did_not_ask_for_is_preemption() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    built("gives_up", dir.path());
    let ns = |thread: &Value, field: &str| thread[field].as_u64().unwrap();

    let (thread, own) = gives_up(dir.path(), "yield");
    let (yielded, inside) = (ns(&thread, "yielded_ns"), ns(&own, "inside_ns"));
    assert!(inside > 100_000_000, "the neighbour had no CPU: {own}");
    assert!((inside * 9 / 10..=inside).contains(&yielded), "{yielded} ns of {inside} in sched_yield");
    assert!(ns(&thread, "preempted_ns") * 10 < yielded, "{thread}");

    let (thread, own) = gives_up(dir.path(), "compute");
    assert_eq!((ns(&thread, "yielded_ns"), ns(&own, "calls")), (0, 0));
    assert!(ns(&thread, "preempted_ns") > 50_000_000, "{thread}");

    if last_cpu() > 0 {
        let (thread, own) = gives_up(dir.path(), "move");
        assert!(ns(&own, "calls") > 10, "{own}");
        // The kernel's migration thread takes it away, but only because it asked. Where the kernel is not preemptible, it sleeps instead.
        let by_migration = thread["sources"].as_array().unwrap().iter();
        let by_migration = by_migration.filter(|row| row["source"].as_str().unwrap().contains("migration/"));
        let count: u64 = by_migration.map(|row| row["count"].as_u64().unwrap()).sum();
        assert!(count * 5 < ns(&own, "calls"), "{thread}");
        assert_eq!(ns(&thread, "yielded_ns"), 0);
    }
}

/// A thread that others move, also while it waits: no task is charged for a wait on a CPU where it never was.
#[test]
fn a_wait_that_moves_to_another_cpu_is_charged_to_the_tasks_there() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) || !has_two_cpus() {
        return;
    }
    built("spins", dir.path());
    let chain = |name, cpu, every_ns| Chain {
        name,
        cpu,
        every_ns,
        beats: 400_000_000 / every_ns,
        burn_ns: vec![3_000_000, 4_000_000],
        nested: false,
    };
    let (here, there) = (chain("here", 0, 11_000_000), chain("there", last_cpu(), 9_000_000));
    let mut child = spinning(dir.path(), "moved.quell", 0);
    std::thread::scope(|scope| {
        let chains = [&here, &there].map(|chain| scope.spawn(|| chain.run()));
        // Shorter than a chain, which has the CPU for most of the time: many moves strike a thread that waits.
        for cpu in [here.cpu, there.cpu].into_iter().cycle() {
            if chains.iter().all(|chain| chain.is_finished()) {
                break;
            }
            pin_thread(child.tid, cpu);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    child.end();
    let recording = whole(dir.path(), "moved.quell").unwrap();
    let mut waits = [0, 0];
    for side in &recording.intervals {
        for one in side.intervals.iter().filter(|one| u64::from(one.victim) == child.tid) {
            let source = one.source.to_string();
            let of = [&here, &there].map(|chain| source.starts_with(&format!("task:{}-", chain.name)));
            for (at, chain) in [&here, &there].into_iter().enumerate().filter(|(at, _)| of[*at]) {
                assert_eq!(
                    side.cpu.0 as usize, chain.cpu,
                    "{source} from {} for {}",
                    one.start, one.duration
                );
                waits[at] += 1;
            }
        }
    }
    assert!(waits.iter().all(|&waits| waits > 0), "it waited on both CPUs: {waits:?}");
}

/// A command that spins under `record`, until it is ended.
struct Spinning {
    child: std::process::Child,
    tid: u64,
}

impl Spinning {
    fn end(&mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// Starts it on a CPU.
fn spinning(folder: &Path, name: &str, cpu: usize) -> Spinning {
    let mut command = quell(folder);
    command.args(["record", "-o", name, "-q", "--", "./spins", &cpu.to_string()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut printed).unwrap();
    Spinning { child, tid: printed.trim().parse().unwrap() }
}

/// Compares what a spinning command lost to each task of a chain with what the kernel charged that task.
fn hold_against_chain(folder: &Path, name: &str, chain: &Chain) -> Result<(), String> {
    let mut child = spinning(folder, name, chain.cpu);
    let ran_ns = chain.run();
    child.end();
    let show = json(folder, &["show", name, "--by", "source", "--json"]);
    let thread =
        show["threads"].as_array().unwrap().iter().find(|thread| thread["tid"] == child.tid).unwrap().clone();
    let lost = |source: &str| {
        let mut rows = thread["sources"].as_array().unwrap().iter();
        rows.find(|row| row["source"] == source).map_or(0, |row| row["total_ns"].as_u64().unwrap())
    };
    chain.hold_against(&ran_ns, lost)
}

/// Other processes can read and write the container as the header promises, even without any privilege.
#[test]
fn a_command_reads_its_own_account_as_the_recorder_keeps_it() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    built("reads_itself", dir.path());
    fs_err::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let cpu = last_cpu().to_string();
    let command = ["record", "-o", "a.quell", "-q", "--", "./reads_itself", &cpu, "1000000"];
    let output = run(dir.path(), &command);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let own: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(own["torn"], 0, "{own}");
    assert!(own["ticks"].as_u64().unwrap() > 1000, "no storm: {own}");
    let recording = whole(dir.path(), "a.quell").unwrap();
    let show = json(dir.path(), &["show", "a.quell", "--by", "source", "--json"]);
    let thread =
        show["threads"].as_array().unwrap().iter().find(|t| t["tid"] == own["tid"]).cloned().unwrap();
    let rows = thread["sources"].as_array().unwrap();
    let of = |kind: &str, field: &str| -> u64 {
        let kinds = rows.iter().filter(|row| row["source"].as_str().unwrap().split(':').next() == Some(kind));
        kinds.map(|row| row[field].as_u64().unwrap()).sum()
    };
    // The recorder charges an interval right after it has read its end, and only then does the thread continue. So intervals that ended
    // before the thread's reading are in its account, and later ones are not. Both read the same clock, to the ns. While the kernel adjusts
    // the clock's rate, the two ways to read it may differ by a few ns, which is less than any return from an interrupt takes, so no margin
    // is needed.
    for kind in [SourceKind::Tick, SourceKind::Task] {
        let name = kind.name();
        let rows = placed(&recording, |one| one.source.kind() == kind && own["tid"] == one.victim);
        let [least, most] = ["before_ns", "after_ns"].map(|at| ended_by(&rows, own[at].as_u64().unwrap()));
        let (count, ns) = (own["count"][name].as_u64().unwrap(), own["ns"][name].as_u64().unwrap());
        assert!(least.0 <= count && count <= most.0, "{name}: {count} read, {least:?} to {most:?} recorded");
        assert!(least.1 <= ns && ns <= most.1, "{name}: {ns} ns read, {least:?} to {most:?} recorded");
        assert_eq!((of(name, "count"), of(name, "total_ns")), ended_by(&rows, u64::MAX), "{name}");
    }
}

#[test]
fn a_command_that_fails_says_so_and_leaves_its_recording() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let output = run(dir.path(), &["record", "-o", "a.quell", "--", "sh", "-c", "exit 7"]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{printed}");
    assert!(printed.contains("exit code 7"), "{printed}");
    let killed = run(dir.path(), &["record", "-o", "k.quell", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.status.code(), Some(128 + 15), "as a shell reports a signal");
    let show = json(dir.path(), &["show", "a.quell", "--by", "source", "--json"]);
    assert_eq!(show["threads"].as_array().unwrap().len(), 1, "{show}");
    let missing = run(dir.path(), &["record", "-o", "b.quell", "--", "./no-such-program"]);
    let printed = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(1), "{printed}");
    assert!(printed.contains("no-such-program"), "{printed}");
    assert!(!dir.path().join("b.quell").exists(), "nothing was recorded");
}

/// Checks that each thread's account in the container equals the sum of its intervals, by kind. A thread that was still on its CPU when the
/// recording ended has the account of that moment; more intervals may have been recorded since.
fn the_container_counts_what_was_recorded(folder: &Path, name: &str) {
    let recording = whole(folder, name).unwrap();
    let zero = recording.manifest.zero_monotonic_ns.unwrap();
    for thread in &recording.threads {
        for (kind, taken) in SourceKind::ALL.into_iter().zip(thread.taken) {
            let rows = placed(&recording, |one| one.source.kind() == kind && one.victim == thread.tid);
            let [least, most] = [zero + thread.end.as_nanos(), u64::MAX].map(|until| ended_by(&rows, until));
            let reported = format!("{kind:?} of {thread:?}: {least:?} to {most:?} recorded");
            assert!(least.0 <= taken.count && taken.count <= most.0, "{reported}");
            let ns = taken.time.as_nanos();
            assert!(least.1 <= ns && ns <= most.1, "{reported}");
        }
    }
    assert!(recording.threads.iter().any(|thread| thread.taken.iter().any(|taken| taken.count > 0)));
}

#[test]
fn an_interrupted_command_is_asked_to_end_and_its_recording_kept() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let args = ["record", "-o", "a.quell", "-q", "--", "sleep", "600"];
    let mut child = Guard(quell(dir.path()).args(args).stderr(Stdio::null()).spawn().unwrap());
    let progress = dir.path().join("a.quell/progress.jsonl");
    until("the first flush", || fs_err::read_to_string(&progress).is_ok_and(|text| !text.is_empty()));
    // SAFETY: the child is ours and has not been waited for.
    unsafe { libc::kill(child.0.id() as i32, libc::SIGINT) };
    assert!(child.0.wait().unwrap().success());
    let show = json(dir.path(), &["show", "a.quell", "--by", "source", "--json"]);
    assert_eq!(show["state"], "interrupted");
    assert_eq!(show["threads"][0]["name"], "sleep", "{}", show["threads"]);
}

#[test]
fn every_thread_of_a_command_is_followed() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let script = "for i in 1 2 3 4 5; do (true; /bin/true) & done; wait; exec /bin/sh -c 'true; /bin/true'";
    let output = run(dir.path(), &["record", "-o", "a.quell", "-q", "--", "/bin/sh", "-c", script]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let show = json(dir.path(), &["show", "a.quell", "--by", "source", "--json"]);
    let threads = show["threads"].as_array().unwrap();
    // The shell, its five children with a program each, and either the last program's child or the shell itself.
    assert!((7..=13).contains(&threads.len()), "{} threads: {threads:?}", threads.len());
    assert!(threads.iter().filter(|t| t["name"] == "true").count() >= 5, "{threads:?}");
    the_container_counts_what_was_recorded(dir.path(), "a.quell");
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    /// Several tasks take the CPU before the thread has it back: each is charged what it ran, and not the first with all.
    #[test]
    fn each_task_of_a_chain_is_charged_what_it_ran() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !may_watch_the_kernel(dir.path()) {
            return;
        }
        built("spins", dir.path());
        let draws = quell_sim::Draws::new(11, &[]);
        for number in 0..8 {
            // The first is a short task that wakes a long one.
            let burn_ns = match number {
                0 => vec![300_000, 3_000_000],
                _ => (0..2 + draws.below(number, 4))
                    .map(|task| 100_000 + draws.below(100 * number + task, 2_000_000))
                    .collect(),
            };
            let chain = Chain::on_last_cpu(burn_ns, number % 2 == 1);
            measure(|attempt| hold_against_chain(dir.path(), &format!("{number}-{attempt}.quell"), &chain));
        }
    }
}
