//! File systems below which settings are, and systemd: whether they are there at all.

use std::io;

use super::look::{Examined, Examiner, Verdict};

/// Where the kernel expects a file system, its type, and the command that mounts it.
const MOUNTS: [(&str, &str); 3] =
    [("/sys/kernel/debug", "debugfs"), ("/sys/kernel/tracing", "tracefs"), ("/sys/fs/resctrl", "resctrl")];

impl Examiner<'_> {
    /// Why a file that is not there cannot be seen, if its file system is not mounted, or closed to this user.
    pub(super) fn behind_a_mount(&self, path: &str) -> Option<Examined> {
        let below =
            |(base, _): &&(&str, &str)| path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
        let (base, kind) = MOUNTS.iter().find(below)?;
        match self.root.entries(base) {
            Ok(0) => {
                let why = format!("{kind} is not mounted: as root, `mount -t {kind} {kind} {base}`");
                Some(Examined::bare(Verdict::NotMounted, why))
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(Examined::bare(Verdict::NotReadable, format!("only root may look below {base}")))
            }
            // A kernel without that file system has no folder for it.
            _ => None,
        }
    }

    /// Why systemd does nothing here, if it is known not to run. A copy of a machine may lack what shows it.
    pub(super) fn no_systemd(&self) -> Option<String> {
        let shows = self.root.is_system() || self.root.has("/run");
        let runs = self.root.has("/run/systemd/system");
        (shows && !runs).then(|| "systemd does not run here".to_owned())
    }
}
