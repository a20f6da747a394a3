//! What runs and interrupts on a machine, listed once for all mitigations.

use std::cell::OnceCell;

use quell_recording::format_cpu_list;

use crate::tune::catalogue::{CpusetKind, Property};
use crate::tune::facts::Parts;
use crate::tune::place::Place;
use crate::tune::root::Root;

/// Flags of a thread in its `stat`: the kernel's own, and one that nobody may bind elsewhere.
const KERNEL: u64 = 0x0020_0000;
const BOUND: u64 = 0x0400_0000;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub pid: u32,
    /// Clock ticks after boot.
    pub start: u64,
    pub comm: String,
    pub kernel: bool,
    pub bound: bool,
}

impl Task {
    pub fn place(&self, property: Property) -> Place {
        Place::Thread { pid: self.pid, start: self.start, comm: self.comm.clone(), property }
    }

    /// From the line of a `stat`: the name stands in brackets, and may hold brackets and blanks itself.
    fn parse(line: &str) -> Option<Self> {
        let (pid, rest) = line.split_once(" (")?;
        let (comm, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let flags: u64 = fields.get(6)?.parse().ok()?;
        Some(Self {
            pid: pid.trim().parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
            comm: comm.to_owned(),
            kernel: flags & KERNEL != 0,
            bound: flags & BOUND != 0,
        })
    }
}

/// A setting in a file that is read at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    pub file: String,
    /// The file below `/proc/sys` that it sets.
    pub path: String,
    pub value: String,
}

/// Folders of such files; a name in one hides the same name in those after it.
const SYSCTL: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

/// The lists, each made when it is first asked for.
pub struct Lists<'a> {
    root: &'a Root,
    irqs: OnceCell<Vec<(u32, String)>>,
    tasks: OnceCell<Vec<Task>>,
    kernel: OnceCell<Vec<Task>>,
    sysctls: OnceCell<Vec<Sysctl>>,
}

impl<'a> Lists<'a> {
    pub fn new(root: &'a Root) -> Self {
        Self {
            root,
            irqs: OnceCell::new(),
            tasks: OnceCell::new(),
            kernel: OnceCell::new(),
            sysctls: OnceCell::new(),
        }
    }

    /// Interrupts that have a name, by number.
    pub fn irqs(&self) -> &[(u32, String)] {
        self.irqs.get_or_init(|| {
            let numbers = self.root.names("/proc/irq").into_iter().filter_map(|name| name.parse().ok());
            let named = |number: u32| {
                let folder = format!("/proc/irq/{number}");
                let is_folder = |name: &String| self.root.path(&format!("{folder}/{name}")).is_dir();
                self.root.names(&folder).into_iter().find(is_folder).map(|name| (number, name))
            };
            numbers.filter_map(named).collect()
        })
    }

    /// Processes and kernel threads.
    pub fn processes(&self) -> &[Task] {
        self.tasks.get_or_init(|| {
            let pids = self.root.names("/proc").into_iter().filter(|name| name.parse::<u32>().is_ok());
            pids.filter_map(|pid| self.task(&format!("/proc/{pid}/stat"))).collect()
        })
    }

    /// Those of the kernel.
    pub fn kernel_threads(&self) -> &[Task] {
        self.kernel.get_or_init(|| self.processes().iter().filter(|task| task.kernel).cloned().collect())
    }

    /// The threads of a process; none where there is no such process.
    pub fn threads_of(&self, pid: u32) -> Vec<Task> {
        let folder = format!("/proc/{pid}/task");
        self.root.names(&folder).iter().filter_map(|tid| self.task(&format!("{folder}/{tid}/stat"))).collect()
    }

    /// What files set at boot, in no order.
    pub fn sysctls(&self) -> &[Sysctl] {
        self.sysctls.get_or_init(|| {
            let mut seen = std::collections::BTreeSet::new();
            let mut files = vec!["/etc/sysctl.conf".to_owned()];
            for folder in SYSCTL {
                let mine = self.root.names(folder).into_iter().filter(|name| name.ends_with(".conf"));
                let first = mine.filter(|name| seen.insert(name.clone()));
                files.extend(first.map(|name| format!("{folder}/{name}")));
            }
            files.iter().flat_map(|file| self.settings(file)).collect()
        })
    }

    fn settings(&self, file: &str) -> Vec<Sysctl> {
        let text = self.root.read(file).unwrap_or_default();
        let setting = |line: &str| {
            let (key, value) = line.trim().trim_start_matches('-').split_once('=')?;
            let path = super::lasting::sysctl_path(key.trim());
            let comment = line.trim().starts_with(['#', ';']);
            (!comment).then(|| Sysctl { file: file.to_owned(), path, value: value.trim().to_owned() })
        };
        text.lines().filter_map(setting).collect()
    }

    fn task(&self, path: &str) -> Option<Task> {
        Task::parse(&self.root.read(path).ok()?)
    }
}

/// What a cpuset holds that keeps the compute CPUs for a job.
pub fn cpuset_wanted(what: CpusetKind, parts: &Parts) -> String {
    let compute = format_cpu_list(&parts.compute);
    match what {
        CpusetKind::Shield => format!("{compute} {}", format_cpu_list(&parts.housekeeping)),
        CpusetKind::Job | CpusetKind::Isolated => compute,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let line = "7 (a) R 1 (b) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0";
        let task = Task::parse(line).unwrap();
        assert_eq!((task.comm.as_str(), task.start, task.kernel, task.bound), ("a) R 1 (b", 99, true, true));
        assert_eq!(Task::parse("7 (a"), None);
    }
}
