//! What /proc and /sys report about the kernel and this process, below a root that a test can replace.

use std::path::{Path, PathBuf};

/// Capabilities, by the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capability {
    IpcLock = 14,
    SysAdmin = 21,
    SysNice = 23,
    SysResource = 24,
    Syslog = 34,
    Perfmon = 38,
    Bpf = 39,
}

/// The files under a root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a> {
    root: &'a Path,
}

impl Files<'static> {
    /// Those of this machine.
    pub(super) fn from_this_machine() -> Self {
        Self { root: Path::new("/") }
    }
}

impl<'a> Files<'a> {
    #[cfg(test)]
    pub(super) fn under(root: &'a Path) -> Self {
        Self { root }
    }

    fn path(self, name: &str) -> PathBuf {
        self.root.join(name.trim_start_matches('/'))
    }

    pub(super) fn exists(self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(super) fn bytes(self, name: &str) -> Option<Vec<u8>> {
        fs_err::read(self.path(name)).ok()
    }

    /// The first line of a file.
    pub(super) fn line(self, name: &str) -> Option<String> {
        let text = String::from_utf8(self.bytes(name)?).ok()?;
        Some(text.lines().next()?.trim().to_owned())
    }

    /// A numeric kernel setting, by its path below /proc/sys.
    pub(super) fn setting(self, name: &str) -> Option<i64> {
        self.line(&format!("/proc/sys/{name}"))?.parse().ok()
    }

    /// A field of this process's /proc/self/status.
    pub(super) fn status(self, field: &str) -> Option<String> {
        let text = String::from_utf8(self.bytes("/proc/self/status")?).ok()?;
        text.lines().find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned()))
    }

    /// Whether this process has a capability in its effective set.
    pub(super) fn holds(self, capability: Capability) -> bool {
        let mask = self.status("CapEff").and_then(|text| u64::from_str_radix(&text, 16).ok());
        mask.is_some_and(|mask| mask >> capability as u32 & 1 == 1)
    }

    /// The kernel's release, as two numbers and as text.
    pub(super) fn release(self) -> Option<((u32, u32), String)> {
        let text = self.line("/proc/sys/kernel/osrelease")?;
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
        Some(((major, minor), text))
    }

    /// The architecture, as `uname -m` prints it. Kernels before 6.1 have no file with it.
    pub(super) fn machine(self) -> String {
        self.line("/proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
    }

    /// Whether this process is in a PID namespace other than the first, so that the kernel's process ids differ from those seen here.
    pub(super) fn in_pid_namespace(self) -> bool {
        /// The name of the first PID namespace (include/linux/proc_ns.h: PROC_PID_INIT_INO).
        const FIRST: &str = "pid:[4026531836]";
        let link = fs_err::read_link(self.path("/proc/self/ns/pid"));
        link.is_ok_and(|name| name.as_os_str() != FIRST)
    }

    /// Whether this process is in a user namespace other than the first: its ids are mapped.
    pub(super) fn in_user_namespace(self) -> bool {
        let Some(line) = self.line("/proc/self/uid_map") else { return false };
        !line.split_whitespace().eq(["0", "0", "4294967295"])
    }
}
