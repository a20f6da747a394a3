//! Interrupts, processes and boot-time settings of a machine, listed once for all mitigations.

use std::cell::OnceCell;
use std::io::Read as _;

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

/// Maximum size of a kernel's configuration, packed and not: kernels have some 300 kB.
const LONGEST_CONFIG: u64 = 4 << 20;

/// The lists, each created on first use.
pub struct Lists<'a> {
    root: &'a Root,
    irqs: OnceCell<Vec<Irq>>,
    processes: OnceCell<Vec<Process>>,
    kernel: OnceCell<Vec<Task>>,
    sysctls: OnceCell<Vec<Sysctl>>,
    config: OnceCell<Option<String>>,
}

impl<'a> Lists<'a> {
    pub fn new(root: &'a Root) -> Self {
        Self {
            root,
            irqs: OnceCell::new(),
            processes: OnceCell::new(),
            kernel: OnceCell::new(),
            sysctls: OnceCell::new(),
            config: OnceCell::new(),
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

    /// The configuration with which the kernel was built: the running kernel's own copy, else the file of its package.
    pub fn config(&self, release: &str) -> Option<&str> {
        let read = || {
            let own = self.root.read_bytes("/proc/config.gz", LONGEST_CONFIG).ok();
            own.and_then(|bytes| unpacked(&bytes))
                .or_else(|| self.root.read(&format!("/boot/config-{release}")).ok())
        };
        self.config.get_or_init(read).as_deref()
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

/// The text in gzip data, if it is text of a plausible size.
fn unpacked(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(bytes).take(LONGEST_CONFIG);
    reader.read_to_string(&mut text).ok()?;
    Some(text)
}
