//! Interrupts, processes and boot-time settings of a machine, listed once for all mitigations.

use std::cell::OnceCell;

use crate::place::irq::{self, Irq};
use crate::place::thread::{self, Process, Task};
use crate::root::Root;

/// A setting in a file that is read at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    pub file: String,
    /// The file below `/proc/sys` that it sets.
    pub path: String,
    pub value: String,
}

/// Folders of such files. A file in one folder hides files of the same name in later folders.
const SYSCTL: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

/// The lists, each created on first use.
pub struct Lists<'a> {
    root: &'a Root,
    irqs: OnceCell<Vec<Irq>>,
    processes: OnceCell<Vec<Process>>,
    kernel: OnceCell<Vec<Task>>,
    sysctls: OnceCell<Vec<Sysctl>>,
}

impl<'a> Lists<'a> {
    pub fn new(root: &'a Root) -> Self {
        Self {
            root,
            irqs: OnceCell::new(),
            processes: OnceCell::new(),
            kernel: OnceCell::new(),
            sysctls: OnceCell::new(),
        }
    }

    /// Interrupts with a name, by number.
    pub fn irqs(&self) -> &[Irq] {
        self.irqs.get_or_init(|| irq::list(self.root))
    }

    /// Processes, without kernel threads.
    pub fn processes(&self) -> &[Process] {
        self.processes.get_or_init(|| thread::processes(self.root))
    }

    /// Kernel threads.
    pub fn kernel_threads(&self) -> &[Task] {
        self.kernel.get_or_init(|| thread::kernel_threads(self.root))
    }

    /// Settings that files make at boot, in no particular order.
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
            let path = crate::sysctl::sysctl_path(key.trim());
            let comment = line.trim().starts_with(['#', ';']);
            (!comment).then(|| Sysctl { file: file.to_owned(), path, value: value.trim().to_owned() })
        };
        text.lines().filter_map(setting).collect()
    }
}
