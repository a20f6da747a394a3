//! What the kernel recorder does when its rings are full.

use std::process::Stdio;

use crate::support::disturbers::wake_each_other;
use crate::support::node::{last_cpu, until};
use crate::support::tools::may_watch_the_kernel;
use crate::support::{Guard, quell};
use quell_recording::Recording;
use quell_testing::machine;

/// More switches there and back than a ring has entries.
const OVERFLOW: u32 = 100_000;
/// A thread also leaves its CPU while it starts and ends, before and after it counts.
const UNCOUNTED: u64 = 8;

#[test]
fn what_finds_a_full_ring_is_counted_and_the_ring_goes_on() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    if !may_watch_the_kernel(dir.path()) {
        return;
    }
    let folder = dir.path().join("a.quell");
    let args = ["record", "-q", "-o", "a.quell", "--method", "kernel", "--sources", "on", "--effect", "0"];
    let cpu = last_cpu();
    let mut command = quell(dir.path());
    command.args(args).args(["--cpus", &cpu.to_string(), "--duration", "300s"]);
    let mut child = Guard(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    // SAFETY: the child is ours and runs until it is waited for.
    let signal = |child: &Guard, number| unsafe { libc::kill(child.0.id() as i32, number) };
    let written = || {
        let files = fs_err::read_dir(&folder).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum::<u64>()
    };
    until("the recording", || folder.join("progress.jsonl").exists());
    signal(&child, libc::SIGSTOP);
    let before = written();
    let overflow = wake_each_other(cpu, b"overflow", OVERFLOW);
    signal(&child, libc::SIGCONT);
    until("the rows of the full ring", || written() > before + u64::from(OVERFLOW));
    let after = wake_each_other(cpu, b"after", 1_000);
    signal(&child, libc::SIGINT);
    assert!(child.0.wait().unwrap().success());
    let recording = Recording::open(&folder).unwrap();
    let of = |name: &str| {
        let all = recording.intervals.iter().flat_map(|of_cpu| &of_cpu.intervals);
        all.filter(|one| one.source.to_string() == name).count() as u64
    };
    let lost = recording.manifest.sources.as_ref().unwrap().lost;
    let recorded = of("task:overflow");
    let is_all = |recorded: u64, left: u64| (left..=left + UNCOUNTED).contains(&recorded);
    assert!(lost > 0 && recorded < overflow, "{recorded} of {overflow} recorded, {lost} lost");
    assert!(recorded + lost >= overflow, "{recorded} of {overflow} recorded, {lost} lost");
    assert!(is_all(of("task:after"), after), "{} of {after} recorded", of("task:after"));
}
