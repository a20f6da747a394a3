//! A file of quell's own, in a drop-in folder that other programs use too.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use quell_recording::{AtomicFile, remove_drafts};

use super::{ABSENT, PlaceError};
use crate::deny;
use crate::root::Root;

/// Maximum size of a drop-in, which has only a few lines.
const LONGEST: u64 = 1 << 20;

/// A marker in a folder that quell created, so that the folder is removed with quell's last file in it. Programs that read such folders
/// ignore names that begin with a dot.
const MADE: &str = ".made-by-quell";

pub(super) fn read(root: &Root, path: &str) -> Result<String, PlaceError> {
    let spot = match root.spot(path) {
        Ok(spot) => spot,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ABSENT.to_owned()),
        Err(error) => return Err(PlaceError::from_io(&error, "")),
    };
    Ok(present(&spot)?.unwrap_or_else(|| ABSENT.to_owned()))
}

pub(super) fn write(root: &Root, path: &str, value: &str) -> Result<(), PlaceError> {
    deny::drop_in(path).map_err(PlaceError::Denied)?;
    if value == ABSENT {
        return match root.spot(path) {
            Ok(spot) => remove(&spot).map(|()| reread(root, path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(PlaceError::from_io(&error, "")),
        };
    }
    let spot = spot_or_make(root, path)?;
    ours(&spot)?;
    put(&spot, value).map_err(|e| PlaceError::from_io(&e, path))?;
    reread(root, path);
    Ok(())
}

/// A unit's drop-in counts at the unit's next start only if systemd has read it by then, and a removed one until then.
fn reread(root: &Root, path: &str) {
    if path.rsplit_once('/').is_some_and(|(folder, _)| folder.ends_with(".service.d")) {
        super::unit::reload(root);
    }
}

/// The file's text, if the file exists.
fn present(spot: &Path) -> Result<Option<String>, PlaceError> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(spot);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(no_file("a link")),
        Err(error) => return Err(PlaceError::from_io(&error, "")),
    };
    let failed = |e: io::Error| PlaceError::from_io(&e, "");
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(no_file("no regular file"));
    }
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LONGEST { Err(no_file("too long for a drop-in")) } else { Ok(Some(text)) }
}

fn no_file(what: &str) -> PlaceError {
    PlaceError::Denied(format!("it is {what}, which quell neither reads nor replaces"))
}

/// Whether the existing file, if any, is one of quell's.
fn ours(spot: &Path) -> Result<bool, PlaceError> {
    let Some(text) = present(spot)? else { return Ok(false) };
    if text.lines().next().is_some_and(|line| line.contains("quell")) {
        return Ok(true);
    }
    Err(PlaceError::Busy("a file of that name exists, and its first line does not mark it as quell's".into()))
}

/// The path of the file; its folder is created if only that is missing.
fn spot_or_make(root: &Root, path: &str) -> Result<PathBuf, PlaceError> {
    match root.spot(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other.map_err(|e| PlaceError::from_io(&e, path)),
    }
    let (folder, _) = path.rsplit_once('/').unwrap_or_default();
    let make = || {
        let folder = root.spot(folder)?;
        DirBuilder::new().mode(0o755).create(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        fs::File::create_new(folder.join(MADE))?.sync_all()?;
        sync(&folder)?;
        sync(folder.parent().unwrap_or(&folder))?;
        root.spot(path)
    };
    make().map_err(|e| PlaceError::from_io(&e, path))
}

/// Writes the file so that after a power failure it has all of its text, or is as it was before.
fn put(spot: &Path, text: &str) -> io::Result<()> {
    remove_drafts(spot)?;
    let mut file = AtomicFile::create(spot)?;
    file.write_all(text.as_bytes())?;
    // Set explicitly, because the caller's umask may differ.
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    file.commit()?;
    sync(folder_of(spot)?)
}

fn remove(spot: &Path) -> Result<(), PlaceError> {
    let is_there = ours(spot)?;
    let take_away = || {
        let folder = folder_of(spot)?;
        if is_there {
            fs::remove_file(spot)?;
        }
        remove_drafts(spot)?;
        sync(folder)?;
        leave(folder)
    };
    take_away().map_err(|e| PlaceError::from_io(&e, ABSENT))
}

/// Removes a folder that quell created, once it is empty again; if other programs' files are in it, only the marker.
fn leave(folder: &Path) -> io::Result<()> {
    let mark = folder.join(MADE);
    if !fs::symlink_metadata(&mark).is_ok_and(|facts| facts.is_file()) {
        return Ok(());
    }
    let names: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    let others = || names.iter().filter(|name| *name != MADE);
    if others().any(|name| name.to_string_lossy().contains("quell")) {
        return Ok(());
    }
    fs::remove_file(&mark)?;
    match others().count() {
        0 => fs::remove_dir(folder).and_then(|()| sync(folder.parent().unwrap_or(folder))),
        _ => sync(folder),
    }
}

fn folder_of(spot: &Path) -> io::Result<&Path> {
    spot.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    const PATH: &str = "/etc/sysctl.d/90-quell.conf";
    const TEXT: &str = "# by quell\nvm.stat_interval = 20\n";

    fn tree(folders: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(folders)).unwrap();
        let root = Root::at(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn it_is_put_replaced_and_taken_away() {
        let (_folder, root) = tree("etc/sysctl.d");
        assert_eq!(read(&root, PATH).unwrap(), ABSENT);
        for text in [TEXT, "# quell\n"] {
            write(&root, PATH, text).unwrap();
            assert_eq!(read(&root, PATH).unwrap(), text);
        }
        let mode = fs::metadata(root.path(PATH)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert_eq!(root.names("/etc/sysctl.d"), ["90-quell.conf"]);
        write(&root, PATH, ABSENT).unwrap();
        write(&root, PATH, ABSENT).unwrap();
        assert!(root.names("/etc/sysctl.d").is_empty() && root.has("/etc/sysctl.d"));
    }

    #[test]
    fn a_folder_that_it_needed_goes_with_the_last_file() {
        let (_folder, root) = tree("etc");
        let second = "/etc/sysctl.d/91-quell.conf";
        write(&root, PATH, TEXT).unwrap();
        write(&root, second, TEXT).unwrap();
        write(&root, PATH, ABSENT).unwrap();
        assert!(root.has("/etc/sysctl.d"));
        write(&root, second, ABSENT).unwrap();
        assert!(root.names("/etc").is_empty());

        write(&root, PATH, TEXT).unwrap();
        fs::write(root.path("/etc/sysctl.d/10-site.conf"), "x").unwrap();
        write(&root, PATH, ABSENT).unwrap();
        assert_eq!(root.names("/etc/sysctl.d"), ["10-site.conf"]);
    }

    #[test]
    fn no_more_than_one_folder_is_made() {
        let (_folder, root) = tree("var");
        assert_eq!(write(&root, PATH, TEXT), Err(PlaceError::Missing));
        assert_eq!(write(&root, PATH, ABSENT), Ok(()));
        assert_eq!(read(&root, PATH).unwrap(), ABSENT);
    }

    #[test]
    fn what_is_not_quells_stays() {
        let (_folder, root) = tree("etc/sysctl.d");
        fs::write(root.path(PATH), "# a site's own\n# quell\n").unwrap();
        assert!(matches!(write(&root, PATH, TEXT), Err(PlaceError::Busy(_))));
        assert!(matches!(write(&root, PATH, ABSENT), Err(PlaceError::Busy(_))));
        let link = "/etc/sysctl.d/91-quell.conf";
        std::os::unix::fs::symlink("90-quell.conf", root.path(link)).unwrap();
        let folder = "/etc/sysctl.d/92-quell.conf";
        fs::create_dir(root.path(folder)).unwrap();
        let pipe = "/etc/sysctl.d/93-quell.conf";
        let name = std::ffi::CString::new(root.path(pipe).into_os_string().into_encoded_bytes()).unwrap();
        // SAFETY: the name lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [link, folder, pipe] {
            assert!(matches!(read(&root, path), Err(PlaceError::Denied(_))), "{path}");
            assert!(matches!(write(&root, path, TEXT), Err(PlaceError::Denied(_))), "{path}");
            assert!(matches!(write(&root, path, ABSENT), Err(PlaceError::Denied(_))), "{path}");
        }
        assert!(matches!(write(&root, "/etc/passwd", TEXT), Err(PlaceError::Denied(_))));
    }

    #[test]
    fn what_a_killed_run_left_is_no_hindrance() {
        let (_folder, root) = tree("etc/sysctl.d");
        fs::write(root.path("/etc/sysctl.d/.90-quell.conf.k1LLed.draft"), "half").unwrap();
        write(&root, PATH, TEXT).unwrap();
        assert_eq!(root.names("/etc/sysctl.d"), ["90-quell.conf"]);
        fs::write(root.path("/etc/sysctl.d/.90-quell.conf.k1LLed.draft"), "half").unwrap();
        write(&root, PATH, ABSENT).unwrap();
        assert!(root.names("/etc/sysctl.d").is_empty());
    }

    #[test]
    fn a_link_out_of_the_tree_is_not_followed() {
        let (_folder, root) = tree("etc");
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path("/etc/sysctl.d")).unwrap();
        assert!(matches!(write(&root, PATH, TEXT), Err(PlaceError::Denied(_))));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
