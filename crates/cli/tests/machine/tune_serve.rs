//! `quell tune serve` on the real kernel: CPUs go and return.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::tuned::{Preset, alone, image};
use crate::support::{Guard, json, quell};
use quell_testing::skip;
use serde_json::Value;

/// A CPU that is online again at the end of the test, even if it fails.
struct Online(&'static str);

impl Drop for Online {
    fn drop(&mut self) {
        let _ = fs_err::write(self.0, "1");
    }
}

/// The kernel sends interrupts elsewhere while their CPU is away, and takes it out of cpusets. Neither is another program's change.
#[test]
fn a_cpu_that_goes_and_returns_has_its_settings_again() {
    const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";
    let Some(_alone) = alone() else { return };
    if fs_err::OpenOptions::new().write(true).open(SWITCH).is_err() {
        return skip("CPU 1 cannot be taken offline here");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _preset = Preset::default();
    let _online = Online(SWITCH);
    fs_err::create_dir_all(folder.join("site/profiles")).unwrap();
    let profile =
        "title = 't'\nwhat = 'w'\nmitigations = ['irq-cpu0', 'corespec-n-minus-1', 'vm-stat-interval']\n";
    fs_err::write(folder.join("site/profiles/ours.toml"), profile).unwrap();
    let plan = json(folder, &["tune", "plan", "--profile", "ours", "--site", "site", "--json"]);
    let moves = |write: &Value| write["place"]["kind"] == "irq";
    if !plan["writes"].as_array().unwrap().iter().any(moves) {
        return skip("no interrupt can be moved here");
    }
    let before = image(&plan);
    let serve = ["tune", "serve", "ours", "--site", "site", "--yes", "--max-risk", "high", "--allow-users"];
    let mut child = quell(folder).args(serve).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut child = Guard(child);
    let mut logs = |text: &str| {
        let line = log.by_ref().map(Result::unwrap).find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("the log ends without `{text}`"))
    };
    logs("applied as");
    let applied = image(&plan);
    fs_err::write(SWITCH, "0").unwrap();
    fs_err::write(SWITCH, "1").unwrap();
    logs("is set again");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while image(&plan) != applied && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(image(&plan), applied);
    let pid = child.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert_eq!(image(&plan), before);
}
