//! Settings of the real kernel in tests: one test at a time, read without quell, and restored however a test ends.

use std::collections::BTreeMap;
use std::process::Command;

use quell_testing::{Turn, machine, skip};

use serde_json::Value;

/// The kernel has one set of settings, so tests that change them run one at a time, as root, on a machine whose kernel is not a sandbox's.
pub fn alone() -> Option<Turn> {
    let turn = machine();
    let uid = fs_err::read_to_string("/proc/self/status").unwrap();
    let root = uid.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let kernel = fs_err::read_to_string("/proc/2/comm").is_ok_and(|comm| comm == "kthreadd\n");
    if !root || !kernel || fs_err::OpenOptions::new().write(true).open("/proc/sys/vm/stat_interval").is_err()
    {
        skip("only root on a machine of its own may change kernel settings");
        return None;
    }
    let applied = Command::new(env!("CARGO_BIN_EXE_quell")).args(["tune", "verify"]).output().unwrap();
    if applied.stdout != b"nothing is applied\n" {
        skip("a plan is applied on this machine, and the tests would revert it");
        return None;
    }
    Some(turn)
}

/// Files that a test sets first, and that are restored at its end, even if it fails.
#[derive(Default)]
pub struct Preset(Vec<(String, String)>);

impl Preset {
    /// Sets a file, if it exists.
    pub fn set(&mut self, path: &str, value: &str) {
        let Ok(original) = fs_err::read_to_string(path) else { return };
        let word = original.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let original = word.map_or(original.clone(), |(word, _)| word.to_owned());
        if fs_err::write(path, value).is_ok() {
            self.0.push((path.to_owned(), original));
        }
    }
}

impl Drop for Preset {
    fn drop(&mut self) {
        let _ =
            Command::new(env!("CARGO_BIN_EXE_quell")).args(["--quiet", "tune", "revert", "--force"]).output();
        for (path, original) in self.0.iter().rev() {
            let _ = fs_err::write(path, original);
        }
    }
}

/// The content of all places of a plan, byte by byte, read without quell.
pub fn image(plan: &Value) -> BTreeMap<String, String> {
    let mut image = BTreeMap::new();
    let note = |image: &mut BTreeMap<String, String>, path: String| {
        let text = fs_err::read_to_string(&path).unwrap_or_else(|e| e.to_string());
        image.insert(path, text);
    };
    for write in plan["writes"].as_array().unwrap() {
        let place = &write["place"];
        for path in ["group", "dependents"].iter().filter_map(|key| write[key].as_array()).flatten() {
            note(&mut image, path.as_str().unwrap().to_owned());
        }
        match place["kind"].as_str().unwrap() {
            "file" | "drop-in" => note(&mut image, place["path"].as_str().unwrap().to_owned()),
            "irq" => note(&mut image, format!("/proc/irq/{}/smp_affinity", place["number"])),
            "thread" => {
                let status = fs_err::read_to_string(format!("/proc/{}/status", place["pid"])).unwrap();
                let stat = fs_err::read_to_string(format!("/proc/{}/stat", place["pid"])).unwrap();
                let slack = fs_err::read_to_string(format!("/proc/{}/timerslack_ns", place["pid"])).unwrap();
                let cpus =
                    status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap().to_owned();
                let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
                image.insert(place.to_string(), format!("{cpus} {} {} {slack}", fields[37], fields[38]));
            }
            "held" => {
                let text = fs_err::read("/dev/cpu_dma_latency")
                    .map_or_else(|e| e.to_string(), |bytes| format!("{bytes:?}"));
                image.insert(place.to_string(), text);
            }
            "cpuset" => {
                for path in
                    ["/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "/sys/fs/cgroup/cpuset/cpuset.cpus"]
                {
                    note(&mut image, path.into());
                }
                let sets = std::fs::read_dir("/sys/fs/cgroup/cpuset").into_iter().flatten();
                let sets: Vec<String> = sets
                    .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_dir()))
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .collect();
                image.insert(place.to_string(), format!("{sets:?}"));
            }
            other => panic!("no way to look at {other}"),
        }
    }
    image
}
