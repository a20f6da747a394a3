//! Runs the built program, and holds what both kinds of tests share.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod applications;
pub mod archived;
pub mod disturbers;
pub mod fake_hosts;
pub mod fake_machine;
pub mod ksm;
pub mod made_run;
pub mod node;
pub mod pftrace;
pub mod placed;
pub mod replaying;
pub mod slurm;
pub mod small_disk;
pub mod tools;
pub mod tuned;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The built program in a folder, independent of the caller's terminal and locale. Sentences are not wrapped, because they may hold the folder's
/// name, whose length differs.
pub fn quell(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quell"));
    command.current_dir(folder).env_remove("COLUMNS").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn run(folder: &Path, args: &[&str]) -> Output {
    quell(folder).args(args).output().unwrap()
}

/// Runs the program, which must succeed, and parses the JSON that it prints.
pub fn json(folder: &Path, args: &[&str]) -> serde_json::Value {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Exit code, stdout and stderr as one text, without the name of the folder.
pub fn transcript(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    let part = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(&*folder.to_string_lossy(), "[FOLDER]");
        text.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>()
    };
    let code = output.status.code().map_or("killed".into(), |code| code.to_string());
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", part(&output.stdout), part(&output.stderr))
}

/// A child process that is killed at the end of the test, even if it fails.
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number of CPUs that this process may use.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Writes a netgauge file: two detours per millisecond, with durations that repeat.
pub fn netgauge(folder: &Path) {
    let mut text = String::from("# Selfish Benchmark\n");
    for i in 0..20_000u64 {
        text += &format!("{}.00\t{}.00\n", i * 500_000 + (i * 7919) % 90_000, 1_000 + (i * i * 31) % 40_000);
    }
    fs_err::write(folder.join("selfish.txt"), text).unwrap();
}
