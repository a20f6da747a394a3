//! Temporary folders: their names say whose they are, so that those of processes that were killed can be removed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fs_err as fs;
use tempfile::{Builder, TempDir};

/// Age at which a folder of another host is abandoned: this one cannot see whether its process is alive, and a job may run for weeks.
const OLD: Duration = Duration::from_secs(30 * 86_400);

/// Makes a temporary folder of a kind, and removes those that this user's processes left behind when they were killed.
///
/// # Errors
/// When `folder` does not accept one.
pub fn new_in(folder: &Path, kind: &str) -> std::io::Result<TempDir> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    remove(folder, kind);
    let prefix = format!("{}{}-", prefix(kind), MADE.fetch_add(1, Ordering::Relaxed));
    let made = Builder::new().prefix(&prefix).tempdir_in(folder)?;
    remove_doubles(&made, &prefix);
    Ok(made)
}

/// Removes what an earlier attempt of this one made: a file system in a network repeats `mkdir` when it lost the answer, and then reports
/// that the folder exists, for which another name is tried.
fn remove_doubles(made: &TempDir, prefix: &str) {
    let folder = made.path().parent().unwrap_or(Path::new("."));
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let is_double = entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes());
        if is_double && entry.path() != made.path() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Makes a folder in a temporary one, and moves it to `path` when it is complete: there it is whole, or not at all.
///
/// # Errors
/// Those of `make`; when the folder of `path` does not accept it, or there is something else at `path`.
pub fn make_aside<E: From<std::io::Error>>(
    path: &Path,
    kind: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    quell_recording::check_folder_of(path).map_err(std::io::Error::other)?;
    let aside = new_in(parent, kind)?;
    let made = aside.path().join(path.file_name().unwrap_or_default());
    make(&made)?;
    sync(&made)?;
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(rustix::fs::CWD, &made, rustix::fs::CWD, path, flags) {
        // Not all file systems know the flag.
        Err(rustix::io::Errno::INVAL) if !path.exists() => fs::rename(&made, path)?,
        other => other.map_err(std::io::Error::from)?,
    }
    Ok(())
}

/// Writes a file, or all in a folder, to the disk.
fn sync(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| sync(&entry?.path()))?;
    }
    fs::File::open(path)?.sync_all()
}

/// The begin of the name of a folder of this process.
fn prefix(kind: &str) -> String {
    format!("{kind}{:08x}-{}-", here(), std::process::id())
}

fn remove(folder: &Path, kind: &str) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(kind) else { continue };
        // Not through a link, which another user may have put there.
        let Ok(facts) = entry.metadata() else { continue };
        if facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw() && is_abandoned(rest, &facts)
        {
            // Another process may remove it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(rest: &str, facts: &std::fs::Metadata) -> bool {
    let mut parts = rest.split('-');
    let place = parts.next().and_then(|place| u32::from_str_radix(place, 16).ok());
    let process = parts.next().and_then(|pid| pid.parse::<u32>().ok());
    match (place, process) {
        (Some(place), Some(process)) if place == here() => !Path::new(&format!("/proc/{process}")).exists(),
        _ => facts.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > OLD),
    }
}

/// Where process ids mean the same as here: this start of this host, in this PID namespace.
fn here() -> u32 {
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino()).ok();
    let mut hash = DefaultHasher::new();
    (start, namespace).hash(&mut hash);
    hash.finish() as u32
}

#[cfg(test)]
mod tests {
    use fs_err::{create_dir, write};
    use std::io;

    use super::*;

    #[test]
    fn a_folder_made_aside_is_whole_or_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below").join("made");
        assert!(make_aside(&path, ".aside-", |_| Ok::<_, io::Error>(())).is_err(), "its folder is missing");
        create_dir(dir.path().join("below")).unwrap();
        let make =
            |path: &Path| -> io::Result<()> { create_dir(path).and_then(|()| write(path.join("file"), "")) };
        let broken =
            |path: &Path| -> io::Result<()> { make(path).and(Err(io::ErrorKind::StorageFull.into())) };
        let left = || fs::read_dir(dir.path().join("below")).unwrap().count();
        assert!(make_aside(&path, ".aside-", broken).is_err());
        assert_eq!(left(), 0);
        make_aside(&path, ".aside-", make).unwrap();
        assert!(path.join("file").exists());
        let again = make_aside(&path, ".aside-", make).unwrap_err();
        assert_eq!((again.kind(), left()), (io::ErrorKind::AlreadyExists, 1));
    }

    #[test]
    fn a_folder_made_twice_is_removed_and_those_of_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (double, other) = (dir.path().join("kind-1-abc"), dir.path().join("kind-2-abc"));
        create_dir(&double).unwrap();
        create_dir(&other).unwrap();
        let made = Builder::new().prefix("kind-1-").tempdir_in(dir.path()).unwrap();
        remove_doubles(&made, "kind-1-");
        assert!(made.path().exists() && other.exists() && !double.exists());
    }

    #[test]
    fn only_folders_of_ended_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        // No process has this id: it is above the kernel's highest limit (PID_MAX_LIMIT).
        let gone = format!("kind-{:08x}-4194305-abc", here());
        let alive = format!("{}abc", prefix("kind-"));
        let elsewhere = format!("kind-{:08x}-4194305-abc", here() ^ 1);
        let other = format!("other-{:08x}-4194305-abc", here());
        for name in [&gone, &alive, &elsewhere, &other, &"kind-".to_owned(), &"kind-4194305-abc".to_owned()] {
            create_dir(dir.path().join(name)).unwrap();
            write(dir.path().join(name).join("file"), "").unwrap();
        }
        let file = format!("kind-{:08x}-4194305-file", here());
        write(dir.path().join(&file), "").unwrap();
        let link = format!("kind-{:08x}-4194305-link", here());
        std::os::unix::fs::symlink(dir.path().join(&other), dir.path().join(&link)).unwrap();
        remove(dir.path(), "kind-");
        assert!(!dir.path().join(&gone).exists());
        for kept in [&alive, &elsewhere, &other, &file, &link] {
            assert!(dir.path().join(kept).exists(), "{kept}");
        }
        assert!(dir.path().join(&other).join("file").exists());
    }
}
