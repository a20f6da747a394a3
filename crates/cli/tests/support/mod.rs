//! Running the built program from outside, and what tests of both kinds have in common.
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
pub mod tools;
pub mod tuned;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The built program in a folder, free of the caller's terminal and locale.
pub fn quell(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quell"));
    command.current_dir(folder).env("COLUMNS", "100").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs to the end.
pub fn run(folder: &Path, args: &[&str]) -> Output {
    quell(folder).args(args).output().unwrap()
}

/// Runs to the end, which must be good, and reads the JSON that it printed.
pub fn json(folder: &Path, args: &[&str]) -> serde_json::Value {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Exit code, stdout and stderr as one text, with the folder's name taken out.
pub fn transcript(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    let part = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(&*folder.to_string_lossy(), "[FOLDER]");
        text.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>()
    };
    let code = output.status.code().map_or("killed".into(), |code| code.to_string());
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", part(&output.stdout), part(&output.stderr))
}

/// A child that is ended with the test, however that ends.
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CPUs that this process may use.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A netgauge file: two detours a millisecond, durations that repeat.
pub fn netgauge(folder: &Path) {
    let mut text = String::from("# Selfish Benchmark\n");
    for i in 0..20_000u64 {
        text += &format!("{}.00\t{}.00\n", i * 500_000 + (i * 7919) % 90_000, 1_000 + (i * i * 31) % 40_000);
    }
    fs_err::write(folder.join("selfish.txt"), text).unwrap();
}
