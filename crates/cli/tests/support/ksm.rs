//! The kernel thread that merges equal pages, as a disturber: bound to a CPU and given work; its settings are restored at the end.

use std::io::BufRead as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Guard;

/// A Python script that maps `mebibytes` MiB of memory in which every page can be merged.
fn mergeable(mebibytes: u32) -> String {
    format!(
        "import mmap, time
memory = mmap.mmap(-1, {mebibytes} << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(12)
for page in range({mebibytes} << 8):
    memory[page * 4096] = page % 251
print('ready', flush=True)
time.sleep(600)"
    )
}

/// The CPUs and the niceness of the thread, restored at the end.
pub struct Ksmd {
    pid: String,
    cpus: String,
    nice: Option<String>,
}

impl Ksmd {
    /// Binds the thread; `None` if this kernel has none, or it cannot be moved.
    pub fn bound_to(cpu: &str) -> Option<Self> {
        let pid = Command::new("pgrep").args(["-x", "ksmd"]).output().ok()?;
        let pid = String::from_utf8(pid.stdout).ok()?.trim().to_owned();
        let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
        let bound =
            Command::new("taskset").args(["-cp", cpu, &pid]).stdout(Stdio::null()).status().ok()?.success();
        bound.then_some(Self { pid, cpus, nice: None })
    }

    /// Gives the thread long time slices and a high priority.
    pub fn before_others(&mut self) {
        let stat = fs_err::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        // The 19th field; the second field, in parentheses, contains no space here.
        self.nice = stat.split_whitespace().nth(18).map(str::to_owned);
        self.renice("-20");
    }

    fn renice(&self, nice: &str) {
        let mut command = Command::new("renice");
        let _ = command.args(["-n", nice, "-p", &self.pid]).stdout(Stdio::null()).status();
    }
}

impl Drop for Ksmd {
    fn drop(&mut self) {
        let _ = Command::new("taskset").args(["-cp", &self.cpus, &self.pid]).stdout(Stdio::null()).status();
        if let Some(nice) = &self.nice {
            self.renice(nice);
        }
    }
}

/// Starts a process with mergeable memory on CPU 0, and waits until the thread has scanned it three times, after which the load is steady.
pub fn memory(mebibytes: u32) -> Guard {
    let mut memory = Command::new("taskset");
    memory.args(["-c", "0", "python3", "-c", &mergeable(mebibytes)]);
    let mut memory = Guard(memory.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    std::io::BufReader::new(memory.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let scans =
        || fs_err::read_to_string("/sys/kernel/mm/ksm/full_scans").unwrap().trim().parse::<u64>().unwrap();
    let (first, end) = (scans(), Instant::now() + Duration::from_secs(60));
    while scans() < first + 3 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    memory
}
