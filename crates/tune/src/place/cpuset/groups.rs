//! Groups as folders, and their files: the kernel makes them on a machine, quell itself in a tree.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::time::Duration;

use super::super::Trouble;
use crate::root::Root;

/// The file of a hierarchy's that shows where it is mounted in a tree without a table of mounts.
pub struct Kind {
    /// The file system.
    pub system: &'static str,
    /// An option of the mount.
    pub option: &'static str,
    /// Where it is usually.
    pub usual: &'static str,
    /// A file of its root's.
    pub shown_by: &'static str,
}

/// Where a hierarchy is mounted.
pub fn mounted(root: &Root, kind: &Kind) -> Option<String> {
    let table = root.read("/proc/mounts").unwrap_or_default();
    let mount = table.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let &[_, folder, system, options, ..] = words.as_slice() else { return None };
        let fits = system == kind.system
            && (kind.option.is_empty() || options.split(',').any(|one| one == kind.option));
        // A space in the path is written as an escape; nobody mounts cgroups there.
        (fits && !folder.contains('\\') && root.has(&format!("{folder}/{}", kind.shown_by)))
            .then(|| folder.to_owned())
    });
    let usual = || {
        let shown = !root.is_system() && root.has(&format!("{}/{}", kind.usual, kind.shown_by));
        shown.then(|| kind.usual.to_owned())
    };
    mount.or_else(usual)
}

/// A file's text without what surrounds it.
pub fn get(root: &Root, path: &str) -> Result<String, Trouble> {
    root.read(path).map(|text| text.trim().to_owned()).map_err(|e| Trouble::from_io(&e, ""))
}

/// Writes a file, and in a tree makes it.
pub fn put(root: &Root, path: &str, value: &str) -> Result<(), Trouble> {
    let put = || {
        if root.is_system() {
            return root.write(path, value);
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o644)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(root.spot(path)?)?;
        file.write_all(format!("{value}\n").as_bytes())
    };
    put().map_err(|e| Trouble::from_io(&e, value))
}

/// Makes a group, if it is not there.
pub fn make(root: &Root, group: &str) -> Result<(), Trouble> {
    let made = root.spot(group).and_then(|spot| DirBuilder::new().mode(0o755).create(spot));
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|e| Trouble::from_io(&e, group)),
    }
}

/// Removes a group, if it is there. In a tree its files go first; the kernel's go with it.
pub fn remove(root: &Root, group: &str) -> Result<(), Trouble> {
    if !root.has(group) {
        return Ok(());
    }
    let remove = || {
        let spot = root.spot(group)?;
        if !root.is_system() {
            for entry in fs::read_dir(&spot)? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    fs_err::remove_file(entry.path())?;
                }
            }
        }
        let mut pause = Duration::from_millis(1);
        loop {
            match fs::remove_dir(&spot) {
                // What has ended stays in its group until the kernel has done with it.
                Err(error)
                    if error.raw_os_error() == Some(libc::EBUSY) && pause < Duration::from_millis(200) =>
                {
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => return other,
            }
        }
    };
    remove().map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY | libc::ENOTEMPTY) => {
            Trouble::Busy(format!("{group} has tasks or groups of others in it: end them, then try again"))
        }
        _ => Trouble::from_io(&error, group),
    })
}
