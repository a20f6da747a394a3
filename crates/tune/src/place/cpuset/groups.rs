//! cgroups as folders, and their files: the kernel creates the files on a machine, quell itself in a copy.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::time::Duration;

use super::super::PlaceError;
use crate::root::Root;

/// A cgroup hierarchy, and how to find it in a copy without a mount table.
pub struct Kind {
    /// The file system.
    pub system: &'static str,
    /// A mount option that it has.
    pub option: &'static str,
    /// Its usual mount point.
    pub usual: &'static str,
    /// A file in its root.
    pub shown_by: &'static str,
}

/// The mount point of a hierarchy.
pub fn mounted(root: &Root, kind: &Kind) -> Option<String> {
    let table = root.read("/proc/mounts").unwrap_or_default();
    let mount = table.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let &[_, folder, system, options, ..] = words.as_slice() else { return None };
        let fits = system == kind.system
            && (kind.option.is_empty() || options.split(',').any(|one| one == kind.option));
        // A space in the path is shown as an escape sequence; cgroups are not mounted at such paths.
        (fits && !folder.contains('\\') && root.has(&format!("{folder}/{}", kind.shown_by)))
            .then(|| folder.to_owned())
    });
    let usual = || {
        let shown = !root.is_system() && root.has(&format!("{}/{}", kind.usual, kind.shown_by));
        shown.then(|| kind.usual.to_owned())
    };
    mount.or_else(usual)
}

/// A file's text without surrounding blanks.
pub fn get(root: &Root, path: &str) -> Result<String, PlaceError> {
    root.read(path).map(|text| text.trim().to_owned()).map_err(|e| PlaceError::from_io(&e, ""))
}

/// Writes a file; in a copy, creates it.
pub fn put(root: &Root, path: &str, value: &str) -> Result<(), PlaceError> {
    let put = || {
        if root.is_system() {
            return root.write(path, value);
        }
        if !root.has(path) {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o644).custom_flags(flags).open(root.spot(path)?)?;
        }
        root.write(path, &format!("{value}\n"))
    };
    put().map_err(|e| PlaceError::from_io(&e, value))
}

/// Creates a group if it does not exist.
pub fn make(root: &Root, group: &str) -> Result<(), PlaceError> {
    let made = root.spot(group).and_then(|spot| DirBuilder::new().mode(0o755).create(spot));
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|e| PlaceError::from_io(&e, group)),
    }
}

/// Refuses a group in which someone else has a group: it cannot be removed.
pub fn refuse_others(root: &Root, group: &str, own: &[&str]) -> Result<(), PlaceError> {
    let is_folder = |name: &String| root.path(&format!("{group}/{name}")).is_dir();
    match root.names(group).iter().find(|name| !own.contains(&name.as_str()) && is_folder(name)) {
        Some(other) => {
            Err(PlaceError::Busy(format!("{group}/{other} is in it: end and remove it, then try again")))
        }
        None => Ok(()),
    }
}

/// Removes a group if it exists. In a copy its files are removed first; the kernel removes its own with the group.
pub fn remove(root: &Root, group: &str) -> Result<(), PlaceError> {
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
                // A process that has exited stays in its group until the kernel has cleaned up.
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
            PlaceError::Busy(format!("{group} has tasks or groups of others in it: end them, then try again"))
        }
        _ => PlaceError::from_io(&error, group),
    })
}
