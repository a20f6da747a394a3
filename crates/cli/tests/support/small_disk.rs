//! A file system that is soon full.

use std::path::Path;
use std::process::Command;

/// A file system in memory, which is unmounted at the end of the test.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one; `None` if this user may not.
    pub fn mount(bytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "quell-test"])
            .arg(dir.path())
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(dir))
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).output();
    }
}
